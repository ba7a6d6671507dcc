/// A distance on the ground, kept in metres.
public struct Distance: Hashable, Sendable, Codable {
  /// The distance in metres.
  public let meters: Double

  /// Makes a distance of metres.
  public static func meters(_ value: Double) -> Distance { Distance(meters: value) }
  /// Makes a distance of kilometres: 1 000 m.
  public static func kilometers(_ value: Double) -> Distance { Distance(meters: value * 1_000) }
  /// Makes a distance of international miles: 1 609.344 m.
  public static func miles(_ value: Double) -> Distance { Distance(meters: value * 1_609.344) }
  /// Makes a distance of nautical miles: 1 852 m.
  public static func nauticalMiles(_ value: Double) -> Distance { Distance(meters: value * 1_852) }
}

extension Distance: Comparable {
  /// Whether the left distance is shorter.
  public static func < (left: Distance, right: Distance) -> Bool { left.meters < right.meters }
}

extension Distance: CustomStringConvertible {
  /// The distance in metres below a kilometre, else in kilometres, with one decimal at most.
  public var description: String {
    let isShort = abs(meters) < 999.95
    let value = isShort ? meters : meters / 1_000
    let rounded = (value * 10).rounded() / 10
    // Beyond 2^53 there are no decimals, and beyond Int64 no integer.
    let number = rounded == rounded.rounded() && abs(rounded) < 0x1p53 ? String(Int64(rounded)) : String(rounded)
    return number + (isShort ? " m" : " km")
  }
}

extension Distance {
  /// Returns the great-circle distance of two places, on a sphere with Earth's mean radius of 6,371,008.8 m.
  ///
  /// It is the distance that `near` orders by, to the last bit. Poles, the date line and opposite points need no care; the sphere is up to
  /// 0.6 % off the shape of the Earth.
  ///
  /// ```swift
  /// let distance = Distance.between((latitude: 35.13, longitude: 139.61), (latitude: 51.48, longitude: 0))
  /// ```
  ///
  /// - Parameters:
  ///   - first: Degrees north, from -90 to 90, and degrees east; whole turns are taken off.
  ///   - second: The other place, likewise.
  /// - Returns: The distance; `nil` for a latitude beyond ±90 and for numbers that are not finite.
  public static func between(
    _ first: (latitude: Double, longitude: Double), _ second: (latitude: Double, longitude: Double)
  ) -> Distance? {
    guard let from = GeoCoordinate(latitude: first.latitude, longitude: first.longitude),
      let to = GeoCoordinate(latitude: second.latitude, longitude: second.longitude)
    else { return nil }
    return .meters(GreatCircle.distance(from, to))
  }
}
