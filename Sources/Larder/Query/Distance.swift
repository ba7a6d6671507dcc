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
