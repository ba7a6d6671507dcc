/// A type of property whose words a full-text index can find: `String`, an optional of it, or an array.
public protocol SearchableText: Sendable {
  /// The texts, each of which is a field of its own.
  var searchableTexts: [String] { get }
}

extension String: SearchableText {
  /// The text itself.
  public var searchableTexts: [String] { [self] }
}

extension Optional: SearchableText where Wrapped: SearchableText {
  /// The wrapped texts, or none.
  public var searchableTexts: [String] { self?.searchableTexts ?? [] }
}

extension Array: SearchableText where Element: SearchableText {
  /// The texts of all elements.
  public var searchableTexts: [String] { flatMap(\.searchableTexts) }
}
