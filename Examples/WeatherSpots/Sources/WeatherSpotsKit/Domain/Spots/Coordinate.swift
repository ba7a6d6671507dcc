import Larder

/// A point on the globe.
public struct Coordinate: Hashable, Sendable {
  /// Degrees north.
  public let latitude: Double
  /// Degrees east.
  public let longitude: Double

  /// Makes a point, or `nil` outside -90 to 90 and -180 to 180.
  public init?(latitude: Double, longitude: Double) {
    guard (-90.0...90.0).contains(latitude), (-180.0...180.0).contains(longitude) else { return nil }
    self.latitude = latitude.withoutNegativeZero
    self.longitude = longitude.withoutNegativeZero
  }

  /// Returns the great-circle distance on a sphere of 6371.0088 km, in kilometres; within 0.6 % of the true one.
  public func kilometers(to other: Coordinate) -> Double {
    let distance = Distance.between((latitude: latitude, longitude: longitude), (latitude: other.latitude, longitude: other.longitude))
    return (distance?.meters ?? .nan) / 1000
  }

  /// Makes a point of values that were checked before they were stored.
  init(stored latitude: Double, _ longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }
}

extension Spot {
  /// The position of the spot.
  public var coordinate: Coordinate { Coordinate(stored: latitude, longitude) }
}
