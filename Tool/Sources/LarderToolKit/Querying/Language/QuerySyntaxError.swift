/// The place and kind of a mistake in the text of a query.
package struct QuerySyntaxError: Error, Equatable, CustomStringConvertible {
  /// The text.
  let text: String
  /// The number of characters before the mistake.
  let offset: Int
  /// The mistake: expected, found, and what to do.
  package let message: String

  /// The message, then the text with a caret under the mistake.
  package var description: String {
    let space = text.prefix(offset).reduce(0) { $0 + TerminalText.width(of: String($1)) }
    return "\(message)\n  \(TerminalText.escaped(text))\n  \(String(repeating: " ", count: space))^"
  }
}
