internal import Foundation

/// The words of a text search: a record must hold each word, and for each prefix a word that begins with it.
struct TextQuery: Hashable, Sendable {
  /// Words to find as they are, in order, without repetition.
  private(set) var words: [Term] = []
  /// Prefixes of words to find, in order, without repetition.
  private(set) var prefixes: [Term] = []
  /// True if no record can match, because a text of the query has no words.
  private(set) var isImpossible = false

  /// Creates a query from the words of a text.
  ///
  /// The last word counts as a prefix unless white space follows it.
  init(_ text: String) {
    var folding = TextFolding()
    var all: [Term] = []
    folding.words(in: text) { term, _ in all.append(term) }
    isImpossible = all.isEmpty
    let isFinished = text.unicodeScalars.last?.properties.isWhitespace ?? true
    if !isFinished, let last = all.popLast() { prefixes = [last] }
    // A repeated word would add its score twice.
    var seen: Set<Term> = []
    words = all.filter { seen.insert($0).inserted }
  }

  /// Returns a query for the words and prefixes of two queries.
  func intersection(_ other: TextQuery) -> TextQuery {
    var both = self
    both.isImpossible = isImpossible || other.isImpossible
    both.words += other.words.filter { !words.contains($0) }
    both.prefixes += other.prefixes.filter { !prefixes.contains($0) }
    return both
  }

  /// Returns true if a record with these texts matches.
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

  /// Returns the position of the query's word or prefix that a word of a text matches, or `nil` if it matches none.
  ///
  /// Positions count the words, then the prefixes.
  func place(of term: Term) -> Int? {
    // Whole words first: a word of the query may also begin with one of its prefixes.
    words.firstIndex(of: term) ?? prefixes.firstIndex { term.hasPrefix($0) }.map { words.count + $0 }
  }
}

/// Ranking by Okapi BM25, with k₁ = 1.2 and b = 0.75.
///
/// After S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. The weight of a word is `ln(1 + (N -
/// n + 0.5) / (n + 0.5))` for n of N records, which is never negative (as in Apache Lucene).
struct BM25: Sendable {
  private static let k1 = 1.2
  private static let b = 0.75
  private let records: Double
  private let averageLength: Double
  /// Norms of texts shorter than 256 words, which are most, because a table look-up is faster than a division.
  private var norms: [Double] = []

  init(records: Int, words: Int) {
    self.records = Double(records)
    // An empty index has no average, and a division by 0 would make every score NaN.
    averageLength = records == 0 ? 1 : Double(words) / Double(records)
    norms = (0..<256).map { Self.norm(length: $0, average: averageLength) }
  }

  /// Returns the weight of a word that `matches` records hold.
  func weight(matches: Int) -> Double {
    log1p((records - Double(matches) + 0.5) / (Double(matches) + 0.5))
  }

  /// Returns the part of the denominator that depends on a text's length in words.
  private func norm(length: UInt32) -> Double {
    length < 256 ? norms[Int(length)] : Self.norm(length: length, average: averageLength)
  }

  private static func norm(length: UInt32, average: Double) -> Double {
    k1 * (1 - b + b * Double(length) / average)
  }

  /// Returns the upper bound of the score that a word of this weight adds.
  static func limit(weight: Double) -> Double { weight * (k1 + 1) }

  /// Returns the score that a word adds to a record.
  func score(weight: Double, frequency: UInt32, length: UInt32) -> Double {
    weight * (Double(frequency) * (Self.k1 + 1)) / (Double(frequency) + norm(length: length))
  }
}
