internal import Foundation

/// The words that a record must hold: each of them, and for each prefix one that begins with it.
struct TextQuery: Hashable, Sendable {
  /// The words that are asked for as they are, in order, without repetition.
  private(set) var words: [Term] = []
  /// The beginnings of words, in order, without repetition.
  private(set) var prefixes: [Term] = []
  /// Whether nothing matches, because a text has no words.
  private(set) var isImpossible = false

  /// Takes the words of a text.
  ///
  /// The last word may be the beginning of one, unless white space follows it: then it is finished.
  init(_ text: String) {
    var folding = TextFolding()
    var all: [Term] = []
    folding.words(in: text) { term, _ in all.append(term) }
    isImpossible = all.isEmpty
    let isFinished = text.unicodeScalars.last?.properties.isWhitespace ?? true
    if !isFinished, let last = all.popLast() { prefixes = [last] }
    var seen: Set<Term> = []
    words = all.filter { seen.insert($0).inserted }
  }

  /// Returns a query for what both ask for.
  func intersection(_ other: TextQuery) -> TextQuery {
    var both = self
    both.isImpossible = isImpossible || other.isImpossible
    both.words += other.words.filter { !words.contains($0) }
    both.prefixes += other.prefixes.filter { !prefixes.contains($0) }
    return both
  }

  /// Whether a record with these texts is found.
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

  /// Returns the position of what a word of a text matches, among the words and behind them the prefixes; `nil` when it matches nothing.
  func place(of term: Term) -> Int? {
    words.firstIndex(of: term) ?? prefixes.firstIndex { term.hasPrefix($0) }.map { words.count + $0 }
  }
}

/// Ranking by Okapi BM25, with k₁ = 1.2 and b = 0.75.
///
/// After S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. The weight of a word is
/// `ln(1 + (N - n + 0.5) / (n + 0.5))` for n of N records, which is never negative (as Apache Lucene has it).
struct BM25: Sendable {
  private static let k1 = 1.2
  private static let b = 0.75
  private let records: Double
  private let averageLength: Double
  /// Those of short texts, which are most; a look is faster than a division.
  private var norms: [Double] = []

  init(records: Int, words: Int) {
    self.records = Double(records)
    averageLength = records == 0 ? 1 : Double(words) / Double(records)
    norms = (0..<256).map { Self.norm(length: $0, average: averageLength) }
  }

  func weight(matches: Int) -> Double {
    log1p((records - Double(matches) + 0.5) / (Double(matches) + 0.5))
  }

  /// Returns what a length adds to the denominator of each word.
  private func norm(length: UInt32) -> Double {
    length < 256 ? norms[Int(length)] : Self.norm(length: length, average: averageLength)
  }

  private static func norm(length: UInt32, average: Double) -> Double {
    k1 * (1 - b + b * Double(length) / average)
  }

  /// Returns what a word never adds more than.
  static func limit(weight: Double) -> Double { weight * (k1 + 1) }

  /// Returns what a word adds to the score of a record.
  func score(weight: Double, frequency: UInt32, length: UInt32) -> Double {
    weight * (Double(frequency) * (Self.k1 + 1)) / (Double(frequency) + norm(length: length))
  }
}
