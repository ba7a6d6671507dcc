import Foundation

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
    let radians = Double.pi / 180
    let latitudes = sin((other.latitude - latitude) * radians / 2)
    let longitudes = sin((other.longitude - longitude) * radians / 2)
    let haversine = latitudes * latitudes + cos(latitude * radians) * cos(other.latitude * radians) * longitudes * longitudes
    return 2 * 6371.0088 * asin(min(1, haversine.squareRoot()))
  }
}

extension Spot {
  /// The position of the spot.
  public var coordinate: Coordinate { Coordinate(validated: self) }
}

extension Coordinate {
  fileprivate init(validated spot: Spot) {
    latitude = spot.latitude
    longitude = spot.longitude
  }
}
