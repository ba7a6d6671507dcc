import Foundation

@testable import Larder

/// Records with texts of words between spaces, ranked by counting them all.
struct TextWorld {
  struct Document {
    var key: String
    var texts: [String]
    var words: [String] { texts.flatMap { $0.split(separator: " ") }.map { $0.lowercased() } }
  }

  var documents: [String: Document] = [:]
  var random: SeededGenerator
  private static let syllables = ["ka", "Ri", "to", "na", "mo", "se", "LU", "da"]

  init(seed: UInt64) { random = SeededGenerator(seed) }

  /// Some words are common, most are rare.
  mutating func word() -> String {
    let count = random.chance(40) ? 1 : random.int(1..<4)
    return (0..<count).map { _ in Self.syllables[random.int(0..<Self.syllables.count)] }.joined()
  }

  mutating func text(_ words: Range<Int>) -> String {
    let count = random.int(words)
    return (0..<count).map { _ in word() }.joined(separator: " ")
  }

  mutating func texts() -> [String] { [text(0..<6), text(0..<15)] }

  func search(_ query: String) -> [(key: String, score: Double)] {
    var words = query.split(separator: " ").map { $0.lowercased() }
    guard !words.isEmpty else { return [] }
    let prefix = query.hasSuffix(" ") ? nil : words.popLast()
    let all = documents.values.map { (key: $0.key, words: $0.words) }.filter { !$0.words.isEmpty }
    let average = Double(all.reduce(0) { $0 + $1.words.count }) / Double(all.count)
    var tests: [(String) -> Bool] = []
    for (place, word) in words.enumerated() where !words[..<place].contains(word) { tests.append { $0 == word } }
    if let prefix { tests.append { $0.hasPrefix(prefix) } }
    // Scores are added from the rarest word on.
    let holders = tests.map { test in all.count { $0.words.contains(where: test) } }
    let order = tests.indices.sorted { (holders[$0], $0) < (holders[$1], $1) }
    tests = order.map { tests[$0] }
    let weights = order.map { log1p((Double(all.count) - Double(holders[$0]) + 0.5) / (Double(holders[$0]) + 0.5)) }
    // A prefix that is a word of its own counts more than all words together.
    let bonus = weights.reduce(1) { $0 + $1 * 2.2 }
    var found: [(key: String, score: Double)] = []
    for document in all {
      let frequencies = tests.map { test in Double(document.words.count(where: test)) }
      guard !frequencies.contains(0) else { continue }
      let norm = 1.2 * (1 - 0.75 + 0.75 * Double(document.words.count) / average)
      let start = prefix.map { document.words.contains($0) } ?? false ? bonus : 0
      found.append((document.key, zip(weights, frequencies).reduce(start) { $0 + $1.0 * ($1.1 * 2.2) / ($1.1 + norm) }))
    }
    return found.sorted { $0.score == $1.score ? RecordKey($0.key) < RecordKey($1.key) : $0.score > $1.score }
  }
}

extension TextIndex {
  func found(_ query: String, limit: Int = .max) -> [(key: String, score: Double)] {
    search(query, limit: limit).map { ($0.slot.key.text, $0.score) }
  }

  func keys(_ query: String) -> [String] { found(query).map(\.key) }
}
