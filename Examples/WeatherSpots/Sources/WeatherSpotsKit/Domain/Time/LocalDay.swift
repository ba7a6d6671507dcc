// Time/ holds the two rules that decide which hour is shown: a day belongs to the spot's own zone, and noon is an instant.

public import Foundation

/// A calendar day without a zone, written yyyy-MM-dd.
///
/// Made of Gregorian calendar components, never of a formatter: on a device with a Buddhist calendar a formatter would say 2569.
public struct LocalDay: Hashable, Comparable, Sendable, TextCodable {
  private let year: Int
  private let month: Int
  private let day: Int

  /// Makes the day that an instant falls on in a zone.
  public init(containing instant: Date, in zone: TimeZone) {
    let parts = Calendar.gregorian(in: zone).dateComponents([.year, .month, .day], from: instant)
    year = parts.year ?? 1
    month = parts.month ?? 1
    day = parts.day ?? 1
  }

  /// Reads yyyy-MM-dd; `nil` for anything else and for days that do not exist.
  public init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count == 10, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
      let year = Int(digits: bytes[0..<4]), let month = Int(digits: bytes[5..<7]), let day = Int(digits: bytes[8..<10])
    else { return nil }
    let parts = DateComponents(calendar: .gregorian(in: .gmt), year: year, month: month, day: day)
    guard year >= 1, parts.isValidDate else { return nil }
    self.year = year
    self.month = month
    self.day = day
  }

  /// Whether the day of an instant has a year of four digits in every zone, so that it can be written and read.
  static func holds(_ instant: Date) -> Bool {
    // Two days less than the years 1 to 9999.
    (-62_135_424_000...253_402_128_000).contains(instant.timeIntervalSince1970)
  }

  /// From the day's first instant in a zone to the next day's; 23, 24 or 25 hours, and not always from midnight.
  ///
  /// A day that the zone skipped is empty: it begins and ends with the day after it.
  public func interval(in zone: TimeZone) -> DateInterval {
    // Every day of a zone has a noon, and not every day has a midnight.
    let noon = noon(in: zone)
    let interval = Calendar.gregorian(in: zone).dateInterval(of: .day, for: noon) ?? DateInterval(start: noon - 43200, duration: 86400)
    let found = LocalDay(containing: noon, in: zone)
    return found == self ? interval : DateInterval(start: found < self ? interval.end : interval.start, duration: 0)
  }

  /// Returns the instant at which the clocks of a zone show 12:00 on this day.
  ///
  /// If the zone skipped the day, the instant is in a day beside it.
  public func noon(in zone: TimeZone) -> Date {
    Calendar.gregorian(in: zone).date(from: DateComponents(year: year, month: month, day: day, hour: 12)) ?? .distantPast
  }

  /// Returns the day some days later, or earlier when negative.
  public func advanced(by days: Int) -> LocalDay {
    LocalDay(containing: noon(in: .gmt) + Double(days) * 86400, in: .gmt)
  }

  /// Returns how many days later another day is; negative for an earlier one.
  public func days(until other: LocalDay) -> Int {
    Int((other.noon(in: .gmt).timeIntervalSince(noon(in: .gmt)) / 86400).rounded())
  }

  /// The day as yyyy-MM-dd.
  public var description: String { "\(year.padded(4))-\(month.padded(2))-\(day.padded(2))" }

  /// Returns whether a day is earlier.
  public static func < (left: LocalDay, right: LocalDay) -> Bool {
    (left.year, left.month, left.day) < (right.year, right.month, right.day)
  }

  /// The form yyyy-MM-dd.
  public static let expectedText = "a day yyyy-MM-dd"
}

extension Calendar {
  /// Returns the Gregorian calendar in a zone, whatever this device uses.
  static func gregorian(in zone: TimeZone) -> Calendar {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = zone
    calendar.locale = Locale(identifier: "en_US_POSIX")
    return calendar
  }
}

extension Int {
  init?(digits: ArraySlice<UInt8>) {
    var value = 0
    for byte in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      value = value * 10 + Int(byte - UInt8(ascii: "0"))
    }
    self = value
  }

  func padded(_ width: Int) -> String {
    let text = String(self)
    return String(repeating: "0", count: Swift.max(0, width - text.count)) + text
  }
}
