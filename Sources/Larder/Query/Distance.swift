/// A distance on the ground, stored in metres.
public struct Distance: Hashable, Sendable, Codable {
  /// Distance in metres.
  public let meters: Double

  /// Creates a distance from metres.
  public static func meters(_ value: Double) -> Distance { Distance(meters: value) }
  /// Creates a distance from kilometres of 1 000 m.
  public static func kilometers(_ value: Double) -> Distance { Distance(meters: value * 1_000) }
  /// Creates a distance from international miles of 1 609.344 m.
  public static func miles(_ value: Double) -> Distance { Distance(meters: value * 1_609.344) }
  /// Creates a distance from nautical miles of 1 852 m.
  public static func nauticalMiles(_ value: Double) -> Distance { Distance(meters: value * 1_852) }
}

extension Distance: Comparable {
  /// Returns true if the left distance is shorter.
  public static func < (left: Distance, right: Distance) -> Bool { left.meters < right.meters }
}

extension Distance: CustomStringConvertible {
  /// The distance as text: in metres below one kilometre, otherwise in kilometres, with at most one decimal.
  public var description: String {
    // From 999.95 m on, the text is in kilometres, because a text in metres would be rounded to "1000 m".
    let isShort = abs(meters) < 999.95
    let value = isShort ? meters : meters / 1_000
    let rounded = (value * 10).rounded() / 10
    // `Int64(rounded)` would trap beyond the range of Int64. From 2^53 on a `Double` has no decimals, so `String(rounded)` adds no decimals
    // to a number of this size.
    let number = rounded == rounded.rounded() && abs(rounded) < 0x1p53 ? String(Int64(rounded)) : String(rounded)
    return number + (isShort ? " m" : " km")
  }
}

extension Distance {
  /// Returns the great-circle distance between two places, on a sphere with Earth's mean radius of 6,371,008.8 m.
  ///
  /// The result is exactly, to the last bit, the distance by which ``Query/near(latitude:longitude:within:)`` sorts. You need no special
  /// cases for the poles, the date line or opposite points. A sphere differs from the shape of the Earth, so the distance may be wrong by
  /// up to 0.6 %.
  ///
  /// ```swift
  /// let distance = Distance.between((latitude: 35.13, longitude: 139.61), (latitude: 51.48, longitude: 0))
  /// ```
  ///
  /// - Parameters:
  ///   - first: The first place: degrees north, from -90 to 90, and degrees east, of which multiples of 360 are ignored.
  ///   - second: The second place, in the same form as the first.
  /// - Returns: The distance, or `nil` for a latitude beyond ±90 and for numbers that are not finite.
  public static func between(
    _ first: (latitude: Double, longitude: Double), _ second: (latitude: Double, longitude: Double)
  ) -> Distance? {
    guard let from = GeoCoordinate(latitude: first.latitude, longitude: first.longitude),
      let to = GeoCoordinate(latitude: second.latitude, longitude: second.longitude)
    else { return nil }
    return .meters(GreatCircle.distance(from, to))
  }
}
