import Foundation
import Larder
import WeatherSpotsKit

/// Style of the words that matched a search.
enum TextStyle {
  case plain, bold

  /// Bold on a terminal, unless the environment asks for plain text (https://no-color.org).
  static var ofStandardOutput: TextStyle { CardStyle.ofStandardOutput().usesColor ? .bold : .plain }

  /// Returns the text of an extract with its matched words highlighted.
  func marked(_ extract: TextExtract?) -> String {
    guard let extract else { return "" }
    guard self == .bold else { return extract.text }
    let characters = Array(extract.text)
    var (text, end) = ("", 0)
    // Ranges that overlap or exceed the text are skipped: slicing with them would trap.
    for range in extract.highlights where range.lowerBound >= end && range.upperBound <= characters.count {
      text += String(characters[end..<range.lowerBound]) + "\u{1B}[1;33m" + String(characters[range]) + "\u{1B}[0m"
      end = range.upperBound
    }
    return text + String(characters[end...])
  }
}

extension CardStyle {
  /// Returns the width, colors and units that standard output supports.
  ///
  /// Colors need a terminal that has them, and are off if `NO_COLOR` or the user asks for plain text. The width is that of `COLUMNS` or
  /// else of the terminal. Without either, lines are whole.
  static func ofStandardOutput(isPlain: Bool = false, units: UnitSystem = .metric) -> CardStyle {
    let environment = ProcessInfo.processInfo.environment
    // By the convention of no-color.org an empty variable does not count.
    let refusesColor = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
    let isTerminal = isatty(STDOUT_FILENO) == 1
    return CardStyle(
      width: Output.columns(), usesColor: isTerminal && !refusesColor && !isPlain && environment["TERM"] != "dumb",
      isPlain: isPlain, units: units)
  }
}
