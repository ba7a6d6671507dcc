import Foundation

/// Figures as a person reads them.
package enum Figures {
  /// Returns a value with three significant digits and a unit of a fitting size.
  package static func text(_ value: Double, _ unit: Series.Unit) -> String {
    guard value.isFinite else { return "–" }
    return switch unit {
    case .microseconds where abs(value) >= 1e6: digits(value / 1e6) + " s"
    case .microseconds where abs(value) >= 1e3: digits(value / 1e3) + " ms"
    case .microseconds where abs(value) < 0.1: digits(value * 1e3) + " ns"
    case .microseconds: digits(value) + " µs"
    case .bytes where abs(value) >= 1e6: digits(value / 1e6) + " MB"
    case .bytes where abs(value) >= 1e4: digits(value / 1e3) + " kB"
    case .bytes: digits(value) + " B"
    case .ratio: digits(value)
    }
  }

  /// Returns a number with three significant digits, and commas between thousands.
  package static func digits(_ value: Double) -> String {
    guard value.isFinite else { return "–" }
    let size = abs(value)
    if size >= 100 { return count(Int(value.rounded())) }
    return String(format: size >= 10 ? "%.1f" : "%.2f", value)
  }

  package static func count(_ value: Int) -> String {
    var (text, rest) = ("", String(abs(value)))
    while rest.count > 3 {
      text = "," + rest.suffix(3) + text
      rest.removeLast(3)
    }
    return (value < 0 ? "-" : "") + rest + text
  }
}
