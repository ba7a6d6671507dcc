public import Foundation

/// An error for a day that a time zone skipped when it moved across the date line, such as 2011-12-30 in Pacific/Apia.
public struct SkippedDay: Error, Hashable, CustomStringConvertible {
  /// The skipped day.
  public let day: LocalDay
  /// Time zone that skipped the day.
  public let zone: TimeZone

  /// Error message, with the days before and after.
  public var description: String {
    "expected a day of \(zone.identifier), found \(day), which that zone skipped: \(day.advanced(by: -1)) was followed by "
      + "\(day.advanced(by: 1)); give one of these"
  }
}

extension LocalDay {
  /// Returns whether the day exists in a time zone.
  public func exists(in zone: TimeZone) -> Bool { LocalDay(containing: noon(in: zone), in: zone) == self }

  /// Throws an error if a time zone skipped the day.
  public func check(in zone: TimeZone) throws(SkippedDay) {
    guard exists(in: zone) else { throw SkippedDay(day: self, zone: zone) }
  }
}
