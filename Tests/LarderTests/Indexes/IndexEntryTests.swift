import Foundation
import Testing

@testable import Larder

/// The order of the records in an ordered index.
@Suite struct IndexEntryTests {
  private func entry(_ values: [any IndexableValue], _ key: String, descending: [Bool] = []) -> IndexEntry {
    let slot = RecordSlot(key: RecordKey(key), revision: .zero, schemaVersion: 1, value: Data())
    return IndexEntry(values: values.map(\.indexValue), slot: slot, order: .init(descending: descending))
  }

  private func keys(_ entries: [IndexEntry]) -> String {
    entries.map(\.slot.key.text).joined()
  }

  @Test func entriesAscendByValuesThenKey() {
    let ordered = [
      entry([String?.none, 9], "z"), entry(["a", 2], "b"), entry(["a", 2], "c"), entry(["a", 10], "a"), entry(["b", 1], "d"),
    ]
    #expect(keys(ordered.shuffled().sorted()) == "zbcad")
    for (left, right) in zip(ordered, ordered.dropFirst()) {
      #expect(left < right)
      #expect(!(right < left))
      #expect(left != right)
    }
  }

  @Test func aDescendingColumnIsReversedAndTheOthersAreNot() {
    func sorted(_ columns: [Bool]) -> String {
      let mask = columns
      return keys(
        [("a", 1, "p"), ("a", 2, "q"), ("a", 2, "r"), ("b", 1, "s"), ("b", 3, "t")]
          .map { entry([$0.0, $0.1], $0.2, descending: mask) }.shuffled().sorted())
    }
    #expect(sorted([false, false]) == "pqrst")
    #expect(sorted([true, false]) == "stpqr")
    #expect(sorted([false, true]) == "qrpts")
    #expect(sorted([true, true]) == "tsqrp", "equal values ascend by key in every direction")
  }

  @Test func onlyTheFirst32ColumnsCanDescend() {
    #expect(IndexEntry.Order(descending: Array(repeating: false, count: 31) + [true, true]).descending == 1 << 31)
    func order(_ column: Int) -> Bool {
      func values(_ number: Int) -> [Int] { Array(repeating: 0, count: column) + [number] }
      return entry(values(1), "a", descending: Array(repeating: true, count: 32))
        < entry(values(2), "a", descending: Array(repeating: true, count: 32))
    }
    #expect(!order(31))
    #expect(order(32))
  }

  @Test func entriesAreEqualByValuesAndKeyWhateverTheirSlot() {
    #expect(entry(["a", 1], "k") == entry(["a", 1], "k"))
    #expect(entry(["caf\u{E9}"], "k") == entry(["cafe\u{301}"], "k"), "values are compared as texts")
    #expect(entry(["a"], "caf\u{E9}") != entry(["a"], "cafe\u{301}"), "keys are compared by their bytes")
    #expect(entry(["a", 1], "k") != entry(["a", 2], "k"))
    #expect(entry([Double.nan], "k") == entry([Double.nan], "k"))
  }

  @Test(arguments: [[false, false], [true, false], [false, true], [true, true]])
  func aPrefixBoundsTheGroupOfItsEntries(_ columns: [Bool]) {
    let mask = columns
    var tree = PersistentTree<IndexEntry>()
    for letter in ["a", "b", "c"] {
      for number in 0..<20 { for key in ["x", "y"] { tree.insert(entry([letter, number], key, descending: mask)) } }
    }
    func group(_ values: [any IndexableValue]) -> Range<Int> {
      let prefix = values.map(\.indexValue)
      return tree.rank { $0.compared(to: prefix) != .orderedAscending }..<tree.rank { $0.compared(to: prefix) == .orderedDescending }
    }
    #expect(group([]) == 0..<120)
    #expect(group(["b"]) == 40..<80)
    #expect(group(["a"]) == (columns[0] ? 80..<120 : 0..<40))
    let start = (columns[0] ? 80 : 0) + (columns[1] ? 38 - 6 : 6)
    #expect(group(["a", 3]) == start..<start + 2)
    #expect(group(["bb"]).isEmpty)
    #expect(group(["bb"]).lowerBound == (columns[0] ? 40 : 80))
  }
}
