internal import Foundation

/// A reader of a main file, which verifies every byte: it compares either the byte itself or a checksum over the byte.
///
/// The reader divides the file into parts and reads several parts at a time on all cores. The records of one collection in a part are
/// stored in one block of memory, a `RecordPack`.
struct MainFileReader {
  let source: MainFileSource
  let file: String
  /// Size limits that no record may exceed, or `nil` to refuse no record.
  var limits: StoreOptions.Limits?

  /// Size in bytes of each part of a main file that one core reads at a time.
  var partSize = 256 << 10
  /// Number of parts of a main file that are read as one batch.
  ///
  /// All parts of a batch are read before the records of its first part are used. With 16 parts for each core, no core is idle for long at
  /// the end of a batch.
  static var batchCount: Int { 16 * max(1, ProcessInfo.processInfo.activeProcessorCount) }
  /// Number of bytes that are read for the header, or for the seal (the last line), of which neither is longer.
  private static let edgeSize = 4_096

  /// A line of a main file: the record, the range of the line's text, and the record's checksum.
  struct Line: Sendable {
    let record: StoredRecord
    let text: Range<Int>
    let checksum: UInt32
  }

  /// Reads the whole main file.
  ///
  /// - Parameters:
  ///   - visit: Called for each part of the file, with all tombstones of the part, and with the records that no change of the journal
  ///     replaces.
  ///   - begin: Called with the header before the lines are read. The closure returns the changes of the journal.
  /// - Throws: `.notOurStore`, `.newerSchema`, `.corrupted` with the offset.
  func read(
    _ visit: ([RecordPack], [StoredRecord]) -> Void,
    begin: (MainFileHeader) throws(RepositoryError) -> [RecordAddress: StoredRecord]
  ) throws(RepositoryError) -> MainFileHeader {
    var seal = SealHash()
    let head = try source.read(at: 0, count: Self.edgeSize)
    let (header, end) = try head.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: file)
      let header = try readHeader(&cursor, &seal)
      return (header, cursor.offset)
    }
    let context = MainFilePart.Context(source: source, file: file, commit: header.commit, changes: try begin(header), limits: limits)
    var offset = end
    let count = try readLines(from: &offset, into: &seal, context, visit)
    let tail = try source.read(at: offset, count: Self.edgeSize)
    try tail.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: file)
      cursor.base = offset
      try readSeal(&cursor, seal, count: count)
    }
    return header
  }

  /// Returns the header, and the bytes of its line with the line feed.
  func header() throws(RepositoryError) -> (header: MainFileHeader, line: Data) {
    let head = try source.read(at: 0, count: Self.edgeSize)
    return try head.lending { bytes throws(RepositoryError) in
      var (cursor, seal) = (ByteCursor(bytes, file: file), SealHash())
      let header = try readHeader(&cursor, &seal)
      return (header, head.prefix(cursor.offset))
    }
  }

  /// Reads the header at the beginning of the file.
  func readHeader(_ cursor: inout ByteCursor, _ seal: inout SealHash) throws(RepositoryError) -> MainFileHeader {
    guard cursor.skip(MainFileFormat.opening) else { throw withoutOpening(cursor) }
    let version = try cursor.number()
    // The format version is compared before the rest of the header is read, because a newer format may have other fields.
    guard version == UInt64(MainFileFormat.version) else {
      guard version > UInt64(MainFileFormat.version) else {
        throw cursor.corrupted("expected format version \(MainFileFormat.version), found \(version)")
      }
      throw RepositoryError(
        .newerSchema, "the file has a newer format", file: file, offset: UInt64(MainFileFormat.opening.utf8CodeUnitCount),
        versions: .init(found: Int(clamping: version), supported: MainFileFormat.version))
    }
    try cursor.expect(#","store":""#)
    let idOffset = cursor.offset
    let id = try cursor.string()
    // The format allows only upper-case UUIDs, but `UUID(uuidString:)` also accepts lower case.
    guard let storeID = UUID(uuidString: id), storeID.uuidString == id else {
      throw cursor.corrupted("expected an upper-case UUID", at: idOffset)
    }
    try cursor.expect(#","generation":"#)
    let generation = try cursor.number()
    try cursor.expect(#","commit":"#)
    let commit = try cursor.number()
    try cursor.expect(#","tombstonesSince":"#)
    let tombstonesSince = try cursor.number()
    let folded = cursor.skip(#","folded":""#) ? try salt(&cursor) : nil
    let journal = cursor.skip(#","journal":""#) ? try salt(&cursor) : nil
    let end = cursor.offset
    try cursor.expect(#","crc":""#)
    let checksum = try cursor.hexadecimal(UInt32.self)
    guard checksum == CRC32C.checksum(UnsafeRawBufferPointer(rebasing: cursor.bytes[..<end])) else {
      throw cursor.corrupted("the header does not match its checksum", at: 0)
    }
    try cursor.expect(#"","records":["#)
    try cursor.expect("\n")
    seal.add(checksum)
    // The next checkpoint adds one to the generation and the next commit adds one to the commit number, which would trap at the maximum.
    guard generation < .max, commit < .max, tombstonesSince <= commit else {
      throw cursor.corrupted("expected numbers that a store can reach", at: idOffset)
    }
    return MainFileHeader(
      storeID: storeID, generation: generation, commit: commit, tombstonesSince: tombstonesSince, folded: folded, journal: journal)
  }

  private func salt(_ cursor: inout ByteCursor) throws(RepositoryError) -> UInt32 {
    let salt = try cursor.hexadecimal(UInt32.self)
    try cursor.expect("\"")
    return salt
  }

  /// Returns the error for a file that does not begin as a main file does.
  ///
  /// The error is `.corrupted` if the file is empty, or if its beginning is all zeros or has at least three quarters of the right bytes.
  /// The error is `.notOurStore` for a file with any other beginning.
  private func withoutOpening(_ cursor: ByteCursor) -> RepositoryError {
    let opening = UnsafeBufferPointer(start: MainFileFormat.opening.utf8Start, count: MainFileFormat.opening.utf8CodeUnitCount)
    let head = cursor.bytes.prefix(opening.count)
    if head.isEmpty { return cursor.corrupted("expected a store, found an empty file", at: 0) }
    let agreeing = zip(head, opening).count { $0 == $1 }
    // A file that begins with zero bytes, or with most of the right bytes, was probably a store, so the error is `.corrupted` and not
    // `.notOurStore`.
    guard head.allSatisfy({ $0 == 0 }) || agreeing * 4 >= head.count * 3 else {
      return RepositoryError(.notOurStore, "the file is not a Larder store", file: file, offset: 0)
    }
    return cursor.corrupted("expected `\(MainFileFormat.opening)`, found a damaged beginning", at: 0)
  }

  /// Reads all lines up to the seal (the last line) and passes their records to `visit` in the order of the file.
  ///
  /// When the function returns, `offset` is the offset of the seal.
  /// - Returns: The number of lines that hold a record or a tombstone.
  private func readLines(
    from offset: inout Int, into seal: inout SealHash, _ context: MainFilePart.Context, _ visit: ([RecordPack], [StoredRecord]) -> Void
  ) throws(RepositoryError) -> UInt64 {
    let start = offset
    let size = try source.size()
    let batchSize = partSize * Self.batchCount
    var count: UInt64 = 0
    var last: RecordAddress?
    // Parts are read in batches, so that after a damaged part, or after the part with the seal, at most the rest of one batch is read in
    // vain.
    for batch in stride(from: start, to: size, by: batchSize) {
      let ranges = stride(from: batch, to: min(batch + batchSize, size), by: partSize).map { $0..<min($0 + partSize, size) }
      let results = ConcurrentMap.blockingParts(ranges, of: 1) { ranges in
        ranges.map { MainFilePart.read($0, beginsWithLine: $0.lowerBound == start, context) }
      }
      for result in results.joined() {
        let part = try result.get()
        guard let start = part.start else { continue }
        // Each part begins at the end of the part before, unless the file changed between the reads of the two parts.
        guard start == offset else {
          throw RepositoryError(.corrupted, "the file changed while it was read", file: file, offset: UInt64(offset))
        }
        // `MainFileScanner` has checked the order of the keys within each part. The first key of each part is compared with the last key of
        // the part before.
        if let last, let first = part.first, !(last < first) {
          throw RepositoryError(.corrupted, "expected a key after that of the record before", file: file, offset: UInt64(offset))
        }
        last = part.last ?? last
        count += UInt64(part.checksums.count)
        for checksum in part.checksums { seal.add(checksum) }
        visit(part.packs, part.tombstones)
        offset = part.end
        if part.isLast { return count }
      }
    }
    return count
  }

  /// Reads the seal at the end of the file, and compares the seal's count and hash with the lines that were read.
  func readSeal(_ cursor: inout ByteCursor, _ seal: SealHash, count: UInt64) throws(RepositoryError) {
    let start = cursor.offset
    try cursor.expect(#"],"count":"#)
    let sealedCount = try cursor.number()
    try cursor.expect(#","hash":""#)
    let hash = try cursor.hexadecimal(UInt64.self)
    try cursor.expect("\"}\n")
    // No checksum covers bytes behind the seal, so a file with such bytes is refused.
    guard cursor.isAtEnd else { throw cursor.corrupted("expected the end of the file after the seal") }
    guard sealedCount == count && hash == seal.value else {
      throw cursor.corrupted("the seal does not match the records: \(count) read, \(sealedCount) sealed", at: start)
    }
  }
}

/// The lines of a main file that begin in one range of the file.
///
/// Several cores read the parts of a file at the same time.
struct MainFilePart: Sendable {
  /// The values that all parts of a main file share while the file is read.
  struct Context: Sendable {
    let source: MainFileSource
    let file: String
    /// Newest commit of the main file.
    let commit: UInt64
    /// Changes of the journal by address (collection and key).
    ///
    /// If the journal has a change of a record, the main file's record is left out of `packs`.
    let changes: [RecordAddress: StoredRecord]
    /// Size limits that no record may exceed, or `nil` to refuse no record.
    let limits: StoreOptions.Limits?
  }

  /// Offset in the file of the part's first line, or `nil` if no line begins in the range.
  private(set) var start: Int?
  /// Offset in the file behind the part's last line.
  private(set) var end = 0
  /// True if no line follows the part, so that the rest of the file must be the seal.
  private(set) var isLast = false
  private(set) var packs: [RecordPack] = []
  private(set) var tombstones: [StoredRecord] = []
  private(set) var checksums: [UInt32] = []
  /// Addresses (collection and key) of the part's first and last line.
  private(set) var first: RecordAddress?
  private(set) var last: RecordAddress?

  /// Number of bytes that are read behind a range, because the last line of the range usually ends within these bytes.
  private static let margin = 4_096

  /// Reads the lines of a main file that begin in a range of its bytes.
  ///
  /// - Parameter beginsWithLine: True if a line begins at the start of the range. With `beginsWithLine` false, the part begins behind the
  ///   first line feed that is in the range or directly before the range.
  static func read(_ range: Range<Int>, beginsWithLine: Bool, _ context: Context) -> Result<MainFilePart, RepositoryError> {
    do throws(RepositoryError) {
      var part = MainFilePart()
      try part.read(range, beginsWithLine: beginsWithLine, context)
      return .success(part)
    } catch {
      return .failure(error)
    }
  }

  private mutating func read(_ range: Range<Int>, beginsWithLine: Bool, _ context: Context) throws(RepositoryError) {
    // The byte before the range is read too, because a line begins at the start of the range if the byte before it is a line feed.
    let offset = beginsWithLine ? range.lowerBound : range.lowerBound - 1
    let bound = range.upperBound - offset
    var size = bound + Self.margin
    var bytes = try context.source.read(at: offset, count: size)
    var start = 0
    if !beginsWithLine {
      guard let lineFeed = bytes.firstLineFeed(from: 0), lineFeed + 1 < bound else { return }
      start = lineFeed + 1
    }
    // The last line that begins in a range may end far behind the range. The whole line and the byte behind its line feed are read, because
    // that byte shows whether another line or the seal follows.
    while bytes.count == size, bytes.firstLineFeed(from: bound - 1) ?? size >= size - 1 {
      size *= 2
      bytes = try context.source.read(at: offset, count: size)
    }
    try bytes.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: context.file)
      (cursor.base, cursor.offset) = (offset, start)
      try readLines(MainFileScanner(cursor, commit: context.commit), before: bound, context)
    }
    self.start = offset + start
  }

  private mutating func readLines(_ start: MainFileScanner, before bound: Int, _ context: Context) throws(RepositoryError) {
    var scanner = start
    var packer: RecordPacker?
    while let line = try scanner.next(before: bound) {
      if !line.isOfSameCollection {
        if let full = packer { packs.append(full.finish()) }
        packer = nil
        if first == nil { first = RecordAddress(collection: scanner.collection, key: line.key) }
      }
      // Most lines have about the length of the first line, so the length of the first line gives an estimate of the number of lines. The
      // estimated number is reserved as capacity, so that the arrays seldom grow.
      let count = (bound - line.text.lowerBound) / line.text.count + 1
      if checksums.isEmpty { checksums.reserveCapacity(count) }
      checksums.append(line.checksum)
      guard let value = line.value else {
        tombstones.append(
          StoredRecord(
            collection: scanner.collection, key: line.key, revision: Revision(line.revision), schemaVersion: line.schemaVersion, value: nil)
        )
        continue
      }
      // Most stores open without changes in the journal, and then `isEmpty` saves hashing the address (collection and key) of each line.
      if !context.changes.isEmpty, context.changes[RecordAddress(collection: scanner.collection, key: line.key)] != nil { continue }
      if packer == nil {
        packer = RecordPacker(
          scanner.collection, limits: context.limits, capacity: scanner.cursor.bytes.count - line.text.lowerBound, recordCapacity: count)
      }
      packer?.append(
        line.key, revision: Revision(line.revision), schemaVersion: line.schemaVersion,
        value: UnsafeRawBufferPointer(rebasing: scanner.cursor.bytes[value]))
    }
    if let packer { packs.append(packer.finish()) }
    if let key = scanner.last { last = RecordAddress(collection: scanner.collection, key: key) }
    end = scanner.cursor.base + scanner.cursor.offset
    isLast = scanner.cursor.next != UInt8(ascii: "{")
  }
}

extension Data {
  /// Returns the offset of the first line feed from an offset on, or `nil` if there is none.
  fileprivate func firstLineFeed(from offset: Int) -> Int? {
    withUnsafeBytes { bytes in
      guard offset < bytes.count, let base = bytes.baseAddress, let found = memchr(base + offset, 0x0A, bytes.count - offset) else {
        return nil
      }
      return base.distance(to: UnsafeRawPointer(found))
    }
  }
}
