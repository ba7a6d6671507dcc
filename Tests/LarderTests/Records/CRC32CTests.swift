import Foundation
import Testing

@testable import Larder

/// The checksum is the one of RFC 3720, by the processor's instruction as by the table.
@Suite(.timeLimit(.minutes(15))) struct CRC32CTests {
  @Test func knownChecksumsComeOut() {
    let vectors: [(bytes: [UInt8], checksum: UInt32)] = [
      ([], 0), (Array("123456789".utf8), 0xE306_9283), ([UInt8](repeating: 0, count: 32), 0x8A91_36AA),
      ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43), (Array(0..<32), 0x46DD_794E), (Array((0..<32).reversed()), 0x113F_DB5C),
    ]
    for vector in vectors { #expect(vector.bytes.withUnsafeBytes { CRC32C.checksum($0) } == vector.checksum) }
  }

  @Test func instructionAndTableAgreeForEveryLengthAlignmentAndSplit() {
    let seed = Seeds.list(1, for: "checksums")[0]
    var random = SeededGenerator(seed)
    let bytes = (0..<600).map { _ in UInt8.random(in: 0...255, using: &random) }
    bytes.withUnsafeBytes { bytes in
      for start in 0..<9 {
        for count in 0...(bytes.count - start) {
          let region = UnsafeRawBufferPointer(rebasing: bytes[start..<(start + count)])
          let initial = UInt32.random(in: 0 ... .max, using: &random)
          var (first, second) = (CRC32C(seed: initial), CRC32C(seed: initial))
          first.update(region)
          let split = Int.random(in: 0...count, using: &random)
          second.updateByTable(UnsafeRawBufferPointer(rebasing: region[..<split]))
          second.updateByTable(UnsafeRawBufferPointer(rebasing: region[split...]))
          #expect(first.value == second.value, "LARDER_SEED=\(seed): \(start) \(count) \(split)")
        }
      }
    }
  }
}
