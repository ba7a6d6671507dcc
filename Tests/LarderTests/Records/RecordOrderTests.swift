import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Records are visited in the order of their ids, from wherever it begins, whatever has changed since the block of records was made.
@Suite(.timeLimit(.minutes(15))) struct RecordOrderTests {
  @Test(arguments: [KeyOrder.bytes, .numbers])
  func aVisitBeginsBehindItsKey(_ order: KeyOrder) throws {
    for seed in Seeds.list(30, for: "orders of records") {
      var random = SeededGenerator(seed)
      func slot(_ number: Int, _ revision: Int) -> RecordSlot {
        RecordSlot(key: RecordKey("\(number)"), revision: Revision(UInt64(revision)), schemaVersion: 1, value: Data())
      }
      func any() -> Int { random.int(-60..<60) }
      let first = (-60..<60).shuffled(using: &random).prefix(random.int(0..<80)).map { slot($0, 1) }
      // Once in the order of the bytes, as from a file, and once not.
      var map = RecordMap(Bool.random(using: &random) ? first.sorted { $0.key < $1.key } : first)
      for number in 0..<random.int(0..<60) {
        if Bool.random(using: &random) { try map.upsert(slot(any(), 2 + number)) } else { try map.remove(RecordKey("\(any())")) }
      }
      let sorted = try map.ordered().sorted { order.isBefore($0.key, $1.key) }
      for start in [nil, RecordKey("\(any())"), RecordKey("\(any())")] {
        let expected = sorted.filter { slot in start.map { order.isBefore($0, slot.key) } ?? true }
        let limit = random.int(1..<100)
        var visited: [RecordSlot] = []
        try map.visitOrdered(by: order, after: start) { slot in
          visited.append(slot)
          return visited.count < limit
        }
        #expect(visited.elementsEqual(expected.prefix(limit), by: ===), "replay with LARDER_SEED=\(seed)")
      }
    }
  }
}
