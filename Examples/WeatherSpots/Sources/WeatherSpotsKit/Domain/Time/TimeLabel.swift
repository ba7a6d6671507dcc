public import Foundation

/// The time texts of Open-Meteo's rows, such as 2026-03-09T12:00, which carry no zone.
public enum TimeLabel {
  /// Returns the instant of a label: the label read as UTC, less the offset of the whole answer.
  ///
  /// The service applies one offset, that of the moment of the request, to every row, so that labels after a switch of the clocks are an
  /// hour off; the instant is right all the same.
  public static func instant(_ label: String, offset: Int) -> Date? {
    let bytes = Array(label.utf8)
    guard bytes.count == 16, bytes[10] == UInt8(ascii: "T"), bytes[13] == UInt8(ascii: ":"),
      let day = LocalDay(String(decoding: bytes[0..<10], as: UTF8.self)),
      let hour = Int(digits: bytes[11..<13]), let minute = Int(digits: bytes[14..<16]), hour < 24, minute < 60
    else { return nil }
    return day.noon(in: .gmt) + Double((hour - 12) * 3600 + minute * 60) - Double(offset)
  }

  /// Returns the clock time of an instant in a zone, as 09:30.
  public static func clock(_ instant: Date, in zone: TimeZone) -> String {
    let parts = Calendar.gregorian(in: zone).dateComponents([.hour, .minute], from: instant)
    return "\((parts.hour ?? 0).padded(2)):\((parts.minute ?? 0).padded(2))"
  }

  /// Returns the day and clock time of an instant in a zone, as 2026-03-09 12:00.
  public static func dayAndClock(_ instant: Date, in zone: TimeZone) -> String {
    "\(LocalDay(containing: instant, in: zone)) \(clock(instant, in: zone))"
  }
}
