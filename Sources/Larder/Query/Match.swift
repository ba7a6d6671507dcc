/// A result of a query, with what the query has found out about it.
public struct Match<Item: Sendable>: Sendable {
  /// The record.
  public let item: Item
  /// The distance from the place of `near`; `nil` for a query without one.
  public let distance: Distance?
  /// The rank of its words, by BM25: more is better.
  ///
  /// Only the order means something. `nil` for a query without words.
  public let score: Double?
  let source: ExtractSource?

  /// The part of its text where the words are; `nil` for a query without words.
  ///
  /// Made each time it is asked for, which takes longer than to find the record: some 20 µs for a text of 20 words.
  public var extract: TextExtract? { source.flatMap { TextExtract(of: $0.words, from: $0.texts) } }

  /// The words and texts that an extract is made from.
  struct ExtractSource: Hashable, Sendable {
    let words: TextQuery
    let texts: [String]
  }
}

extension Match: Equatable where Item: Equatable {}
extension Match: Hashable where Item: Hashable {}
