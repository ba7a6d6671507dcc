import Larder

/// A point on the globe.
public struct Coordinate: Hashable, Sendable {
  /// Latitude in degrees, positive to the north.
  public let latitude: Double
  /// Longitude in degrees, positive to the east.
  public let longitude: Double

  /// Creates a point, or returns `nil` for a latitude outside -90 to 90 or a longitude outside -180 to 180.
  public init?(latitude: Double, longitude: Double) {
    guard (-90.0...90.0).contains(latitude), (-180.0...180.0).contains(longitude) else { return nil }
    // -0 equals 0 but is printed differently, and the text of the coordinates is part of a spot's id.
    self.latitude = latitude.withoutNegativeZero
    self.longitude = longitude.withoutNegativeZero
  }

  /// Returns the great-circle distance in kilometres.
  ///
  /// The Earth is taken for a sphere with a radius of 6371.0088 km. The result is within 0.6 % of the true distance.
  public func kilometers(to other: Coordinate) -> Double {
    let distance = Distance.between((latitude: latitude, longitude: longitude), (latitude: other.latitude, longitude: other.longitude))
    return (distance?.meters ?? .nan) / 1000
  }

  /// Creates a point from coordinates that were validated before they were stored.
  init(stored latitude: Double, _ longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }
}

extension Spot {
  /// Position of the spot.
  public var coordinate: Coordinate { Coordinate(stored: latitude, longitude) }
}
