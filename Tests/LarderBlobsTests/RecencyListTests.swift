import Foundation
import TestSupport
import Testing

@testable import LarderBlobs

@Suite("The order of use", .timeLimit(.minutes(10)))
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

  @Test func aDigestIsThatOfTheStandard() {
    // FIPS 180-4, and the examples of NIST for it.
    #expect(SHA256Digest.text(of: Data()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(SHA256Digest.text(of: Data("abc".utf8)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    var digest = SHA256Digest()
    for _ in 0..<1000 { digest.add(Data(repeating: UInt8(ascii: "a"), count: 1000)) }
    #expect(digest.text == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
  }
}
