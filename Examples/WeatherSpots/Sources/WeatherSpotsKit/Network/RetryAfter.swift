import Foundation

/// A parser of the HTTP header `Retry-After`, which holds a number of seconds or a date.
enum RetryAfter {
  /// Returns the time to wait, at most a day, or `nil` if the text has neither form.
  static func wait(_ text: String, at now: Date) -> Duration? {
    let text = text.trimmingCharacters(in: .whitespaces)
    let bytes = Array(text.utf8)
    // Nine digits fit in `Int` on every platform, so that the parser cannot overflow.
    // The limit of a day keeps a faulty server from blocking its host for years.
    if !bytes.isEmpty, bytes.count <= 9, let seconds = Int(digits: bytes[...]) { return .seconds(min(seconds, 86400)) }
    guard let date = date(text) else { return nil }
    // A date that has passed means no wait, not a negative one.
    return .seconds(min(max(0, date.timeIntervalSince(now)), 86400))
  }

  /// Reads a date such as `Sun, 06 Nov 1994 08:49:37 GMT`, the form that RFC 9110 prefers.
  private static func date(_ text: String) -> Date? {
    let parts = text.split { $0 == " " || $0 == "," || $0 == ":" }.map(String.init)
    // The names are fixed by RFC 9110 and must not depend on the locale of the device.
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    guard parts.count == 8, parts[7] == "GMT", let month = months.firstIndex(of: parts[2]),
      let day = LocalDay("\(parts[3])-\((month + 1).padded(2))-\(parts[1])"),
      let hour = number(parts[4], 0..<24), let minute = number(parts[5], 0..<60), let second = number(parts[6], 0..<61)
    else { return nil }
    return day.noon(in: .gmt) + Double((hour - 12) * 3600 + minute * 60 + second)
  }

  /// Reads two digits as a number in a range.
  ///
  /// A leap second is number 60, so the range of seconds has 61 members.
  private static func number(_ text: String, _ range: Range<Int>) -> Int? {
    guard text.utf8.count == 2, let number = Int(digits: Array(text.utf8)[...]), range.contains(number) else { return nil }
    return number
  }
}
