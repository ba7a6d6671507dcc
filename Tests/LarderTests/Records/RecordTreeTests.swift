import Foundation
import TestSupport
import Testing

@testable import Larder

/// A tree does what a dictionary does, whatever the hashes are, and its copies keep what they had.
@Suite(.timeLimit(.minutes(15))) struct RecordTreeTests {
  private static func slot(_ key: Int) -> RecordSlot {
    RecordSlot(key: RecordKey("\(key)"), revision: Revision(1), schemaVersion: 1, value: .init())
  }

  /// The bits of the hash that differ between keys: none, those of the lowest level, those of the highest, and all.
  @Test(arguments: [0, 0x1F, 0xFF << 56, UInt64.max]) func itDoesWhatADictionaryDoes(_ mask: UInt64) {
    let seed = Seeds.list(1, for: "record tree")[0]
    var random = SeededGenerator(seed)
    let hashes = (0..<120).map { _ in UInt64.random(in: 0 ... .max, using: &random) & mask }
    let keys = (0..<120).map { RecordKey("\($0)") }
    var tree = RecordTree()
    var model: [Int: RecordSlot?] = [:]
    var kept: [(tree: RecordTree, model: [Int: RecordSlot?])] = []
    func check(_ tree: RecordTree, _ model: [Int: RecordSlot?]) -> Bool {
      var found: [RecordKey: RecordSlot?] = [:]
      tree.forEach { found.updateValue($1, forKey: $0) }
      return tree.count == model.count && tree.isEmpty == model.isEmpty && found.count == model.count
        && keys.indices.allSatisfy { key in
          let (have, want) = (tree.value(forKey: keys[key], hash: hashes[key]), model[key])
          return (have == nil) == (want == nil) && (have ?? nil) === (want ?? nil) && (found[keys[key]] ?? nil) === (want ?? nil)
        } && tree.slots.count == model.values.count { $0 != nil }
    }
    for step in 0..<1_500 {
      let key = Int.random(in: 0..<120, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        let slot = Self.slot(key)
        let old = tree.updateValue(slot, forKey: keys[key], hash: hashes[key])
        let expected = model.updateValue(slot, forKey: key)
        #expect((old == nil) == (expected == nil) && (old ?? nil) === (expected ?? nil), "LARDER_SEED=\(seed)")
      case 2:
        _ = tree.updateValue(nil, forKey: keys[key], hash: hashes[key])
        model.updateValue(nil, forKey: key)
      default:
        tree.removeValue(forKey: keys[key], hash: hashes[key])
        model.removeValue(forKey: key)
      }
      if step % 100 == 0 { kept.append((tree, model)) }
    }
    for (tree, model) in kept + [(tree, model)] { #expect(check(tree, model), "LARDER_SEED=\(seed)") }
  }

  @Test func visitingEndsWhenItIsTold() {
    var tree = RecordTree()
    for key in 0..<200 { tree.updateValue(Self.slot(key), forKey: RecordKey("\(key)")) }
    var count = 0
    let isWhole = tree.visit { _, _ in
      count += 1
      return count < 7
    }
    #expect(!isWhole && count == 7)
    #expect(tree.visit { _, _ in true })
  }
}
