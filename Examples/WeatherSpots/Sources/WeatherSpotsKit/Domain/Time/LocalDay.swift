// Time/ holds calendar days and time texts. Two rules decide which hour is shown: days belong to the spot's own zone, noon is an instant.

public import Foundation

/// A calendar day without a time zone, written yyyy-MM-dd.
///
/// Days come from Gregorian calendar components and not from a formatter, which writes 2569 on a device with a Buddhist calendar.
public struct LocalDay: Hashable, Comparable, Sendable, TextCodable {
  private let year: Int
  private let month: Int
  private let day: Int

  /// Creates the day that contains an instant in a time zone.
  public init(containing instant: Date, in zone: TimeZone) {
    let parts = Calendar.gregorian(in: zone).dateComponents([.year, .month, .day], from: instant)
    year = parts.year ?? 1
    month = parts.month ?? 1
    day = parts.day ?? 1
  }

  /// Parses yyyy-MM-dd, or returns `nil` for any other text and for days that do not exist.
  public init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count == 10, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
      let year = Int(digits: bytes[0..<4]), let month = Int(digits: bytes[5..<7]), let day = Int(digits: bytes[8..<10])
    else { return nil }
    let parts = DateComponents(calendar: .gregorian(in: .gmt), year: year, month: month, day: day)
    // Without this check, 2026-02-30 would become a day in March.
    guard year >= 1, parts.isValidDate else { return nil }
    self.year = year
    self.month = month
    self.day = day
  }

  /// Whether the day of an instant has a year of four digits in every time zone, so that its text can be parsed again.
  static func holds(_ instant: Date) -> Bool {
    // The years 1 to 9999 without two days at either end, because zones differ from UTC by more than half a day.
    (-62_135_424_000...253_402_128_000).contains(instant.timeIntervalSince1970)
  }

  /// Returns the interval from the first instant of the day in a time zone to the first instant of the next day.
  ///
  /// It has 23, 24 or 25 hours where clocks change, and does not always begin at midnight. A day that the zone skipped has an empty
  /// interval at the start of the day after it.
  public func interval(in zone: TimeZone) -> DateInterval {
    // Every day of a zone has a noon, but where clocks change at midnight a day has no midnight.
    let noon = noon(in: zone)
    let interval = Calendar.gregorian(in: zone).dateInterval(of: .day, for: noon) ?? DateInterval(start: noon - 43200, duration: 86400)
    // The noon of a skipped day lies in a day beside it, whose interval would show the rows of a wrong day.
    let found = LocalDay(containing: noon, in: zone)
    return found == self ? interval : DateInterval(start: found < self ? interval.end : interval.start, duration: 0)
  }

  /// Returns the instant at which clocks in a time zone show 12:00 on this day.
  ///
  /// If the zone skipped the day, the instant is in a day beside it.
  public func noon(in zone: TimeZone) -> Date {
    Calendar.gregorian(in: zone).date(from: DateComponents(year: year, month: month, day: day, hour: 12)) ?? .distantPast
  }

  /// Returns the day that is a number of days later, or earlier for a negative number.
  public func advanced(by days: Int) -> LocalDay {
    // In GMT every day has 86,400 seconds.
    LocalDay(containing: noon(in: .gmt) + Double(days) * 86400, in: .gmt)
  }

  /// Returns the number of days from this day to another one, which is negative for an earlier day.
  public func days(until other: LocalDay) -> Int { Int((other.noon(in: .gmt).timeIntervalSince(noon(in: .gmt)) / 86400).rounded()) }

  /// The day as yyyy-MM-dd.
  public var description: String { "\(year.padded(4))-\(month.padded(2))-\(day.padded(2))" }

  /// Returns whether the first day is earlier.
  public static func < (left: LocalDay, right: LocalDay) -> Bool {
    (left.year, left.month, left.day) < (right.year, right.month, right.day)
  }

  /// Name of the expected form in a decoding error.
  public static let expectedText = "a day yyyy-MM-dd"
}

extension Calendar {
  /// Returns the Gregorian calendar in a time zone, independent of the device's settings.
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
