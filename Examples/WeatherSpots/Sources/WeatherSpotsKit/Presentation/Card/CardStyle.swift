// Card/ draws the weather of a place for people: sparklines, the sun and moon line, how old the data are, who has to be named.
// Pure functions over plain values; nothing here reads the clock, the terminal or the store.
// Invariant: no line is wider than the style's width where that is a limit, unless a single word (a link) is. Without a limit every
// line is whole. Without color there is no escape sequence, and a plain card is ASCII but for names. Called by the forecast and astronomy
// commands.

import Foundation

/// The style of drawn text: the terminal and the units.
public struct CardStyle: Hashable, Sendable {
  /// The number of columns of a chart, at least 20, and of a line if ``isLimited``.
  public let width: Int
  /// Whether longer lines are wrapped or cut, as on a terminal and not in a pipe.
  public let isLimited: Bool
  /// Whether text may have colors; only on a terminal whose user has not asked for none.
  public let usesColor: Bool
  /// Whether to write ASCII only.
  public let isPlain: Bool
  /// The units of what is shown.
  public let units: UnitSystem

  /// Makes a style.
  ///
  /// The default is that of a pipe: whole lines, charts of 80 columns, no color, Unicode, metric.
  public init(width: Int? = nil, usesColor: Bool = false, isPlain: Bool = false, units: UnitSystem = .metric) {
    self.width = max(20, width ?? 80)
    isLimited = width != nil
    self.usesColor = usesColor
    self.isPlain = isPlain
    self.units = units
  }

  /// An emphasis of text.
  enum Ink: String {
    case bold = "1"
    case faint = "2"
    case warning = "1;33"
    case chart = "36"
  }

  /// Returns the text in a color, or as it is where there are none.
  func paint(_ text: String, _ ink: Ink?) -> String {
    guard usesColor, let ink, !text.isEmpty else { return text }
    return "\u{1B}[\(ink.rawValue)m\(text)\u{1B}[0m"
  }

  /// Degrees of an angle.
  func angle(_ degrees: Double, decimals: Int) -> String { degrees.text(decimals: decimals) + (isPlain ? " deg" : "°") }

  /// Returns a value with its unit, such as 21.5 °C, or 21.5 C in plain text.
  func text(_ number: String, _ symbol: String) -> String {
    "\(number) \(isPlain ? symbol.replacing("°", with: "") : symbol)"
  }

  /// Returns a range of temperatures, such as 2.7 to 17.6 °C.
  func temperatures(_ celsius: ClosedRange<Double>) -> String {
    let numbers = [celsius.lowerBound, celsius.upperBound].map {
      units.number(Measurement(value: $0, unit: UnitTemperature.celsius), as: .temperature)
    }
    return text(numbers.joined(separator: " to "), units.symbol(of: Quantity<UnitTemperature>.temperature))
  }

  /// The columns of a card's labels.
  static let labelColumns = 7

  /// Returns a line, cut behind some columns of the width if the width is a limit.
  func fitted(_ text: String, besides columns: Int = 0) -> String {
    isLimited ? text.fitted(toColumns: width - columns, mark: isPlain ? "..." : "…") : text
  }

  /// Returns a text on as many lines as it needs beside some columns: on one if the width is no limit.
  func wrapped(_ text: String, besides columns: Int = 0) -> [String] { text.wrapped(toColumns: isLimited ? width - columns : .max) }

  /// Returns a label and parts with commas between them, on as many lines as they need.
  func lines(_ label: String, _ parts: [String], labelColumns: Int = Self.labelColumns, ink: Ink? = nil) -> [String] {
    wrapped(parts.joined(separator: ", "), besides: 2 + labelColumns).enumerated().map { index, text in
      "  " + (index == 0 ? label : "").padded(toColumns: labelColumns) + paint(text, ink)
    }
  }
}
