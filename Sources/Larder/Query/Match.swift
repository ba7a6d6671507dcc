/// A result of a query, with what the query has found out about it.
public struct Match<Item: Sendable>: Sendable {
  /// The record.
  public let item: Item
  /// How far it is from the place of `near`; `nil` for a query without one.
  public let distance: Distance?
  /// How well it matches the words, by BM25: more is better.
  ///
  /// Only the order means something. `nil` for a query without words.
  public let score: Double?
  /// The part of its text where the words are; `nil` for a query without words.
  public let extract: TextExtract?
}

extension Match: Equatable where Item: Equatable {}
extension Match: Hashable where Item: Hashable {}
