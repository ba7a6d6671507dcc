import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite struct JSONDepthTests {
  /// Many lengths, so that every remainder of eight bytes and more than one sum of 255 steps come up.
  @Test func bracketsAreCountedAsOneByOne() {
    let seed = UInt64.random(in: 0 ... .max)
    var numbers = SeededGenerator(seed: seed)
    for length in Array(0...70) + [2_039, 2_040, 2_041, 2_048, 4_087, 5_000] {
      for share in [0, 1, 50, 100] {
        let bytes = (0..<length).map { _ in
          Int.random(in: 0..<100, using: &numbers) < share
            ? [0x5B, 0x7B][Int.random(in: 0...1, using: &numbers)] : UInt8.random(in: 0...255, using: &numbers)
        }
        let count = bytes.withUnsafeBytes { JSONDepth.openingBrackets($0) }
        #expect(count == bytes.count { $0 == 0x5B || $0 == 0x7B }, "seed \(seed), \(length) bytes")
      }
    }
  }

  /// The bytes beside those of the brackets, and those that differ from them in one bit.
  @Test func noOtherByteIsCounted() {
    for byte in UInt8.min...UInt8.max {
      let count = [UInt8](repeating: byte, count: 3_000).withUnsafeBytes { JSONDepth.openingBrackets($0) }
      #expect(count == (byte == 0x5B || byte == 0x7B ? 3_000 : 0), "byte \(byte)")
    }
  }

  /// The limit itself is allowed, at the text's beginning and behind a string of brackets, which do not nest.
  @Test(arguments: [1, 8, 64, 128]) func oneLevelMoreThanTheLimitExceedsIt(_ limit: Int) {
    func nested(_ depth: Int) -> Data {
      Data(
        (String(repeating: "[", count: depth) + #"""# + String(repeating: "[{", count: 300) + #"""# + String(repeating: "]", count: depth))
          .utf8)
    }
    #expect(!nested(limit).withUnsafeBytes { JSONDepth.exceeds(limit, in: $0) })
    #expect(nested(limit + 1).withUnsafeBytes { JSONDepth.exceeds(limit, in: $0) })
  }
}
