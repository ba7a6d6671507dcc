import Foundation
import Testing

@testable import Larder

/// The text index against counting all words of all records.
@Suite(.timeLimit(.minutes(15))) struct TextIndexTests {
  @Test func aSearchRanksAsCountingDoesWhileRecordsComeAndGo() throws {
    for seed in Seeds.list(Torture.count(2, full: 12), for: "text index") {
      var world = TextWorld(seed: seed)
      for number in 0..<world.random.int(0..<400) {
        world.documents["k\(number)"] = .init(key: "k\(number)", texts: world.texts())
      }
      let ordered = world.documents.values.sorted { RecordKey($0.key) < RecordKey($1.key) }
      let parts = world.random.int(1..<4)
      var index = TextIndex(
        (0..<parts).map { part in
          TextPortion(ordered[ordered.count * part / parts..<ordered.count * (part + 1) / parts].map { (slot($0.key), $0.texts) })
        })
      try compare(index, &world, seed)
      for _ in 0..<4 {
        let (old, oldWorld) = (index, world)
        for _ in 0..<200 { edit(&index, &world) }
        try compare(index, &world, seed)
        // The copy from before is as it was.
        var unchanged = oldWorld
        try compare(old, &unchanged, seed)
      }
      for (key, document) in world.documents.sorted(by: { $0.key < $1.key }) { index.remove(RecordKey(key), texts: document.texts) }
      #expect(index.count == 0 && index.wordCount == 0 && index.terms.isEmpty, "LARDER_SEED=\(seed)")
    }
  }

  @Test func recordsInAnyOrderAndInNarrowGapsAreRankedByKeyWhenEqual() {
    var index = TextIndex(["z", "a"].map { (slot($0), ["pier"]) })
    // Each goes right before the last one, until there is no room between their ranks.
    let keys = (0..<200).flatMap { ["m" + String(repeating: "a", count: $0) + "b", "n" + String(repeating: "b", count: $0)] }
    for key in keys.reversed() + ["0"] { index.insert(slot(key), texts: ["pier"]) }
    let sorted = (keys + ["a", "z", "0"]).map { RecordKey($0) }.sorted().map(\.text)
    #expect(index.keys("pier") == sorted)
    #expect(index.found("pier", limit: 150).map(\.key) == Array(sorted.prefix(150)))
  }

  @Test func allWordsMustMatchAndTheLastMayBeABeginning() {
    let texts = [
      ("a", ["Lighthouse at dawn", "north pier"]), ("b", ["Light rain", "dawn"]), ("c", ["Dawning lights"]), ("d", ["", " — "]),
    ]
    let index = TextIndex(texts.map { (slot($0.0), $0.1) })
    #expect(index.count == 3)
    let cases: [(String, [String])] = [
      ("light", ["a", "b", "c"]), ("dawn light", ["a", "b"]), ("light dawn", ["b"]), ("LIGHT rain", ["b"]), ("light ", ["b"]),
      ("light\n", ["b"]),
      ("light light", ["b"]), ("dawn, pier!", ["a"]), ("house", []), ("", []), ("  … ", []), ("dawn zebra", []), ("zebra dawn", []),
    ]
    for (query, keys) in cases {
      #expect(index.keys(query).sorted() == keys, "\(query)")
      #expect(texts.filter { TextQuery(query).matches($0.1) }.map(\.0) == keys, "\(query)")
      #expect(index.estimate(TextQuery(query)) >= keys.count)
    }
  }

  @Test func aWordOfItsOwnComesBeforeWordsThatBeginWithIt() {
    let texts = ["lights lighting lighthouse", "light and a great many other words that are of no use to anybody", "lighter", "a light"]
    let index = TextIndex(texts.enumerated().map { (slot("k\($0.offset)"), [$0.element]) })
    #expect(index.keys("light") == ["k3", "k1", "k2", "k0"] || index.keys("light") == ["k3", "k1", "k0", "k2"])
    #expect(index.found("light", limit: 2).map(\.key) == ["k3", "k1"])
    #expect(index.keys("light ") == ["k3", "k1"])
    let both = TextQuery("lig").intersection(TextQuery("words "))
    #expect(index.search(both).map(\.slot.key.text) == ["k1"])
    #expect(index.search(both.intersection(TextQuery(" "))).isEmpty)
  }

  @Test func aLimitGivesTheBestInTheirOrder() {
    let index = TextIndex((0..<1_000).map { (slot("k\(1_000 + $0)"), ["pier" + String(repeating: " x", count: $0 % 100)]) })
    #expect(index.search("pier", limit: 5).map(\.slot.key.text) == ["k1000", "k1100", "k1200", "k1300", "k1400"])
    #expect(index.search("pier", limit: 0).isEmpty)
  }

  @Test func anInsertedKeyIsNotInsertedAgainAndAnUpdateReplacesIt() {
    var index = TextIndex([(slot("a"), ["pier"])])
    let isInserted = index.insert(slot("a"), texts: ["beach"])
    #expect(!isInserted && index.keys("beach").isEmpty)
    index.update(slot("a"), from: ["pier"], to: ["beach"])
    #expect(index.keys("beach") == ["a"] && index.keys("pier").isEmpty)
    let newer = slot("a")
    index.update(newer, from: ["beach"], to: ["beach"])
    #expect(index.search("beach").first?.slot === newer)
    // Texts that are not those of before leave nothing behind.
    index.remove(RecordKey("a"), texts: ["summit"])
    #expect(index.terms.isEmpty && index.count == 0)
    let isRemoved = index.remove(RecordKey("a"), texts: [])
    #expect(!isRemoved)
  }

  /// A type may decode the same bytes to other texts at each time.
  @Test(arguments: [["tide"], ["pier", "pier"], ["pier", "tide"], ["tide", "tide"]])
  func anUpdateFromOtherTextsLeavesNoneOfTheWordsBehind(old: [String]) {
    for indexed in [["pier", "rock"], ["pier"], ["rock"]] where Set(indexed) != Set(old) {
      var index = TextIndex([(slot("a"), indexed), (slot("b"), ["pier"])])
      index.update(slot("a"), from: old, to: ["beach", "pier"])
      #expect(index.keys("pier") == ["b", "a"] && index.keys("beach") == ["a"])
      #expect(index.keys("rock").isEmpty && index.keys("tide").isEmpty)
      index.remove(RecordKey("a"), texts: ["beach", "pier"])
      #expect(index.keys("pier") == ["b"] && index.terms.count == 1)
    }
  }

  @Test func wordsThatDifferInOneByteAreToldApart() {
    var index = TextIndex([(slot("a"), ["1 2"])])
    index.update(slot("a"), from: ["0 3"], to: ["9"])
    #expect(index.keys("9") == ["a"] && index.keys("1").isEmpty && index.keys("2").isEmpty)
    var sums: [UInt32: [Int]] = [:]
    for first in 0..<64 {
      for second in first..<64 { sums[Term(text: "\(first)").digest &+ Term(text: "\(second)").digest, default: []].append(first) }
    }
    #expect(sums.values.allSatisfy { $0.count == 1 })
  }

  /// The second change of a record is one of the words that the first one has left.
  @Test func twoChangesOfARecordInABatchAreBothWhole() {
    for second in [["rock"], ["beach"]] {
      var index = TextIndex([(slot("a"), ["rock"]), (slot("b"), ["pier"])])
      index.apply([
        TextChange(old: (slot("a"), ["rock"]), new: (slot("a"), ["beach"])),
        TextChange(old: (slot("a"), second), new: (slot("a"), ["tide"])),
      ])
      #expect(index.keys("tide") == ["a"] && index.keys("rock").isEmpty && index.keys("beach").isEmpty)
      #expect(index.terms.count == 2)
    }
  }

  private func edit(_ index: inout TextIndex, _ world: inout TextWorld) {
    let key = "k\(world.random.int(0..<500))"
    let texts = world.texts()
    if let old = world.documents[key] {
      if world.random.chance(50) {
        world.documents[key] = nil
        index.remove(RecordKey(key), texts: old.texts)
      } else {
        world.documents[key]?.texts = texts
        index.update(slot(key), from: old.texts, to: texts)
      }
    } else {
      world.documents[key] = .init(key: key, texts: texts)
      index.insert(slot(key), texts: texts)
    }
  }

  private func compare(_ index: TextIndex, _ world: inout TextWorld, _ seed: UInt64) throws {
    try #require(index.count == world.documents.values.count { !$0.words.isEmpty }, "LARDER_SEED=\(seed)")
    for _ in 0..<25 {
      let query = world.text(1..<4) + (world.random.chance(20) ? " " : "")
      let expected = world.search(query)
      try #require(index.found(query).elementsEqual(expected, by: ==), "\(query), LARDER_SEED=\(seed)")
      try #require(index.found(query, limit: 7).elementsEqual(expected.prefix(7), by: ==), "\(query), LARDER_SEED=\(seed)")
      try #require(index.estimate(TextQuery(query)) >= expected.count, "\(query), LARDER_SEED=\(seed)")
    }
  }
}
