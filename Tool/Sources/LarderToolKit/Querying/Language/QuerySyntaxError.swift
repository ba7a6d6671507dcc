/// Mistake in the text of a query, with its position.
package struct QuerySyntaxError: Error, Equatable, CustomStringConvertible {
  /// Text of the query.
  let text: String
  /// Number of characters before the mistake.
  let offset: Int
  /// Description of the mistake in the form "expected …, found …", with a hint.
  package let message: String

  /// The message, followed by the text with a caret under the mistake.
  package var description: String {
    // A wide character takes two columns of the terminal, so the caret is placed by columns.
    let space = text.prefix(offset).reduce(0) { $0 + TerminalText.width(of: String($1)) }
    return "\(message)\n  \(TerminalText.escaped(text))\n  \(String(repeating: " ", count: space))^"
  }
}
