internal import Foundation

/// The words that a record must hold: each of them, and one that begins with the last.
struct TextQuery: Hashable, Sendable {
  /// Each word but the last, in order, without repetition.
  let words: [Term]
  /// The last word, or `nil` if there is none, which matches nothing.
  let prefix: Term?

  init(_ text: String) {
    var folding = TextFolding()
    var all: [Term] = []
    folding.words(in: text) { term, _ in all.append(term) }
    prefix = all.popLast()
    var seen: Set<Term> = []
    words = all.filter { seen.insert($0).inserted }
  }

  /// Whether a record with these texts is found.
  func matches(_ texts: [String]) -> Bool {
    guard let prefix else { return false }
    var folding = TextFolding()
    var missing = Set(words)
    var hasPrefix = false
    for text in texts {
      folding.words(in: text) { term, _ in
        missing.remove(term)
        hasPrefix = hasPrefix || term.hasPrefix(prefix)
      }
    }
    return hasPrefix && missing.isEmpty
  }
}

/// Ranking by Okapi BM25, with k₁ = 1.2 and b = 0.75.
///
/// After S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. The weight of a word is `ln(1 + (N - n + 0.5) / (n + 0.5))` for n of N records, which is never negative (as Apache Lucene has it).
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

  /// What a length adds to the denominator of each word.
  private func norm(length: UInt32) -> Double {
    length < 256 ? norms[Int(length)] : Self.norm(length: length, average: averageLength)
  }

  private static func norm(length: UInt32, average: Double) -> Double {
    k1 * (1 - b + b * Double(length) / average)
  }

  /// What a word never adds more than.
  static func limit(weight: Double) -> Double { weight * (k1 + 1) }

  /// What a word adds to the score of a record.
  func score(weight: Double, frequency: UInt32, length: UInt32) -> Double {
    weight * (Double(frequency) * (Self.k1 + 1)) / (Double(frequency) + norm(length: length))
  }
}
