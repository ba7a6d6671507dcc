// Journal/ is the append-only log beside a main file, which makes a save cost the same however many records there are.
// Invariant: what is behind a frame that was synced is zero bytes, at least four. Called by JSONFileBackend and its recovery.

internal import Foundation

/// The bytes of a journal: a header, frames, and zero bytes that are allocated ahead.
///
/// Described in `Docs/Larder.docc/Formats/JournalFormat.md`, with an example. All numbers are little-endian.
enum JournalFormat {
  static let version: UInt32 = 1
  /// "LARDERJL", the first eight bytes of a journal.
  static let magic: UInt64 = 0x4C4A_5245_4452_414C
  static let headerSize = 64
  /// "LFRM", the first four bytes of a frame.
  static let frameMagic: UInt32 = 0x4D52_464C
  static let frameHeaderSize = 40
  /// The checksum behind a frame's payload.
  static let frameTrailerSize = 4
  /// The zero bytes that must be there behind the last frame, so that a journal cut exactly between two frames is noticed.
  static let terminatorSize = 4
  /// The fixed part of an operation in a payload.
  static let operationHeaderSize = 32
  /// The largest count in a frame, in bytes or operations.
  ///
  /// It keeps the sum of a few counts from a damaged journal within an `Int` of 32 bits. No such system holds so many bytes.
  static let countLimit = Swift.min(Int(Int32.max), Int.max / 8)
}

/// The header of a journal.
struct JournalHeader: Hashable, Sendable {
  let storeID: UUID
  /// The generation of the main file that it was made for.
  let generation: UInt64
  /// The newest commit of that main file: the first frame continues it.
  let base: UInt64
  /// The number that makes the checksums of one journal differ from those of another.
  let salt: UInt32
  /// The tag that the main file gave to the journal that continues it; 0 where an older version has written one of them.
  var tag: UInt32 = 0

  /// The bytes, ending in a checksum that also seeds the checksums of the frames.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(number: JournalFormat.magic)
    bytes.append(number: JournalFormat.version)
    bytes.append(number: salt)
    withUnsafeBytes(of: storeID.uuid) { bytes.append(contentsOf: $0) }
    bytes.append(number: generation)
    bytes.append(number: base)
    bytes.append(number: tag)
    bytes += [UInt8](repeating: 0, count: JournalFormat.headerSize - 4 - bytes.count)
    bytes.append(number: bytes.withUnsafeBytes { CRC32C.checksum($0) })
    return bytes
  }

  /// The seed of the frames' checksums.
  var seed: UInt32 { bytes.withUnsafeBytes { $0.number(at: JournalFormat.headerSize - 4) } }
}

extension JournalHeader {
  /// Makes the header of a new journal that continues a main file.
  init(continuing main: MainFileHeader) {
    self.init(
      storeID: main.storeID, generation: main.generation, base: main.commit, salt: .random(in: 1 ... .max), tag: main.journal ?? 0)
  }
}

/// The head of a frame: one group of commits, all or none.
struct JournalFrame: Hashable, Sendable {
  let payloadSize: Int
  let commits: ClosedRange<UInt64>
  /// The newest commit that was synced when this frame was written.
  ///
  /// What it covers was acknowledged: its damage is never a torn write.
  let durableThrough: UInt64
  let operationCount: Int

  var size: Int { JournalFormat.frameHeaderSize + payloadSize + JournalFormat.frameTrailerSize }
}

extension Array<UInt8> {
  /// Appends a number, its least significant byte first.
  mutating func append<Number: FixedWidthInteger>(number: Number) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the little-endian number at an offset, which must be inside.
  func number<Number: FixedWidthInteger>(at offset: Int) -> Number {
    Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: Number.self))
  }

  /// Returns the little-endian count of four bytes at an offset, which must be inside, or the limit if it is larger.
  func count(at offset: Int) -> Int { Swift.min(Int(clamping: number(at: offset) as UInt32), JournalFormat.countLimit) }

  /// Whether there is something, and no line feed in it.
  var isOneLine: Bool {
    guard let base = baseAddress, count > 0 else { return false }
    return memchr(base, 0x0A, count) == nil
  }

  /// Whether a range holds zero bytes only.
  func isZero(in range: Range<Int>) -> Bool {
    guard let base = baseAddress, let first = range.first else { return true }
    // A region is zero if its first byte is, and every other byte equals its neighbour.
    return self[first] == 0 && memcmp(base + first, base + first + 1, range.count - 1) == 0
  }
}

extension JournalFrame {
  /// The number of records above which the cores share them out.
  private static let partSize = 1_024

  /// Returns the bytes of a frame with the records of a batch.
  ///
  /// Cost: one pass over the records, on all cores where they are many, and a checksum over all of them.
  static func bytes(_ batch: WriteBatch, durableThrough: UInt64, seed: UInt32) -> [UInt8] {
    var starts: [Int] = []
    var end = JournalFormat.frameHeaderSize
    for (position, record) in batch.records.enumerated() {
      if position.isMultiple(of: partSize) { starts.append(end) }
      end += JournalFormat.operationHeaderSize + record.collection.utf8.count + record.key.byteCount + (record.value?.count ?? 0)
    }
    let size = end + JournalFormat.frameTrailerSize
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

/// The memory of a frame that is being made.
///
/// Unchecked, since each thread writes a part of its own.
private struct FrameSpace: @unchecked Sendable {
  let base: UnsafeMutableRawPointer
}

/// A place in the memory of a frame, which is written from front to back.
private struct FrameCursor {
  private(set) var place: UnsafeMutableRawPointer

  /// Appends a number, its least significant byte first.
  mutating func append<Number: FixedWidthInteger & BitwiseCopyable>(number: Number) {
    place.storeBytes(of: number.littleEndian, as: Number.self)
    place += MemoryLayout<Number>.size
  }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    place.copyMemory(from: start, byteCount: bytes.count)
    place += bytes.count
  }

  /// Appends an operation: the length of the name, whether there is a value, the lengths, the numbers, then name, key and value.
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
