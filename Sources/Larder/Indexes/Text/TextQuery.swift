internal import Foundation

/// The words and prefixes of a full-text search.
///
/// A matching record holds each word, and for each prefix a word that begins with the prefix.
struct TextQuery: Hashable, Sendable {
  /// Words that a matching record must hold, in the order of the query's text, without repetition.
  private(set) var words: [Term] = []
  /// Prefixes with which words of a matching record must begin, in the order of the query's texts, without repetition.
  private(set) var prefixes: [Term] = []
  /// True if no record can match, because a text of the query has no words.
  private(set) var isImpossible = false

  /// Creates a query from the words of a text.
  ///
  /// The last word of the text counts as a prefix unless white space follows it.
  init(_ text: String) {
    var folding = TextFolding()
    var all: [Term] = []
    folding.words(in: text) { term, _ in all.append(term) }
    isImpossible = all.isEmpty
    let isFinished = text.unicodeScalars.last?.properties.isWhitespace ?? true
    if !isFinished, let last = all.popLast() { prefixes = [last] }
    // A word that occurs twice in the query is kept once. A word that is kept twice would add its score to each result twice.
    var seen: Set<Term> = []
    words = all.filter { seen.insert($0).inserted }
  }

  /// Returns a query for the records that match both this query and another query.
  func intersection(_ other: TextQuery) -> TextQuery {
    var both = self
    both.isImpossible = isImpossible || other.isImpossible
    both.words += other.words.filter { !words.contains($0) }
    both.prefixes += other.prefixes.filter { !prefixes.contains($0) }
    return both
  }

  /// Returns true if a record with the given texts matches the query.
  func matches(_ texts: [String]) -> Bool {
    if isImpossible { return false }
    var folding = TextFolding()
    var missing = Set(words)
    var open = prefixes
    for text in texts {
      folding.words(in: text) { term, _ in
        missing.remove(term)
        open.removeAll { term.hasPrefix($0) }
      }
    }
    return open.isEmpty && missing.isEmpty
  }

  /// Returns the position of the query's word or prefix that a word of a text matches, or `nil` if there is no match.
  ///
  /// The positions count the words of the query first, and then its prefixes.
  func place(of term: Term) -> Int? {
    // Words are compared before prefixes, because a word of the query may also begin with a prefix of the same query.
    words.firstIndex(of: term) ?? prefixes.firstIndex { term.hasPrefix($0) }.map { words.count + $0 }
  }
}

/// Scores of records in a full-text search by the formula Okapi BM25, with k₁ = 1.2 and b = 0.75.
///
/// The source of the formula is S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. The weight of
/// a word in n of N records is `ln(1 + (N - n + 0.5) / (n + 0.5))`. As in Apache Lucene, the weight of a word is never negative.
struct BM25: Sendable {
  private static let k1 = 1.2
  private static let b = 0.75
  private let records: Double
  private let averageLength: Double
  /// Precomputed results of `norm(length:)` for lengths below 256 words, because a table look-up is faster than a division.
  private var norms: [Double] = []

  init(records: Int, words: Int) {
    self.records = Double(records)
    // An empty index has no average length of records, and a division by 0 would make every score NaN.
    averageLength = records == 0 ? 1 : Double(words) / Double(records)
    norms = (0..<256).map { Self.norm(length: $0, average: averageLength) }
  }

  /// Returns the weight of a word in the ranking, where `matches` is the number of records with the word.
  func weight(matches: Int) -> Double {
    log1p((records - Double(matches) + 0.5) / (Double(matches) + 0.5))
  }

  /// Returns the part of the BM25 formula's denominator that depends on a record's length in words.
  private func norm(length: UInt32) -> Double {
    length < 256 ? norms[Int(length)] : Self.norm(length: length, average: averageLength)
  }

  private static func norm(length: UInt32, average: Double) -> Double {
    k1 * (1 - b + b * Double(length) / average)
  }

  /// Returns the upper bound of the score that a word with the given weight adds to any record.
  static func limit(weight: Double) -> Double { weight * (k1 + 1) }

  /// Returns the score that a word adds to a record, from its frequency in the record and the record's length in words.
  func score(weight: Double, frequency: UInt32, length: UInt32) -> Double {
    weight * (Double(frequency) * (Self.k1 + 1)) / (Double(frequency) + norm(length: length))
  }
}
