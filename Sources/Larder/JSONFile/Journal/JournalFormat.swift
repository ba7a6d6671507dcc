// The folder Journal/ reads and writes the append-only log beside a main file. With the journal, a save costs the same for any number of
// stored records.
// Invariant: at least four zero bytes follow a synced frame.
// The folder Journal/ is called by JSONFileStore, by recovery and by the readers of a JSON store's files.

internal import Foundation

/// The byte layout of a journal: a header, frames (each one group of commits), and zero bytes that are allocated ahead.
///
/// `Docs/Larder.docc/Formats/JournalFormat.md` describes the layout, with an example. All numbers are little-endian.
enum JournalFormat {
  static let version: UInt32 = 1
  /// "LARDERJL", the first eight bytes of a journal.
  static let magic: UInt64 = 0x4C4A_5245_4452_414C
  static let headerSize = 64
  /// "LFRM", the first four bytes of a frame.
  static let frameMagic: UInt32 = 0x4D52_464C
  static let frameHeaderSize = 40
  /// Size in bytes of the checksum behind a frame's payload.
  static let frameTrailerSize = 4
  /// Number of zero bytes that must follow the last frame, so that a reader detects a journal that was cut exactly between two frames.
  static let terminatorSize = 4
  /// Size in bytes of the fixed part of a record or tombstone in a frame's payload.
  static let operationHeaderSize = 32
  /// Largest number of bytes, or of records and tombstones, in a frame.
  ///
  /// With the limit, the sum of a few counts from a damaged journal does not overflow an `Int`, even on a 32-bit system.
  static let countLimit = Swift.min(Int(Int32.max), Int.max / 8)
}

/// The header of a journal, which identifies the store and the main file that the journal continues.
struct JournalHeader: Hashable, Sendable {
  let storeID: UUID
  /// Generation of the main file that the journal was created for.
  let generation: UInt64
  /// Newest commit of the main file that the journal continues.
  ///
  /// The first frame of the journal begins with the commit after ``base``.
  let base: UInt64
  /// Random number that makes the checksums of one journal differ from the checksums of another.
  let salt: UInt32
  /// Number that the main file's header also has, or 0 if an older version of Larder has written the main file or the journal.
  var tag: UInt32 = 0

  /// The encoded header, with which a journal begins.
  ///
  /// The header ends with a checksum, which is also the seed of the frames' checksums.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(number: JournalFormat.magic)
    bytes.append(number: JournalFormat.version)
    bytes.append(number: salt)
    withUnsafeBytes(of: storeID.uuid) { bytes.append(contentsOf: $0) }
    bytes.append(number: generation)
    bytes.append(number: base)
    bytes.append(number: tag)
    // The reserved bytes of the header are zero in format version 1.
    bytes += [UInt8](repeating: 0, count: JournalFormat.headerSize - 4 - bytes.count)
    bytes.append(number: bytes.withUnsafeBytes { CRC32C.checksum($0) })
    return bytes
  }

  /// Seed of the checksums in the journal's frames.
  ///
  /// Reused disk blocks may hold a frame of another journal, which does not match its checksum because the other journal has another seed.
  var seed: UInt32 { bytes.withUnsafeBytes { $0.number(at: JournalFormat.headerSize - 4) } }
}

extension JournalHeader {
  /// Creates the header of a new journal that continues a main file.
  init(continuing main: MainFileHeader) {
    self.init(
      storeID: main.storeID, generation: main.generation, base: main.commit, salt: .random(in: 1 ... .max), tag: main.journal ?? 0)
  }
}

/// The header of a frame, which holds one group of commits that are recovered all or none.
struct JournalFrame: Hashable, Sendable {
  let payloadSize: Int
  let commits: ClosedRange<UInt64>
  /// Newest commit that had been synced, or ordered by a write barrier, when the frame was written.
  ///
  /// If the frame of a synced commit is broken, the cause is damage and not an unfinished write.
  let durableThrough: UInt64
  let operationCount: Int

  var size: Int { JournalFormat.frameHeaderSize + payloadSize + JournalFormat.frameTrailerSize }
}

extension Array<UInt8> {
  /// Appends a number in little-endian order.
  mutating func append<Number: FixedWidthInteger>(number: Number) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the little-endian number at an offset, where all bytes of the number must be inside the buffer.
  func number<Number: FixedWidthInteger>(at offset: Int) -> Number {
    Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
  }

  /// Returns the four-byte count at an offset, or ``JournalFormat/countLimit`` if the count is larger.
  ///
  /// All four bytes of the count must be inside the buffer.
  func count(at offset: Int) -> Int { Swift.min(Int(clamping: number(at: offset) as UInt32), JournalFormat.countLimit) }

  /// True if the buffer is not empty and has no line feed.
  var isOneLine: Bool {
    guard let base = baseAddress, count > 0 else { return false }
    return memchr(base, 0x0A, count) == nil
  }

  /// True if all bytes in a range are zero.
  func isZero(in range: Range<Int>) -> Bool {
    guard let base = baseAddress, let first = range.first else { return true }
    // All bytes are zero if the first byte is zero and each byte equals the next byte. `memcmp` compares each byte with the next byte,
    // using vector instructions.
    return self[first] == 0 && memcmp(base + first, base + first + 1, range.count - 1) == 0
  }
}

extension JournalFrame {
  /// Number of records that one core writes at a time, when several cores write the frame of a large batch.
  private static let partSize = 1_024

  /// Returns the encoded frame with the records of a batch.
  ///
  /// Cost: one pass over the records, on all cores for many records, and a checksum over all bytes.
  static func bytes(_ batch: WriteBatch, durableThrough: UInt64, seed: UInt32) -> [UInt8] {
    // The sizes of all records are added up first, so that each core knows the offset at which its records begin.
    var starts: [Int] = []
    var end = JournalFormat.frameHeaderSize
    for (position, record) in batch.records.enumerated() {
      if position.isMultiple(of: partSize) { starts.append(end) }
      end += JournalFormat.operationHeaderSize + record.collection.utf8.count + record.key.byteCount + (record.value?.count ?? 0)
    }
    let size = end + JournalFormat.frameTrailerSize
    // The memory of the frame is uninitialized, because zeroing it would be a second pass over a large frame.
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      count = size
      let frame = UnsafeMutableRawBufferPointer(buffer)
      guard let base = frame.baseAddress else { return }
      var head = FrameCursor(place: base)
      head.append(number: JournalFormat.frameMagic)
      head.append(number: UInt32(truncatingIfNeeded: end - JournalFormat.frameHeaderSize))
      head.append(number: batch.commits.lowerBound)
      head.append(number: batch.commits.upperBound)
      head.append(number: durableThrough)
      head.append(number: UInt32(truncatingIfNeeded: batch.records.count))
      head.append(number: CRC32C.checksum(UnsafeRawBufferPointer(start: base, count: head.place - base), seed: seed))
      let space = FrameSpace(base: base)
      _ = ConcurrentMap.blockingParts(batch.records, of: partSize) { [starts] part in
        var cursor = FrameCursor(place: space.base + starts[part.startIndex / partSize])
        for record in part { cursor.append(operation: record) }
      }
      let payload = UnsafeRawBufferPointer(rebasing: frame[JournalFormat.frameHeaderSize..<end])
      var trailer = FrameCursor(place: base + end)
      trailer.append(number: CRC32C.checksum(payload, seed: seed))
    }
  }
}

/// The memory of an encoded frame, to which several threads write at the same time.
///
/// The type is `@unchecked Sendable`, because each thread writes only to a range of its own.
private struct FrameSpace: @unchecked Sendable {
  let base: UnsafeMutableRawPointer
}

/// A writing position in the memory of a frame, which moves behind each value that is appended.
private struct FrameCursor {
  private(set) var place: UnsafeMutableRawPointer

  /// Appends a number in little-endian order.
  mutating func append<Number: FixedWidthInteger & BitwiseCopyable>(number: Number) {
    place.storeBytes(of: number.littleEndian, as: Number.self)
    place += MemoryLayout<Number>.size
  }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    place.copyMemory(from: start, byteCount: bytes.count)
    place += bytes.count
  }

  /// Appends a record or tombstone: the lengths, the numbers, and then the collection name, the key and the value.
  ///
  /// The lowest bit of the first number is 1 for a record and 0 for a tombstone, and the other bits are the length of the collection name.
  mutating func append(operation record: StoredRecord) {
    append(number: UInt32(truncatingIfNeeded: record.collection.utf8.count) << 1 | (record.value == nil ? 0 : 1))
    append(number: UInt32(truncatingIfNeeded: record.key.byteCount))
    append(number: UInt32(truncatingIfNeeded: record.value?.count ?? 0))
    append(number: UInt32(truncatingIfNeeded: record.schemaVersion))
    append(number: record.revision.number)
    append(number: record.checksum)
    append(number: UInt32(0))
    var collection = record.collection
    collection.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    record.key.withBytes { append($0) }
    record.value?.withUnsafeBytes { append($0) }
  }
}
