internal import Foundation

/// A reader of a journal, which returns the whole frames and classifies the bytes behind them.
struct JournalReader {
  let data: Data
  let file: String
  /// Newest commit of the main file.
  ///
  /// Frames up to it are checked, and their records skipped.
  ///
  /// A record's own revision does not decide this, since a record that a migration has rewritten keeps an older one.
  var mainFileCommit: UInt64 = 0
  /// Position at which reading begins, or `nil` for the first frame.
  var start: Position?

  /// A position between two frames.
  struct Position {
    /// Newest commit before the position.
    let commit: UInt64
    /// Offset of the next frame.
    let offset: Int
  }

  /// The result of reading a journal.
  struct Contents {
    let header: JournalHeader
    /// Newest commit in a whole frame, or the header's base.
    var lastCommit: UInt64
    /// Offset for the next frame.
    var end: Int
    /// Kind of the bytes behind the last whole frame.
    var tail = Tail.clean
  }

  enum Tail: Equatable {
    /// Nothing but zero bytes follows the last whole frame.
    case clean
    /// A write that was never acknowledged or, if ambiguous, perhaps damage to the last acknowledged one. It ends before `end`.
    case torn(end: Int, isAmbiguous: Bool)
  }

  /// Reads all whole frames in order, from ``start`` on.
  ///
  /// - Parameters:
  ///   - visit: Called with the records and tombstones of each frame that the main file lacks.
  ///   - begin: Called with each frame and its offset, before its records.
  /// - Throws: `.corrupted` with the offset for a damaged header, for damage before a frame that proves it was acknowledged, and for a
  ///   journal that is shorter than a crash can leave it. `.newerSchema` for a newer format.
  func read(
    _ visit: (StoredRecord) throws(RepositoryError) -> Void, begin: (JournalFrame, Int) -> Void = { _, _ in }
  ) throws(RepositoryError) -> Contents {
    try data.lending { bytes throws(RepositoryError) in
      let header = try readHeader(bytes)
      var contents = Contents(header: header, lastCommit: start?.commit ?? header.base, end: start?.offset ?? JournalFormat.headerSize)
      // The journal was longer when `start` was taken, and a crash does not shorten it.
      guard contents.end <= bytes.count else { throw corrupted("the journal was cut off in a commit", at: bytes.count) }
      while let frame = try wholeFrame(at: contents.end, in: bytes, header) {
        // The next commit's number must fit in 64 bits.
        guard frame.commits.upperBound < .max, frame.commits.upperBound - frame.commits.lowerBound < UInt64(Int32.max) else {
          throw corrupted("expected a commit number that a store can reach", at: contents.end)
        }
        // A gap means that a whole frame is gone, which no crash does.
        guard frame.commits.lowerBound == contents.lastCommit + 1 else {
          throw corrupted("commits \(contents.lastCommit + 1) to \(frame.commits.lowerBound) are missing", at: contents.end)
        }
        begin(frame, contents.end)
        let isNew = frame.commits.upperBound > mainFileCommit
        // Read also if they are not visited, since their checksums are compared.
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
    // Magic and checksum before the version: a damaged version must not read as a newer format.
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
    // The next generation and commit are computed by adding one.
    guard generation < .max, base < .max else { throw corrupted("expected numbers that a store can reach", at: 32) }
    return JournalHeader(
      storeID: UUID(uuid: bytes.loadUnaligned(fromByteOffset: 16, as: uuid_t.self)), generation: generation, base: base,
      salt: bytes.number(at: 12), tag: bytes.number(at: 48))
  }

  /// Returns the frame at an offset if its head and its payload are whole.
  /// - Throws: `.corrupted` for a whole head whose payload ends behind the file. Its space was allocated and synced before the write.
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
    // A `ClosedRange` with a lower bound above its upper one would trap.
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
      // Every size is bounded by the end of the payload, since a damaged count must not read outside it.
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
      // `String(decoding:)` replaces invalid UTF-8 in a name or key, which then fails here.
      guard record.checksum == bytes.number(at: position + 24) else {
        throw RepositoryError(
          .corrupted, "a record does not match its checksum", file: file, offset: UInt64(position), keyHash: record.key.hash)
      }
      try visit(record)
      position = value + valueSize
    }
    // Bytes left over are a record that the count leaves out.
    guard position == end else { throw corrupted("a commit is longer than it says", at: position) }
  }

  // MARK: The tail

  /// Returns the kind of the bytes behind the last whole frame.
  private func classifyTail(
    from offset: Int, after lastCommit: UInt64, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader
  ) throws(RepositoryError) -> Tail {
    // A crash cannot shorten the file: the terminator was synced before the frame was written.
    guard bytes.count - offset >= JournalFormat.terminatorSize else {
      throw corrupted("the journal was cut off: at least \(JournalFormat.terminatorSize) zero bytes must follow a commit", at: bytes.count)
    }
    if bytes.isZero(in: offset..<bytes.count) { return .clean }
    // Sectors reach the disk in any order, so a torn write can begin with zeros.
    let startsWithZeros = bytes.number(at: offset) as UInt32 == 0
    guard startsWithZeros || bytes.count - offset >= JournalFormat.frameHeaderSize + JournalFormat.frameTrailerSize else {
      throw corrupted("the journal was cut off in a commit", at: bytes.count)
    }
    // A later frame that names a synced commit proves it was acknowledged. To cut it would be silent loss.
    if latestDurability(after: offset, in: bytes, header) > lastCommit {
      throw corrupted("commit \(lastCommit + 1) is damaged, and a later one proves that it was acknowledged", at: offset)
    }
    var end = bytes.count
    while end > offset, bytes[end - 1] == 0 { end -= 1 }
    let isAmbiguous = !startsWithZeros && !hasUnwrittenPart(from: offset, to: end, in: bytes, header)
    return .torn(end: end, isAmbiguous: isAmbiguous)
  }

  /// Returns the newest commit that any whole frame behind an offset names as synced.
  private func latestDurability(after offset: Int, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader) -> UInt64 {
    guard let base = bytes.baseAddress else { return 0 }
    var latest: UInt64 = 0
    var position = offset + 1
    let firstByte = Int32(JournalFormat.frameMagic & 0xFF)
    // At each byte, since the length of a broken frame cannot be trusted.
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

  /// True if a part of the broken frame was never written, because it ends early or has a sector of zeros.
  ///
  /// Damage to a written frame leaves no such part.
  private func hasUnwrittenPart(from offset: Int, to end: Int, in bytes: UnsafeRawBufferPointer, _ header: JournalHeader) -> Bool {
    guard let frame = frameHead(at: offset, in: bytes, header) else { return end - offset < JournalFormat.frameHeaderSize }
    let frameEnd = min(offset + frame.size, bytes.count)
    // The trailer may end in zero bytes by chance, so fewer than its size prove nothing.
    if frameEnd - end >= JournalFormat.frameTrailerSize { return true }
    var sector = offset / 512 * 512
    while sector < frameEnd {
      let part = max(sector, offset)..<min(sector + 512, frameEnd)
      // Disks write sectors of 512 bytes whole. A part under 8 bytes may be zero by chance.
      if part.count >= 8, bytes.isZero(in: part) { return true }
      sector += 512
    }
    return false
  }
}
