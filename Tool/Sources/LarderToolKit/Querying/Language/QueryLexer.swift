internal import Foundation
@_spi(Inspection) internal import Larder

/// Lexer that splits the text of a query into tokens.
struct QueryLexer {
  private let text: String
  // An array, because a `String` finds a character by position in linear time.
  private let characters: [Character]
  private var position = 0

  private init(_ text: String) { (self.text, characters) = (text, Array(text)) }

  /// Returns the tokens of a text.
  ///
  /// The last one is always `.end`.
  static func tokens(of text: String) throws(QuerySyntaxError) -> [QueryToken] {
    var lexer = QueryLexer(text)
    var tokens: [QueryToken] = []
    repeat { tokens.append(try lexer.next()) } while tokens.last?.kind != .end
    return tokens
  }

  private var current: Character? { position < characters.count ? characters[position] : nil }

  // The first match is taken, so `<=` stands before `<`, and `==` before `=`.
  private static let symbols = ["==", "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", "[", "]", ",", ".", ":"]

  private mutating func next() throws(QuerySyntaxError) -> QueryToken {
    while let space = current, space.isWhitespace { position += 1 }
    let start = position
    guard let first = current else { return QueryToken(kind: .end, offset: start) }
    if first == "\"" || first == "'" { return QueryToken(kind: .value(try string(closedBy: first)), offset: start) }
    if first == "`" { return QueryToken(kind: .quotedName(try quotedName()), offset: start) }
    // Only ASCII digits begin a number. Other digits, such as Arabic ones, may begin a name.
    if first.isASCII, first.isNumber || first == "-" { return QueryToken(kind: .value(try number()), offset: start) }
    if Self.isOfName(first) {
      // A hyphen may be inside a name, because the language has no subtraction.
      while let character = current, Self.isOfName(character) || character == "-" { position += 1 }
      return QueryToken(kind: .name(String(characters[start..<position])), offset: start)
    }
    for symbol in Self.symbols where characters[position...].starts(with: symbol) {
      position += symbol.count
      return QueryToken(kind: .symbol(symbol), offset: start)
    }
    throw error("expected a field, a value or a comparison, found \"\(first)\"", at: start)
  }

  private static func isOfName(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || character == "_" || character == "$"
  }

  private func error(_ message: String, at offset: Int) -> QuerySyntaxError {
    QuerySyntaxError(text: text, offset: offset, message: message)
  }

  /// Reads a text in quotation marks or apostrophes, with the escapes of JSON.
  private mutating func string(closedBy mark: Character) throws(QuerySyntaxError) -> JSONValue {
    let start = position
    position += 1
    var inside = ""
    while let character = current, character != mark {
      // A backslash at the end of the query is taken literally, and the missing quotation mark is reported below.
      if character == "\\", position + 1 < characters.count {
        position += 1
        // JSON has no escape for an apostrophe, so `\'` loses its backslash before the JSON parser reads the text.
        inside += characters[position] == "'" ? "'" : "\\\(characters[position])"
      } else {
        // A quotation mark between apostrophes must be escaped for the JSON parser.
        inside += character == "\"" ? "\\\"" : String(character)
      }
      position += 1
    }
    guard current == mark else { throw error("expected \(mark) at the end of the text that begins here, found none", at: start) }
    position += 1
    do throws(RepositoryError) {
      return try JSONValue(json: Data("\"\(inside)\"".utf8))
    } catch {
      throw self.error("expected a text with the escapes of JSON, such as \\n, \\\" and \\u00e9, found others", at: start)
    }
  }

  private mutating func quotedName() throws(QuerySyntaxError) -> String {
    let start = position
    position += 1
    while let character = current, character != "`" { position += 1 }
    guard current == "`" else { throw error("expected ` at the end of the name that begins here, found none", at: start) }
    position += 1
    return String(characters[(start + 1)..<(position - 1)])
  }

  private mutating func number() throws(QuerySyntaxError) -> JSONValue {
    let start = position
    // Letters are read too, so that `4abc` is one bad number and not a number followed by a name.
    while let character = current, character.isASCII, character.isLetter || character.isNumber || "+-.".contains(character) {
      position += 1
    }
    let digits = String(characters[start..<position])
    guard let number = JSONNumber(text: digits) else {
      throw error("expected a number such as 4, -0.5 or 1e3, found \"\(digits)\"; a text stands in quotation marks", at: start)
    }
    return .number(number)
  }
}
