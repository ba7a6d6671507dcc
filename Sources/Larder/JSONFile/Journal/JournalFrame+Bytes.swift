internal import Foundation

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
