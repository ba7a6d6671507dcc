public import Foundation

/// Conversions of times to and from texts, such as Open-Meteo's 2026-03-09T12:00, which carry no time zone.
public enum TimeLabel {
  /// Returns the instant of a row's time text, given the UTC offset of the whole response in seconds.
  ///
  /// Open-Meteo applies the offset at the time of the request to every row. Texts after a change of the clocks are therefore an hour off,
  /// but their instants are right.
  public static func instant(_ label: String, offset: Int) -> Date? {
    let bytes = Array(label.utf8)
    guard bytes.count == 16, bytes[10] == UInt8(ascii: "T"), bytes[13] == UInt8(ascii: ":"),
      let day = LocalDay(String(decoding: bytes[0..<10], as: UTF8.self)),
      // A malformed answer with 24:00 would become a row of the next day.
      let hour = Int(digits: bytes[11..<13]), let minute = Int(digits: bytes[14..<16]), hour < 24, minute < 60
    else { return nil }
    return day.noon(in: .gmt) + Double((hour - 12) * 3600 + minute * 60) - Double(offset)
  }

  /// Returns the clock time of an instant in a time zone, such as 09:30.
  public static func clock(_ instant: Date, in zone: TimeZone) -> String {
    let parts = Calendar.gregorian(in: zone).dateComponents([.hour, .minute], from: instant)
    return "\((parts.hour ?? 0).padded(2)):\((parts.minute ?? 0).padded(2))"
  }

  /// Returns the day and clock time of an instant in a time zone, such as 2026-03-09 12:00.
  public static func dayAndClock(_ instant: Date, in zone: TimeZone) -> String {
    "\(LocalDay(containing: instant, in: zone)) \(clock(instant, in: zone))"
  }
}
