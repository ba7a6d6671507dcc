public import Foundation

/// A day that a zone skipped when it moved across the date line, as Pacific/Apia skipped 2011-12-30.
public struct SkippedDay: Error, Hashable, CustomStringConvertible {
  /// The day.
  public let day: LocalDay
  /// The zone that has no such day.
  public let zone: TimeZone

  /// The problem in words, with the days before and after.
  public var description: String {
    "expected a day of \(zone.identifier), found \(day), which that zone skipped: \(day.advanced(by: -1)) was followed by "
      + "\(day.advanced(by: 1)); give one of these"
  }
}

extension LocalDay {
  /// Whether a zone has the day.
  public func exists(in zone: TimeZone) -> Bool { LocalDay(containing: noon(in: zone), in: zone) == self }

  /// Throws if a zone skipped the day.
  public func check(in zone: TimeZone) throws(SkippedDay) {
    guard exists(in: zone) else { throw SkippedDay(day: self, zone: zone) }
  }
}
