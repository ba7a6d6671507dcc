import Foundation
import TestSupport
import Testing

@testable import LarderBlobs

@Suite("The order of use", .timeLimit(.minutes(15)))
struct RecencyListTests {
  /// Against an array that is reordered the slow way.
  @Test func theOrderIsThatOfTheLastUse() {
    for seed in Seeds.list(20, for: "theOrderIsThatOfTheLastUse") {
      var generator = SeededGenerator(seed)
      var list = RecencyList<Int, Int>()
      var model: [(key: Int, value: Int)] = []
      for step in 0..<500 {
        let key = generator.int(0..<20)
        let old = model.firstIndex { $0.key == key }
        switch generator.int(0..<3) {
        case 0:
          #expect(list.use(key, step) == old.map { model.remove(at: $0).value })
          model.append((key, step))
        case 1:
          #expect(list.use(key) == old.map { model[$0].value })
          if let old { model.append(model.remove(at: old)) }
        default:
          #expect(list.remove(key) == old.map { model.remove(at: $0).value })
        }
        #expect(Array(list.keys) == model.map(\.key))
        #expect(list.count == model.count && list.leastRecent == model.first?.key)
        #expect(list[key] == model.first { $0.key == key }?.value)
      }
    }
  }
}
