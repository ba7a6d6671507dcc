internal import Larder

/// Recursive-descent parser of conditions, sort orders and field lists.
package struct QueryParser {
  private let text: String
  private let tokens: [QueryToken]
  private var position = 0
  private var depth = 0

  private init(_ text: String) throws(QuerySyntaxError) { (self.text, tokens) = (text, try QueryLexer.tokens(of: text)) }

  /// Parses a condition, such as `rating >= 4 and not (country = "JP" or tags contains "pier")`.
  package static func condition(_ text: String) throws(QuerySyntaxError) -> QueryExpression {
    var parser = try QueryParser(text)
    let expression = try parser.disjunction()
    try parser.expectEnd("\"and\", \"or\" or the end")
    return expression
  }

  /// Parses a sort order, such as `rating:desc`.
  package static func order(_ text: String) throws(QuerySyntaxError) -> QueryOrder {
    var parser = try QueryParser(text)
    let path = try parser.path()
    var isDescending = false
    if parser.skip(":") {
      let token = parser.current
      guard let word = token.word, ["asc", "desc"].contains(word) else { throw parser.error("expected asc or desc") }
      isDescending = word == "desc"
      parser.position += 1
    }
    try parser.expectEnd("the end")
    return QueryOrder(path: path, isDescending: isDescending)
  }

  /// Parses a list of fields that are separated by commas.
  package static func fields(_ text: String) throws(QuerySyntaxError) -> [FieldPath] {
    var parser = try QueryParser(text)
    var paths = [try parser.path()]
    while parser.skip(",") { paths.append(try parser.path()) }
    try parser.expectEnd("a comma or the end")
    return paths
  }

  // MARK: Tokens

  // The last token is the end. Reading behind it gives it again.
  private var current: QueryToken { tokens[min(position, tokens.count - 1)] }

  /// Creates an error at the current token.
  private func error(_ expected: String, hint: String = "") -> QuerySyntaxError {
    QuerySyntaxError(text: text, offset: current.offset, message: "\(expected), found \(current.description)\(hint)")
  }

  private mutating func skip(_ symbol: String) -> Bool {
    guard current.kind == .symbol(symbol) else { return false }
    position += 1
    return true
  }

  private mutating func skip(word: String) -> Bool {
    guard current.word == word else { return false }
    position += 1
    return true
  }

  private func expectEnd(_ expected: String) throws(QuerySyntaxError) {
    // Without this check, everything after a complete condition would be ignored.
    guard current.kind == .end else { throw error("expected \(expected)") }
  }

  // MARK: Conditions

  private mutating func disjunction() throws(QuerySyntaxError) -> QueryExpression {
    let first = try conjunction()
    var terms = [first]
    while skip(word: "or") { terms.append(try conjunction()) }
    return terms.count > 1 ? .or(terms) : first
  }

  // `and` binds closer than `or`, and `not` closer than both, as in SQL.
  private mutating func conjunction() throws(QuerySyntaxError) -> QueryExpression {
    let first = try negation()
    var terms = [first]
    while skip(word: "and") { terms.append(try negation()) }
    return terms.count > 1 ? .and(terms) : first
  }

  /// Maximum nesting of parentheses and negations.
  ///
  /// Each level is a recursive call, and an unlimited depth overflows the stack.
  private static let depthLimit = 100

  private mutating func negation() throws(QuerySyntaxError) -> QueryExpression {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.depthLimit else { throw error("expected at most \(Self.depthLimit) levels of parentheses and nots") }
    if skip(word: "not") { return .not(try negation()) }
    if skip("(") {
      let inner = try disjunction()
      guard skip(")") else { throw error("expected \"and\", \"or\" or \")\"") }
      return inner
    }
    return try comparison()
  }

  private mutating func comparison() throws(QuerySyntaxError) -> QueryExpression {
    let path = try path()
    if skip(word: "in") { return .oneOf(path, try values()) }
    let comparison: QueryExpression.Comparison
    switch current.kind {
    // `==` and `<>` are second spellings, and have no raw value of their own.
    case .symbol("=="): comparison = .equal
    case .symbol("<>"): comparison = .notEqual
    case .symbol(let symbol):
      guard let known = QueryExpression.Comparison(rawValue: symbol) else { throw expectedComparison }
      comparison = known
    default:
      guard let word = current.word, let known = QueryExpression.Comparison(rawValue: word) else { throw expectedComparison }
      comparison = known
    }
    position += 1
    return .comparison(path, comparison, try value())
  }

  private var expectedComparison: QuerySyntaxError {
    error("expected a comparison (=, !=, <, <=, >, >=, contains, startswith, endswith, in)")
  }

  private mutating func values() throws(QuerySyntaxError) -> [JSONValue] {
    guard skip("(") else { throw error("expected \"(\" and values separated by commas") }
    var values = [try value()]
    while skip(",") { values.append(try value()) }
    guard skip(")") else { throw error("expected a comma or \")\"") }
    return values
  }

  private mutating func value() throws(QuerySyntaxError) -> JSONValue {
    let constants: [String: JSONValue] = ["true": true, "false": false, "null": .null]
    if case .value(let value) = current.kind {
      position += 1
      return value
    }
    if let word = current.word, let constant = constants[word] {
      position += 1
      return constant
    }
    // A name in the place of a value is usually a text without quotation marks.
    var hint = ""
    if case .name(let name) = current.kind { hint = "; a text stands in quotation marks: \"\(name)\"" }
    throw error("expected a value", hint: hint)
  }

  // MARK: Fields

  private mutating func path() throws(QuerySyntaxError) -> FieldPath {
    let start = current
    var steps = [try member()]
    while true {
      if skip(".") {
        steps.append(try member())
      } else if skip("[") {
        // A negative position is refused here, because it would be null in every record.
        guard case .value(let value) = current.kind, let index = value.intValue, index >= 0 else {
          throw error("expected the position of an element")
        }
        position += 1
        guard skip("]") else { throw error("expected \"]\"") }
        steps.append(.element(index))
      } else {
        break
      }
    }
    let path = FieldPath(steps: steps)
    // Refused while parsing, so that the error points at the field.
    guard !path.isUnknown else {
      throw QuerySyntaxError(
        text: text, offset: start.offset, message: "expected a field, or \(FieldPath.ownNames) of the record, found \"\(path.text)\"")
    }
    return path
  }

  private mutating func member() throws(QuerySyntaxError) -> FieldPath.Step {
    switch current.kind {
    case .name(let name), .quotedName(let name):
      position += 1
      return .member(name)
    case .value(let value) where value.stringValue != nil:
      throw error("expected a field", hint: "; the name of a field with spaces stands in backticks")
    default: throw error("expected a field")
    }
  }
}
