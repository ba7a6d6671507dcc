internal import Larder

/// A token of a query's text.
struct QueryToken: Equatable {
  enum Kind: Equatable {
    case name(String)
    /// A name in backticks, which is never a word of the language.
    case quotedName(String)
    case value(JSONValue)
    case symbol(String)
    case end
  }

  let kind: Kind
  /// The number of characters before it.
  let offset: Int

  /// The word in small letters; `nil` for anything but a plain name.
  var word: String? { if case .name(let name) = kind { name.lowercased() } else { nil } }

  /// The token in words, for errors.
  var description: String {
    switch kind {
    case .name(let name), .quotedName(let name): "\"\(name)\""
    case .value(let value): value.text
    case .symbol(let symbol): "\"\(symbol)\""
    case .end: "the end"
    }
  }
}
