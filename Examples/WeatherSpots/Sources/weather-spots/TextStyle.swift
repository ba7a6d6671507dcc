import Foundation
import Larder

/// Whether what was found may stand out.
enum TextStyle {
  case plain, bold

  /// Bold on a terminal, unless the environment asks for plain text (https://no-color.org).
  static var ofStandardOutput: TextStyle {
    let asksForPlain = ProcessInfo.processInfo.environment["NO_COLOR"].map { !$0.isEmpty } ?? false
    return isatty(STDOUT_FILENO) == 1 && !asksForPlain ? .bold : .plain
  }

  /// The text of an extract, with the words that matched made to stand out.
  func marked(_ extract: TextExtract?) -> String {
    guard let extract else { return "" }
    guard self == .bold else { return extract.text }
    let characters = Array(extract.text)
    var (text, end) = ("", 0)
    for range in extract.highlights where range.lowerBound >= end && range.upperBound <= characters.count {
      text += String(characters[end..<range.lowerBound]) + "\u{1B}[1;33m" + String(characters[range]) + "\u{1B}[0m"
      end = range.upperBound
    }
    return text + String(characters[end...])
  }
}
