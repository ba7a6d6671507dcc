import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder

/// The numbers by which index values and keys are compared first: they must never say otherwise than the values.
@Suite struct IndexHeadTests {
  /// Values at the limits of what a head holds, and texts whose written form is not the one in which they are compared.
  private static let values: [IndexValue] = {
    let limit: Int64 = 1 << 55
    let integers: [Int64] = [0, 1, -1, 255, limit - 2, limit - 1, limit, 1 - limit, -limit, -limit - 1, .max, .min]
    let large: [UInt64] = [UInt64(Int64.max) + 1, UInt64(Int64.max) + 2, .max]
    let reals: [Double] = [0, 1, -1, 0.1, 0.1.nextUp, -0.1, (-0.1).nextUp, .infinity, -.infinity, 1e300, .leastNonzeroMagnitude, 35.158]
    let texts: [String] = [
      "", "a", "a\0", "abcdef", "abcdefg", "abcdefg\0", "abcdefgh", "abcdefghijklmno", "abcdefghijklmnop", "abcdefghijklmnoq", "e\u{301}",
      "\u{E9}", "abcdefe\u{301}", "abcdefg\u{301}", "abcdef\u{E9}", "K", "\u{212A}", "abcdefghijklmne\u{301}", "日本", "z",
    ]
    let identifiers = [
      "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002", "FF000000-0000-0000-0000-000000000000",
    ]
    var values: [IndexValue] = [.null, .notANumber, IndexValue(false), IndexValue(true)]
    values += integers.map { IndexValue($0) }
    values += large.map { IndexValue($0) }
    values += reals.map { IndexValue($0) }
    values += texts.map { IndexValue($0) }
    values += identifiers.compactMap { UUID(uuidString: $0).map { IndexValue($0) } }
    return values
  }()

  /// Whether the standard library orders two texts otherwise than texts that are equal to them.
  ///
  /// It sets "Ke" before the Kelvin sign, which equals "K". No order of numbers agrees with that, nor does any sorted list.
  private func isContradictory(_ left: IndexValue, _ right: IndexValue) -> Bool {
    guard case (.text(let first), .text(let second)) = (left.form, right.form) else { return false }
    let (form, other) = (first.precomposedStringWithCanonicalMapping, second.precomposedStringWithCanonicalMapping)
    return form == first && other == second && (form < other) != (first < second)
  }

  private func check(_ left: IndexValue, _ right: IndexValue) -> Bool {
    if isContradictory(left, right) || isContradictory(right, left) { return true }
    for descending in [false, true] {
      let order = IndexEntry.Order(descending: [descending])
      let (first, second) = (order.digest([left]), order.digest([right]))
      if left == right, first.digest != second.digest { return false }
      if first.digest == second.digest, first.isExact, left != right { return false }
      if (descending ? right < left : left < right), second.digest < first.digest { return false }
    }
    return true
  }

  @Test func anEntryGivesItsValuesBack() {
    let slot = RecordSlot(key: RecordKey("k"), revision: .zero, schemaVersion: 1, value: Data())
    for descending in [[], [true], [false, true], [true, true]] {
      func entry(_ values: [IndexValue]) -> IndexEntry { IndexEntry(values: values, slot: slot, order: .init(descending: descending)) }
      for value in Self.values {
        #expect(entry([value]).values == [value] && entry([value]).hasNull == (value == .null))
        #expect(entry([value, value, value]).values == [value, value, value])
        for other in Self.values {
          let pair = entry([value, other])
          #expect(pair.values == [value, other] && pair.hasValues(of: entry([value, other])))
          #expect(pair.hasValues(of: entry([value, value])) == (value == other), "\(value) \(other)")
          #expect(pair.hasValues(of: entry([other, other]), inFirst: 1) == (value == other))
        }
      }
    }
    #expect(entryHasNoValues.values.isEmpty && entryHasNoValues.hasValues(of: entryHasNoValues))
    #expect(MemoryLayout<IndexEntry>.stride == 40)
  }

  private var entryHasNoValues: IndexEntry {
    IndexEntry(values: [], slot: RecordSlot(key: RecordKey("k"), revision: .zero, schemaVersion: 1, value: Data()))
  }

  @Test func digestsNeverContradictTheValues() {
    for left in Self.values {
      for right in Self.values { #expect(check(left, right), "\(left) \(right)") }
    }
    for seed in Seeds.list(20, for: "heads") {
      var random = SeededGenerator(seed)
      let letters = ["a", "b", "e", "\u{301}", "\u{E9}", "\u{323}", "K", "\u{212A}", "\0", "z", "日"]
      func text() -> IndexValue {
        IndexValue(
          (0..<Int.random(in: 0...20, using: &random)).map { _ in letters[Int.random(in: 0..<letters.count, using: &random)] }.joined())
      }
      func number() -> IndexValue { IndexValue(Double(bitPattern: .random(in: 0...(.max), using: &random))) }
      for _ in 0..<2_000 {
        let (left, right) = (text(), text())
        // An expectation costs more than the comparison.
        if !check(left, right) { Issue.record("\(left) \(right); replay with LARDER_SEED=\(seed)") }
        if !check(number(), number()) { Issue.record("replay with LARDER_SEED=\(seed)") }
      }
    }
  }

  @Test func headsNeverContradictTheKeys() {
    let texts = [
      "", "a", "a\0", "abcdefgh", "abcdefghi", "é", "10", "9", "-1", "-10", "-9", "0", "12345678", "12345679", "-12345678", "-12345679",
    ]
    for order in [KeyOrder.bytes, .numbers] {
      let keys = (order.isOfBytes ? texts : texts.filter { Int($0) != nil }).map { RecordKey($0) }
      for left in keys {
        for right in keys where order.isBefore(left, right) { #expect(order.head(of: left) <= order.head(of: right)) }
      }
      let slots = keys.shuffled().map { RecordSlot(key: $0, revision: .zero, schemaVersion: 1, value: Data()) }
      #expect(order.sorted(slots).map(\.key) == keys.sorted { order.isBefore($0, $1) })
    }
  }

  @Test func mergedPortionsAreSortedEntries() {
    for seed in Seeds.list(10, for: "portions") {
      var random = SeededGenerator(seed)
      let words = ["a", "abcdefgh", "abcdefgi", "é", "abcdefghijklmnopq", "abcdefghijklmnopr"]
      let entries = (0..<200).map { number in
        let slot = RecordSlot(key: RecordKey("\(number)"), revision: .zero, schemaVersion: 1, value: Data())
        let values = [IndexValue(words[Int.random(in: 0..<6, using: &random)]), IndexValue(Int64.random(in: 0...2, using: &random))]
        return IndexEntry(values: values, slot: slot, order: .init(descending: [seed % 2 == 0, seed % 3 == 0]))
      }
      let parts = stride(from: 0, to: 200, by: 71).map { OrderedPortion(Array(entries[$0..<min($0 + 71, 200)])) }
      let joined = OrderedPortion.joined(parts).map(\.slot.key)
      #expect(joined == entries.sorted().map(\.slot.key), "replay with LARDER_SEED=\(seed)")
    }
    #expect(OrderedPortion.joined([]).isEmpty)
  }
}
