import Foundation
import Testing

@testable import Larder

@Suite(.enabled(if: isMeasuring)) struct TextMeasurement {
  /// A word by its rank: word n occurs about 1/n as often as the first (Zipf).
  private func text(_ random: inout SeededGenerator) -> String {
    (0..<random.int(15..<26)).map { _ in
      let rank = Int(pow(20_000, Double.random(in: 0..<1, using: &random)))
      return "w\(String(rank * 7_919 % 20_011, radix: 36))"
    }.joined(separator: " ")
  }

  @Test func whatTheTextIndexCosts() {
    var random = SeededGenerator(1)
    let records = (0..<100_000).map { (slot("record-\(100_000 + $0)"), [text(&random)]) }
    var index = TextIndex()
    measure("bulk build of 100 000 records of 20 words", rounds: 3) { _ in index = TextIndex(records) }
    var sizes: [(String, Int)] = []
    index.terms.forEachLeaf { for entry in $0 { sizes.append((entry.term.text, entry.postings.count)) } }
    sizes.sort { $0.1 > $1.1 }
    print(sizes.prefix(8))
    let common = sizes.first { $0.1 < 31_000 } ?? sizes[0]
    let other = sizes.first { $0.1 < 29_000 } ?? sizes[0]
    let queries = [
      common.0, sizes[0].0, "\(common.0) \(other.0)", "\(sizes[0].0) \(sizes[1].0)", "\(common.0) \(sizes[0].0)", "w", "wa", "wab",
      "\(sizes[500].0) w",
    ]
    for query in queries {
      measure("search \(query), top 50 of \(index.search(query).count)") { _ in _ = index.search(query, limit: 50) }
    }
    measure("search \(sizes[0].0), all", rounds: 20) { _ in _ = index.search(sizes[0].0) }
    measure("estimate w") { _ in _ = index.estimate(TextQuery("w")) }
    let texts = (0..<2_000).map { _ in [text(&random)] }
    measure("insert", rounds: 1_000) { index.insert(slot("new-\($0)"), texts: texts[$0]) }
    var copies: [TextIndex] = []
    measure("update beside a copy", rounds: 1_000) {
      copies = [index]
      index.update(slot("new-\($0)"), from: texts[$0], to: texts[1_000 + $0])
    }
    measure("two updates of one word beside a copy", rounds: 500) {
      copies = [index]
      index.update(slot("new-\($0)"), from: texts[1_000 + $0], to: texts[1_000 + $0].map { $0 + " pier" })
      index.update(slot("new-\($0)"), from: texts[1_000 + $0].map { $0 + " pier" }, to: texts[1_000 + $0])
    }
    measure("insert beside a copy", rounds: 500) {
      copies = [index]
      index.insert(slot("more-\($0)"), texts: texts[$0])
    }
    measure("update alone", rounds: 1_000) {
      copies = []
      index.update(slot("new-\($0)"), from: texts[1_000 + $0], to: texts[$0])
    }
    measure("remove", rounds: 1_000) { index.remove(RecordKey("new-\($0)"), texts: texts[$0]) }
    let japanese = (0..<20_000).map { (slot("j\($0)"), [String(repeating: "東京タワーとカフェ、Zürich café ", count: 2)]) }
    measure("bulk build of 20 000 records beyond ASCII", rounds: 3) { _ in _ = TextIndex(japanese) }
    #expect(copies.isEmpty)
  }
}
