internal import Foundation

/// A reader of a journal, which reads the complete frames (groups of commits) and classifies the bytes behind the last frame.
struct JournalReader {
  let data: Data
  let file: String
  /// Newest commit of the main file beside the journal, or 0 to visit the records of all frames.
  ///
  /// Frames up to `mainFileCommit` are checked, but their records are not visited, because the main file has these records. The frame's
  /// commit number is compared and not the record's revision, because a record that a migration has rewritten keeps its older revision.
  var mainFileCommit: UInt64 = 0
  /// Position in the journal at which reading begins, or `nil` to begin with the first frame.
  var start: Position?

  /// A position between two frames of a journal.
  struct Position {
    /// Newest commit in the frames before this position of the journal.
    let commit: UInt64
    /// Offset in the journal of the next frame.
    let offset: Int
  }

  /// The result of reading a journal.
  struct Contents {
    let header: JournalHeader
    /// Newest commit in any complete frame, or the base commit in the header if the journal has no complete frame.
    var lastCommit: UInt64
    /// Offset behind the last complete frame, where the next frame is written.
    var end: Int
    /// Kind of the bytes behind the last complete frame.
    var tail = Tail.clean
  }

  enum Tail: Equatable {
    /// Only zero bytes follow the last complete frame.
    case clean
    /// An incomplete frame follows, up to the offset `end`.
    ///
    /// If `isAmbiguous` is true, the frame may also be an acknowledged frame that was damaged later.
    case torn(end: Int, isAmbiguous: Bool)
  }

  /// Reads all complete frames of the journal in order, from ``start`` on.
  ///
  /// - Parameters:
  ///   - visit: Called with each record and tombstone in the frames that the main file lacks.
  ///   - begin: Called with each frame and its offset, before the frame's records are visited.
  /// - Throws: `.corrupted` with the offset for a damaged header, for a damaged frame that a later frame proves to be acknowledged, and for
  ///   a journal that is shorter than any crash can leave it. `.newerSchema` for a newer format.
  func read(
    _ visit: (StoredRecord) throws(RepositoryError) -> Void, begin: (JournalFrame, Int) -> Void = { _, _ in }
  ) throws(RepositoryError) -> Contents {
    try data.lending { bytes throws(RepositoryError) in
      let header = try readHeader(bytes)
      var contents = Contents(header: header, lastCommit: start?.commit ?? header.base, end: start?.offset ?? JournalFormat.headerSize)
      // The store has read the journal up to `start` before. A crash does not shorten a journal, so a journal that ends before `start` was
      // cut off by another program.
      guard contents.end <= bytes.count else { throw corrupted("the journal was cut off in a commit", at: bytes.count) }
      while let frame = try wholeFrame(at: contents.end, in: bytes, header) {
        // The number of the next commit is computed by adding one to the last commit number, and must fit in 64 bits.
        guard frame.commits.upperBound < .max, frame.commits.upperBound - frame.commits.lowerBound < UInt64(Int32.max) else {
          throw corrupted("expected a commit number that a store can reach", at: contents.end)
        }
        // A gap in the commit numbers means that a complete frame was removed. No crash removes a frame, so the journal is damaged.
        guard frame.commits.lowerBound == contents.lastCommit + 1 else {
          throw corrupted("commits \(contents.lastCommit + 1) to \(frame.commits.lowerBound) are missing", at: contents.end)
        }
        begin(frame, contents.end)
        let isNew = frame.commits.upperBound > mainFileCommit
        // Records that the main file has are read too but not visited, because reading compares their checksums.
        try readOperations(of: frame, at: contents.end, in: bytes) { record throws(RepositoryError) in if isNew { try visit(record) } }
        contents.lastCommit = frame.commits.upperBound
        contents.end += frame.size
      }
      contents.tail = try classifyTail(from: contents.end, after: contents.lastCommit, in: bytes, header)
      return contents
    }
  }

  private func corrupted(_ message: String, at offset: Int) -> RepositoryError {
    RepositoryError(.corrupted, message, file: file, offset: UInt64(offset))
  }

  private func readHeader(_ bytes: UnsafeRawBufferPointer) throws(RepositoryError) -> JournalHeader {
    guard bytes.count >= JournalFormat.headerSize else { throw corrupted("the journal was cut off in its header", at: bytes.count) }
    let end = JournalFormat.headerSize - 4
    let checksum: UInt32 = bytes.number(at: end)
    let isWhole = checksum == CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
    // The magic number and the checksum are compared before the version, because a damaged version must not be reported as a newer format.
    guard bytes.number(at: 0) as UInt64 == JournalFormat.magic, isWhole else {
      throw corrupted("the journal's header is damaged", at: 0)
    }
    let version: UInt32 = bytes.number(at: 8)
    guard version == JournalFormat.version else {
      throw RepositoryError(
        .newerSchema, "the journal has a newer format", file: file, offset: 8,
        versions: .init(found: Int(clamping: version), supported: Int(JournalFormat.version)))
    }
    let (generation, base): (UInt64, UInt64) = (bytes.number(at: 32), bytes.number(at: 40))
    // The next generation and the next commit number are computed by adding one, which would trap at the maximum.
    guard generation < .max, base < .max else { throw corrupted("expected numbers that a store can reach", at: 32) }
    return JournalHeader(
      storeID: UUID(uuid: bytes.loadUnaligned(fromByteOffset: 16, as: uuid_t.self)), generation: generation, base: base,
      salt: bytes.number(at: 12), tag: bytes.number(at: 48))
  }

  /// Returns the frame at an offset, or `nil` if the checksum of its header or of its payload does not match.
  ///
  /// - Throws: `.corrupted` if the header of a frame is intact, but its payload reaches beyond the end of the file. No crash leaves a frame
  ///   beyond the end of the file, because the file was extended and synced before the frame was written.
  private func wholeFrame(
    at offset: Int, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader
  ) throws(RepositoryError) -> JournalFrame? {
    guard let frame = frameHead(at: offset, in: bytes, header) else { return nil }
    guard offset + frame.size <= bytes.count else { throw corrupted("the journal was cut off in a commit", at: bytes.count) }
    return isPayloadWhole(frame, at: offset, in: bytes, header) ? frame : nil
  }

  private func frameHead(at offset: Int, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader) -> JournalFrame? {
    let checked = JournalFormat.frameHeaderSize - 4
    guard bytes.count - offset >= JournalFormat.frameHeaderSize, bytes.number(at: offset) as UInt32 == JournalFormat.frameMagic
    else { return nil }
    let checksum = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + checked)]), seed: header.seed)
    guard checksum == bytes.number(at: offset + checked) else { return nil }
    let (first, last): (UInt64, UInt64) = (bytes.number(at: offset + 8), bytes.number(at: offset + 16))
    // Creating a `ClosedRange` whose lower bound is above its upper bound would trap.
    guard first <= last else { return nil }
    return JournalFrame(
      payloadSize: bytes.count(at: offset + 4), commits: first...last, durableThrough: bytes.number(at: offset + 24),
      operationCount: bytes.count(at: offset + 32))
  }

  private func isPayloadWhole(_ frame: JournalFrame, at offset: Int, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader) -> Bool {
    let start = offset + JournalFormat.frameHeaderSize
    let end = start + frame.payloadSize
    return CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), seed: header.seed) == bytes.number(at: end)
  }

  private func readOperations(
    of frame: JournalFrame, at offset: Int, in bytes: UnsafeRawBufferPointer, _ visit: (StoredRecord) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    var position = offset + JournalFormat.frameHeaderSize
    let end = position + frame.payloadSize
    for _ in 0..<frame.operationCount {
      // Every size is compared with the end of the payload, because a damaged size must not make the reader read outside the payload.
      guard end - position >= JournalFormat.operationHeaderSize else { throw corrupted("a commit is shorter than it says", at: position) }
      let kind: UInt32 = bytes.number(at: position)
      let (nameSize, keySize) = (min(Int(kind >> 1), JournalFormat.countLimit), bytes.count(at: position + 4))
      let valueSize = bytes.count(at: position + 8)
      let name = position + JournalFormat.operationHeaderSize
      let (key, value) = (name + nameSize, name + nameSize + keySize)
      guard value + valueSize <= end else { throw corrupted("a commit is shorter than it says", at: position) }
      let record = StoredRecord(
        collection: String(decoding: bytes[name..<key], as: UTF8.self),
        key: RecordKey(String(decoding: bytes[key..<value], as: UTF8.self)),
        revision: Revision(bytes.number(at: position + 16)), schemaVersion: Int(clamping: bytes.number(at: position + 12) as UInt32),
        value: kind & 1 == 0 ? nil : data[(data.startIndex + value)..<(data.startIndex + value + valueSize)])
      // `String(decoding:)` replaces invalid UTF-8 in a name or key, and the checksum does not match the changed text.
      guard record.checksum == bytes.number(at: position + 24) else {
        throw RepositoryError(
          .corrupted, "a record does not match its checksum", file: file, offset: UInt64(position), keyHash: record.key.hash)
      }
      try visit(record)
      position = value + valueSize
    }
    // If bytes follow the last record or tombstone, the frame's count is too small and leaves out a record.
    guard position == end else { throw corrupted("a commit is longer than it says", at: position) }
  }

  // MARK: The tail

  /// Returns the kind of the bytes behind the last complete frame: zero bytes, or an unfinished write.
  private func classifyTail(
    from offset: Int, after lastCommit: UInt64, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader
  ) throws(RepositoryError) -> Tail {
    // A crash cannot shorten the journal, because the file's size with the terminating zero bytes was synced before the frame was written.
    guard bytes.count - offset >= JournalFormat.terminatorSize else {
      throw corrupted("the journal was cut off: at least \(JournalFormat.terminatorSize) zero bytes must follow a commit", at: bytes.count)
    }
    if bytes.isZero(in: offset..<bytes.count) { return .clean }
    // A disk may write the sectors of a frame in any order, so an incomplete frame can begin with a sector of zeros.
    let startsWithZeros = bytes.number(at: offset) as UInt32 == 0
    guard startsWithZeros || bytes.count - offset >= JournalFormat.frameHeaderSize + JournalFormat.frameTrailerSize else {
      throw corrupted("the journal was cut off in a commit", at: bytes.count)
    }
    // If a complete frame behind the broken frame names the broken frame's commit as synced, that commit was acknowledged. Cutting off an
    // acknowledged commit would lose it without an error.
    if latestDurability(after: offset, in: bytes, header) > lastCommit {
      throw corrupted("commit \(lastCommit + 1) is damaged, and a later one proves that it was acknowledged", at: offset)
    }
    var end = bytes.count
    while end > offset, bytes[end - 1] == 0 { end -= 1 }
    let isAmbiguous = !startsWithZeros && !hasUnwrittenPart(from: offset, to: end, in: bytes, header)
    return .torn(end: end, isAmbiguous: isAmbiguous)
  }

  /// Returns the newest commit that any complete frame behind an offset names as synced or ordered, or 0.
  private func latestDurability(after offset: Int, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader) -> UInt64 {
    guard let base = bytes.baseAddress else { return 0 }
    var latest: UInt64 = 0
    var position = offset + 1
    let firstByte = Int32(JournalFormat.frameMagic & 0xFF)
    // The search for frames tries each byte, because the length in a broken frame may be wrong and not lead to the next frame.
    while position < bytes.count, let found = memchr(base + position, firstByte, bytes.count - position) {
      let candidate = base.distance(to: UnsafeRawPointer(found))
      if let frame = frameHead(at: candidate, in: bytes, header), candidate + frame.size <= bytes.count,
        isPayloadWhole(frame, at: candidate, in: bytes, header)
      {
        latest = max(latest, frame.durableThrough)
        position = candidate + frame.size
      } else {
        position = candidate + 1
      }
    }
    return latest
  }

  /// True if a part of a broken frame was never written, because the frame ends early or has a sector of zeros.
  ///
  /// An unwritten part shows that the write of the frame was interrupted. A frame that was completely written and damaged later has no
  /// unwritten part.
  private func hasUnwrittenPart(from offset: Int, to end: Int, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader) -> Bool {
    guard let frame = frameHead(at: offset, in: bytes, header) else { return end - offset < JournalFormat.frameHeaderSize }
    let frameEnd = min(offset + frame.size, bytes.count)
    // The checksum behind the payload may end in zero bytes by chance, so fewer zero bytes than the checksum's size prove nothing.
    if frameEnd - end >= JournalFormat.frameTrailerSize { return true }
    var sector = offset / 512 * 512
    while sector < frameEnd {
      let part = max(sector, offset)..<min(sector + 512, frameEnd)
      // A disk writes a sector of 512 bytes completely or not at all, so a zero sector was not written. Fewer than 8 zero bytes in a sector
      // may be zero by chance, so they prove nothing.
      if part.count >= 8, bytes.isZero(in: part) { return true }
      sector += 512
    }
    return false
  }
}
