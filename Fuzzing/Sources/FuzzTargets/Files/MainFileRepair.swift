import Foundation

@testable import Larder

/// A repair of a main file's checksums and of its seal, so that what they guard is tried too.
enum MainFileRepair {
  /// Puts the right checksum into each line that has the form of one, and the right seal behind them.
  static func mend(_ bytes: [UInt8]) -> [UInt8] {
    var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) }
    var seal = SealHash()
    var count = 0
    guard !lines.isEmpty, let header = mendHeader(&lines[0]) else { return bytes }
    seal.add(header)
    for index in lines.indices.dropFirst() {
      if let checksum = mendLine(&lines[index]) {
        seal.add(checksum)
        count += 1
      } else if lines[index].starts(with: #"],"count""#.utf8) {
        lines[index] = Array(#"],"count":\#(count),"hash":"\#(Hexadecimal.string(seal.value))"}"#.utf8)
      }
    }
    return Array(lines.joined(separator: [0x0A]))
  }

  private static func mendHeader(_ line: inout [UInt8]) -> UInt32? {
    guard let end = line.firstRange(of: Array(#","crc":""#.utf8)) else { return nil }
    let checksum = line.withUnsafeBytes { CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0[..<end.lowerBound])) }
    put(checksum, at: end.upperBound, &line)
    return checksum
  }

  /// Returns the checksum of a record's line; `nil` for what is none.
  private static func mendLine(_ line: inout [UInt8]) -> UInt32? {
    let found: (record: StoredRecord, offset: Int)? = line.withUnsafeBytes { bytes in
      var cursor = ByteCursor(bytes, file: "")
      do throws(RepositoryError) {
        try cursor.expect(#"{"in":""#)
        let name = try cursor.string()
        try cursor.expect(#","id":""#)
        let key = try cursor.string()
        try cursor.expect(#","rev":"#)
        let revision = try cursor.number()
        try cursor.expect(#","version":"#)
        let version = try cursor.number()
        try cursor.expect(#","crc":""#)
        let offset = cursor.offset
        // A text that is not UTF-8 has no checksum that fits it.
        guard version <= UInt64(Int32.max), !(name + key).unicodeScalars.contains("\u{FFFD}"), bytes.count >= offset + 11 else {
          return nil
        }
        cursor.offset += 8
        let end = bytes.lastIndex(of: UInt8(ascii: "}")) ?? bytes.count
        let isDeleted = cursor.skip(#"","deleted":true"#)
        let start = min(offset + 8 + #"","value":"#.utf8.count, end)
        let value = isDeleted ? nil : Data(bytes[start..<end])
        let record = StoredRecord(
          collection: name, key: RecordKey(key), revision: Revision(revision), schemaVersion: Int(version), value: value)
        return (record, offset)
      } catch { return nil }
    }
    guard let found else { return nil }
    put(found.record.checksum, at: found.offset, &line)
    return found.record.checksum
  }

  private static func put(_ checksum: UInt32, at offset: Int, _ line: inout [UInt8]) {
    let digits = Array(Hexadecimal.string(checksum).utf8)
    guard offset + digits.count <= line.count else { return }
    line.replaceSubrange(offset..<(offset + digits.count), with: digits)
  }
}
