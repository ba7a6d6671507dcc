// Card/ draws the weather of a place as text: sparklines, the line of Sun and Moon, the age of the data, the credits.
// All functions are pure. No code in this folder reads the clock, the terminal or the store.
// Invariant: where the style's width is a limit, only a single long word (a link) is wider. Without a limit every line is whole.
// Without color there is no escape sequence, and a plain card is ASCII except for names. The forecast and astronomy commands call it.

import Foundation

/// Options for drawn text: width, color, character set and units of measurement.
public struct CardStyle: Hashable, Sendable {
  /// Number of columns of a chart, at least 20, and of a line if ``isLimited``.
  public let width: Int
  /// Whether lines longer than ``width`` are wrapped or cut, as on a terminal but not in a pipe.
  public let isLimited: Bool
  /// Whether text may contain color sequences.
  ///
  /// Set it only for a terminal whose user has not turned colors off.
  public let usesColor: Bool
  /// Whether text is ASCII only, with ASCII bars and units.
  public let isPlain: Bool
  /// Units in which values are shown.
  public let units: UnitSystem

  /// Creates a style.
  ///
  /// The defaults suit a pipe: whole lines, charts of 80 columns, no color, Unicode, metric units.
  public init(width: Int? = nil, usesColor: Bool = false, isPlain: Bool = false, units: UnitSystem = .metric) {
    // Labels and margins take 11 columns. A narrower width would leave no room for words.
    self.width = max(20, width ?? 80)
    isLimited = width != nil
    self.usesColor = usesColor
    self.isPlain = isPlain
    self.units = units
  }

  /// An emphasis of text, with the parameters of its ANSI escape sequence as the raw value.
  enum Ink: String {
    case bold = "1"
    case faint = "2"
    case warning = "1;33"
    case chart = "36"
  }

  /// Returns the text between color sequences, or unchanged if the style has no colors.
  func paint(_ text: String, _ ink: Ink?) -> String {
    // Sequences around nothing would be bytes without effect.
    guard usesColor, let ink, !text.isEmpty else { return text }
    return "\u{1B}[\(ink.rawValue)m\(text)\u{1B}[0m"
  }

  /// Returns an angle with its unit, such as 21.5°, or 21.5 deg in plain text.
  func angle(_ degrees: Double, decimals: Int) -> String { degrees.text(decimals: decimals) + (isPlain ? " deg" : "°") }

  /// Returns a value with its unit, such as 21.5 °C, or 21.5 C in plain text.
  func text(_ number: String, _ symbol: String) -> String { "\(number) \(isPlain ? symbol.replacing("°", with: "") : symbol)" }

  /// Returns a range of temperatures, such as 2.7 to 17.6 °C.
  func temperatures(_ celsius: ClosedRange<Double>) -> String {
    let numbers = [celsius.lowerBound, celsius.upperBound].map {
      units.number(Measurement(value: $0, unit: UnitTemperature.celsius), as: .temperature)
    }
    return text(numbers.joined(separator: " to "), units.symbol(of: Quantity<UnitTemperature>.temperature))
  }

  /// Number of columns of a card's labels, such as Sun or Waves.
  static let labelColumns = 7

  /// Returns a line, cut to the width less `columns` if the width is a limit.
  func fitted(_ text: String, besides columns: Int = 0) -> String {
    isLimited ? text.fitted(toColumns: width - columns, mark: isPlain ? "..." : "…") : text
  }

  /// Returns a text wrapped to the width less `columns`, or on one line if the width is no limit.
  func wrapped(_ text: String, besides columns: Int = 0) -> [String] { text.wrapped(toColumns: isLimited ? width - columns : .max) }

  /// Returns a label followed by comma-separated parts, wrapped to as many lines as they need.
  func lines(_ label: String, _ parts: [String], labelColumns: Int = Self.labelColumns, ink: Ink? = nil) -> [String] {
    wrapped(parts.joined(separator: ", "), besides: 2 + labelColumns).enumerated().map { index, text in
      // Continuation lines have an empty label of the same width, so that the text stays aligned.
      "  " + (index == 0 ? label : "").padded(toColumns: labelColumns) + paint(text, ink)
    }
  }
}
