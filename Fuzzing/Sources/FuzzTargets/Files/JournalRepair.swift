@testable import Larder

/// A repair of a journal's checksums, so that what they guard is tried too.
enum JournalRepair {
  /// Puts the right checksums into a header, and into all frames that follow each other from there.
  /// - Parameter extending: Whether the zero bytes that belong behind the last frame are added.
  static func mend(_ bytes: inout [UInt8], extending: Bool) {
    if extending { bytes += [UInt8](repeating: 0, count: JournalFormat.terminatorSize) }
    guard bytes.count >= JournalFormat.headerSize else { return }
    put(JournalFormat.magic, at: 0, &bytes)
    put(checksum(bytes, 0..<(JournalFormat.headerSize - 4), seed: 0), at: JournalFormat.headerSize - 4, &bytes)
    let seed: UInt32 = number(at: JournalFormat.headerSize - 4, bytes)
    var offset = JournalFormat.headerSize
    while offset + JournalFormat.frameHeaderSize <= bytes.count, number(at: offset, bytes) == JournalFormat.frameMagic {
      let payload = Int(number(at: offset + 4, bytes) as UInt32)
      let start = offset + JournalFormat.frameHeaderSize
      put(checksum(bytes, offset..<(start - 4), seed: seed), at: start - 4, &bytes)
      guard start + payload + JournalFormat.frameTrailerSize <= bytes.count else { return }
      mendOperations(start..<(start + payload), &bytes)
      put(checksum(bytes, start..<(start + payload), seed: seed), at: start + payload, &bytes)
      offset = start + payload + JournalFormat.frameTrailerSize
    }
  }

  private static func mendOperations(_ range: Range<Int>, _ bytes: inout [UInt8]) {
    var offset = range.lowerBound
    while offset + JournalFormat.operationHeaderSize <= range.upperBound {
      let kind: UInt32 = number(at: offset, bytes)
      let name = offset + JournalFormat.operationHeaderSize
      let key = name + Int(kind >> 1)
      let value = key + Int(number(at: offset + 4, bytes) as UInt32)
      let end = value + Int(number(at: offset + 8, bytes) as UInt32)
      guard end <= range.upperBound else { return }
      let record = StoredRecord(
        collection: String(decoding: bytes[name..<key], as: UTF8.self), key: RecordKey(String(decoding: bytes[key..<value], as: UTF8.self)),
        revision: Revision(number(at: offset + 16, bytes)), schemaVersion: Int(number(at: offset + 12, bytes) as UInt32),
        value: kind & 1 == 0 ? nil : .init(bytes[value..<end]))
      put(record.checksum, at: offset + 24, &bytes)
      offset = end
    }
  }

  private static func number<Number: FixedWidthInteger>(at offset: Int, _ bytes: [UInt8]) -> Number {
    bytes.withUnsafeBytes { $0.number(at: offset) }
  }

  private static func put<Number: FixedWidthInteger>(_ number: Number, at offset: Int, _ bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.littleEndian) { bytes.replaceSubrange(offset..<(offset + $0.count), with: $0) }
  }

  private static func checksum(_ bytes: [UInt8], _ range: Range<Int>, seed: UInt32) -> UInt32 {
    bytes.withUnsafeBytes { CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0[range]), seed: seed) }
  }
}
