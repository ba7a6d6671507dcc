import Foundation
import Testing

@testable import Larder

/// A key is its bytes, in whatever form it is kept: the texts of UUIDs are numbers in memory, and nothing else is.
@Suite(.timeLimit(.minutes(15))) struct RecordKeyTests {
  @Test func theTextOfAUUIDComesBack() {
    for id in (0..<1_000).map({ _ in UUID() }) + [UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))] {
      let key = RecordKey(id.uuidString)
      #expect(key.text == id.uuidString && key.byteCount == 36)
      #expect(key == RecordKey(UUIDNumber(id)) && key.hashValue == RecordKey(UUIDNumber(id)).hashValue)
      #expect(key.withBytes { $0.elementsEqual(id.uuidString.utf8) })
    }
  }

  @Test func whatIsNearlyTheTextOfAUUIDStaysText() {
    let text = "0123ABCD-4567-89EF-FEDC-BA9876543210"
    #expect(UUIDNumber(text) != nil)
    for (position, character) in text.enumerated() {
      // A lower-case letter, the bytes beside the digits and letters, a byte above ASCII, NUL, a hyphen in a wrong place.
      for other in ["a", "/", ":", "@", "G", "`", "\0", "\u{7F}", "-", "F"] where other != String(character) {
        var changed = Array(text)
        changed[position] = Character(other)
        let key = RecordKey(String(changed))
        #expect(key.text == String(changed), "\(position) \(other)")
        #expect(key != RecordKey(text))
      }
    }
    for other in [text.lowercased(), text + "0", String(text.dropLast()), "{\(text.dropFirst(2))}", "é" + text.dropFirst(2)] {
      #expect(RecordKey(other).text == other && UUIDNumber(other) == nil)
    }
  }

  @Test func keysOrderAndDifferAsTheirBytesDo() {
    let seed = Seeds.list(1, for: "record keys")[0]
    var random = SeededGenerator(seed)
    let texts: [String] = (0..<300).map { number in
      let id = UUID(uuid: (.random(in: 0...255, using: &random), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, UInt8(number & 1)))
      return switch number % 4 {
      case 0: id.uuidString
      case 1: id.uuidString.lowercased()
      case 2: String(id.uuidString.prefix(.random(in: 0...36, using: &random)))
      default: "\(UInt8.random(in: 0...20, using: &random))"
      }
    }
    for left in texts {
      for right in texts {
        let (first, second) = (RecordKey(left), RecordKey(right))
        #expect((first < second) == left.utf8.lexicographicallyPrecedes(right.utf8), "LARDER_SEED=\(seed): \(left) \(right)")
        #expect((first == second) == left.utf8.elementsEqual(right.utf8), "LARDER_SEED=\(seed): \(left) \(right)")
      }
    }
  }

  @Test func bytesOfUTF8MakeTheSameKeyAsTheirText() {
    for text in ["", "a", "café", UUID().uuidString, UUID().uuidString.lowercased(), String(repeating: "k", count: 300)] {
      #expect(Array(text.utf8).withUnsafeBytes { RecordKey(utf8: $0) } == RecordKey(text))
    }
  }
}

extension UUIDNumber {
  fileprivate init?(_ text: String) {
    guard let number = Array(text.utf8).withUnsafeBytes({ UUIDNumber(text: $0) }) else { return nil }
    self = number
  }
}
