internal import Larder

/// Token of a query's text, with its position.
struct QueryToken: Equatable {
  enum Kind: Equatable {
    case name(String)
    /// A name in backticks, which is never a keyword.
    case quotedName(String)
    case value(JSONValue)
    case symbol(String)
    case end
  }

  let kind: Kind
  /// Number of characters before the token.
  let offset: Int

  /// The name in lower case, to compare with keywords.
  ///
  /// `nil` for every token but a name without backticks.
  var word: String? { if case .name(let name) = kind { name.lowercased() } else { nil } }

  /// Description of the token, for errors.
  var description: String {
    switch kind {
    case .name(let name), .quotedName(let name): "\"\(name)\""
    case .value(let value): value.text
    case .symbol(let symbol): "\"\(symbol)\""
    case .end: "the end"
    }
  }
}
