internal import Foundation
@_spi(Inspection) internal import Larder

/// Parser of the parts of a journal, each by itself.
///
/// `Docs/Larder.docc/Formats/JournalFormat.md` describes the format.
enum JournalParts {
  static let headerSize = 64
  static let frameHeaderSize = 40
  private static let operationHeaderSize = 32

  /// Header of a journal: the store, and the main file that the journal continues.
  struct Header {
    let storeID: UUID
    let generation: UInt64
    let base: UInt64
    let salt: UInt32
    let tag: UInt32

    /// Returns the reason why the journal does not continue a main file.
    ///
    /// `nil` if it does.
    func mismatch(to main: JSONFileParts.Header) -> String? {
      if storeID != main.storeID { return "the journal belongs to another store" }
      // A checkpoint replaces the main file before the journal, so an older journal is normal and a newer one is not.
      if generation > main.generation { return "the main file is older than its journal" }
      if base > main.commit || generation == main.generation && base != main.commit { return "the journal does not continue the main file" }
      // Main files of earlier versions name no journal, and any one with fitting numbers is accepted.
      guard let next = main.journal else { return nil }
      return generation == main.generation ? tag == next ? nil : otherCopy : salt == main.folded ? nil : otherCopy
    }

    private var otherCopy: String { "the journal belongs to another copy of the main file" }
  }

  /// Frame of a journal (the commits of one sync) whose head matches its checksum.
  struct Frame {
    let offset: Int
    let commits: ClosedRange<UInt64>
    let operationCount: Int
    let payloadEnd: Int
    /// True if the payload matches its checksum too.
    let isWhole: Bool

    // The checksum of the payload follows it, in four bytes.
    var end: Int { payloadEnd + 4 }
  }

  /// Parses the header.
  ///
  /// Returns `nil` if it does not match its checksum.
  /// - Throws: `.newerSchema` for a later version of the format.
  static func header(of bytes: [UInt8], file: String) throws(RepositoryError) -> Header? {
    guard bytes.count >= headerSize, bytes.holds("LARDERJL", at: 0), let stored = bytes.number(UInt32.self, at: 60),
      stored == checksum(of: bytes[..<60]), let version = bytes.number(UInt32.self, at: 8), let salt = bytes.number(UInt32.self, at: 12),
      let generation = bytes.number(UInt64.self, at: 32), let base = bytes.number(UInt64.self, at: 40),
      let tag = bytes.number(UInt32.self, at: 48)
    else { return nil }
    // The checksum was compared before. A flipped bit in the version must not end the salvage.
    guard version <= 1 else {
      throw RepositoryError(
        .newerSchema, "the journal has a newer format", file: file, offset: 8, versions: .init(found: Int(version), supported: 1))
    }
    let id = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: uuid_t.self) }
    return Header(storeID: UUID(uuid: id), generation: generation, base: base, salt: salt, tag: tag)
  }

  /// Returns the possible seeds of the frames' checksums: the header's checksum as it is stored, and as it is computed.
  static func seeds(of bytes: [UInt8]) -> [UInt32] {
    guard bytes.count >= headerSize, let stored = bytes.number(UInt32.self, at: 60) else { return [] }
    let computed = checksum(of: bytes[..<60])
    // Damage is either in the stored checksum or in the bytes under it. The other one is still the seed.
    return stored == computed ? [stored] : [stored, computed]
  }

  /// Returns the frame at an offset.
  ///
  /// `nil` if its head does not match its checksum or its payload ends outside the file.
  static func frame(at offset: Int, in bytes: [UInt8], _ seeds: [UInt32]) -> Frame? {
    // The order of the two commits is checked, because a range with the larger one first traps.
    guard bytes.holds("LFRM", at: offset), let stored = bytes.number(UInt32.self, at: offset + 36),
      let size = bytes.number(UInt32.self, at: offset + 4), let first = bytes.number(UInt64.self, at: offset + 8),
      let last = bytes.number(UInt64.self, at: offset + 16), let count = bytes.number(UInt32.self, at: offset + 32), first > 0,
      first <= last,
      last < UInt64(Int64.max)
    else { return nil }
    let head = bytes[offset..<(offset + 36)]
    guard let seed = seeds.first(where: { checksum(of: head, seed: $0) == stored }) else { return nil }
    let payload = offset + frameHeaderSize
    let end = payload + Int(size)
    // The size is read from the file. Without this check, a cut file would be read behind its end.
    guard end + 4 <= bytes.count else { return nil }
    let isWhole = bytes.number(UInt32.self, at: end) == checksum(of: bytes[payload..<end], seed: seed)
    return Frame(offset: offset, commits: first...last, operationCount: Int(count), payloadEnd: end, isWhole: isWhole)
  }

  /// Returns the record at an offset and the offset after it.
  ///
  /// `nil` if the record does not match its checksum.
  static func operation(at offset: Int, in bytes: [UInt8], before limit: Int) -> (StoredRecord, end: Int)? {
    // These limits of the format rule out almost every offset before a checksum is computed.
    guard offset + operationHeaderSize <= limit, let kind = bytes.number(UInt32.self, at: offset),
      let keySize = bytes.number(UInt32.self, at: offset + 4), let valueSize = bytes.number(UInt32.self, at: offset + 8),
      let version = bytes.number(UInt32.self, at: offset + 12), let revision = bytes.number(UInt64.self, at: offset + 16),
      let stored = bytes.number(UInt32.self, at: offset + 24), bytes.number(UInt32.self, at: offset + 28) == 0,
      (1...64).contains(kind >> 1),
      version >= 1, version <= UInt32(Int32.max), revision >= 1, revision < UInt64(Int64.max), kind & 1 == 0 || valueSize > 0
    else { return nil }
    let name = offset + operationHeaderSize
    let key = name + Int(kind >> 1)
    let value = key + Int(keySize)
    let end = value + Int(valueSize)
    guard end <= limit else { return nil }
    let record = StoredRecord(
      collection: String(decoding: bytes[name..<key], as: UTF8.self), key: RecordKey(String(decoding: bytes[key..<value], as: UTF8.self)),
      revision: Revision(revision), schemaVersion: Int(version), value: kind & 1 == 0 ? nil : Data(bytes[value..<end]))
    // Decoding replaces bytes that are not UTF-8, which usually changes the length of the key.
    return record.checksum == stored && record.key.byteCount == Int(keySize) ? (record, end) : nil
  }

  private static func checksum(of bytes: ArraySlice<UInt8>, seed: UInt32 = 0) -> UInt32 {
    bytes.withUnsafeBytes { CRC32C.checksum($0, seed: seed) }
  }
}
