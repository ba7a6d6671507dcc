internal import Foundation

/// A reader of a main file, which compares every byte or its checksum.
///
/// Its bytes are read, compared and packed in parts, several at a time on all cores.
struct MainFileReader {
  let source: MainFileSource
  let file: String
  /// The limits of records; without them, none is refused.
  var limits: StoreOptions.Limits?

  /// The size of a part in bytes.
  var partSize = 256 << 10
  /// The number of parts that are read before the first of them is looked at: enough that no core is idle for long at the end.
  static var batchCount: Int { 16 * max(1, ProcessInfo.processInfo.activeProcessorCount) }
  /// More than the header and the seal have.
  private static let edgeSize = 4_096

  /// A line of the main file: its record, the range of its text, and its checksum.
  struct Line: Sendable {
    let record: StoredRecord
    let text: Range<Int>
    let checksum: UInt32
  }

  /// Reads everything.
  ///
  /// - Parameters:
  ///   - visit: Takes the records and tombstones that no change replaces, and then all tombstones of the same part.
  ///   - begin: Takes the header, before the first line is read, and returns the changes of the journal.
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
    let count = try readLines(&offset, &seal, context, visit)
    let tail = try source.read(at: offset, count: Self.edgeSize)
    try tail.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: file)
      cursor.base = offset
      try readSeal(&cursor, seal, count: count)
    }
    return header
  }

  /// Reads the header at the beginning of the file.
  func readHeader(_ cursor: inout ByteCursor, _ seal: inout SealHash) throws(RepositoryError) -> MainFileHeader {
    guard cursor.skip(MainFileFormat.opening) else { throw withoutOpening(cursor) }
    let version = try cursor.number()
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

  /// Classifies a file with a wrong header: damaged if its first bytes are zero or mostly match, foreign otherwise.
  private func withoutOpening(_ cursor: ByteCursor) -> RepositoryError {
    let opening = UnsafeBufferPointer(start: MainFileFormat.opening.utf8Start, count: MainFileFormat.opening.utf8CodeUnitCount)
    let head = cursor.bytes.prefix(opening.count)
    if head.isEmpty { return cursor.corrupted("expected a store, found an empty file", at: 0) }
    let agreeing = zip(head, opening).count { $0 == $1 }
    guard head.allSatisfy({ $0 == 0 }) || agreeing * 4 >= head.count * 3 else {
      return RepositoryError(.notOurStore, "the file is not a Larder store", file: file, offset: 0)
    }
    return cursor.corrupted("expected `\(MainFileFormat.opening)`, found a damaged beginning", at: 0)
  }

  /// Reads all lines up to the seal, and hands them over in order; moves the offset to the seal.
  /// - Returns: The number of lines.
  private func readLines(
    _ offset: inout Int, _ seal: inout SealHash, _ context: MainFilePart.Context, _ visit: ([RecordPack], [StoredRecord]) -> Void
  ) throws(RepositoryError) -> UInt64 {
    let start = offset
    let size = try source.size()
    let batchSize = partSize * Self.batchCount
    var count: UInt64 = 0
    var last: RecordAddress?
    // What is behind a damaged part or the seal is not read, but for the rest of the batch.
    for batch in stride(from: start, to: size, by: batchSize) {
      let ranges = stride(from: batch, to: min(batch + batchSize, size), by: partSize).map { $0..<min($0 + partSize, size) }
      let results = ConcurrentMap.blockingParts(ranges, of: 1) { ranges in
        ranges.map { MainFilePart.read($0, beginsWithLine: $0.lowerBound == start, context) }
      }
      for result in results.joined() {
        let part = try result.get()
        guard let start = part.start else { continue }
        guard start == offset else {
          throw RepositoryError(.corrupted, "the file changed while it was read", file: file, offset: UInt64(offset))
        }
        // Within a part the order was checked where it was read.
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

  /// Reads the seal at the end of the file.
  func readSeal(_ cursor: inout ByteCursor, _ seal: SealHash, count: UInt64) throws(RepositoryError) {
    let start = cursor.offset
    try cursor.expect(#"],"count":"#)
    let sealedCount = try cursor.number()
    try cursor.expect(#","hash":""#)
    let hash = try cursor.hexadecimal(UInt64.self)
    try cursor.expect("\"}\n")
    guard cursor.isAtEnd else { throw cursor.corrupted("expected the end of the file after the seal") }
    guard sealedCount == count && hash == seal.value else {
      throw cursor.corrupted("the seal does not match the records: \(count) read, \(sealedCount) sealed", at: start)
    }
  }
}
