public import Foundation

/// Functions that read the parts of a damaged main file one by one, for tools that save the undamaged records of a store.
@_spi(Inspection)
public enum JSONFileParts {
  /// The header of a main file.
  public struct Header: Hashable, Sendable {
    /// Unique identifier of the store.
    public let storeID: UUID
    /// Generation of the main file: 1 in a new store, and one more after every checkpoint.
    public let generation: UInt64
    /// Newest commit in the main file.
    public let commit: UInt64
    /// Commit up to which tombstones (records of deletions) may have been dropped.
    public let tombstonesSince: UInt64
    /// Random salt of the journal whose commits the last checkpoint has merged into the main file.
    public let folded: UInt32?
    /// Random tag that a journal must have in its header to continue the main file.
    public let journal: UInt32?
    /// Checksum of the header.
    ///
    /// The hash in the last line of the main file covers the header's checksum first.
    public let checksum: UInt32
    /// Size of the header in bytes, including its line feed.
    public let byteCount: Int
  }

  /// Reads the header at the beginning of a main file.
  ///
  /// - Parameters:
  ///   - bytes: The main file from its first byte on, at least up to the end of the header.
  ///   - file: The path of the main file, for errors.
  /// - Throws: `.notOurStore`, `.newerSchema`, `.corrupted` with the offset.
  public static func header(of bytes: Data, file: String) throws(RepositoryError) -> Header {
    try bytes.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: file)
      var seal = SealHash()
      let header = try MainFileReader(source: .data(Data()), file: file).readHeader(&cursor, &seal)
      let text = UnsafeRawBufferPointer(rebasing: bytes[..<cursor.offset])
      return Header(
        storeID: header.storeID, generation: header.generation, commit: header.commit, tombstonesSince: header.tombstonesSince,
        folded: header.folded, journal: header.journal, checksum: checksum(ofHeader: text), byteCount: cursor.offset)
    }
  }

  /// Returns the checksum of a header, computed over the header's bytes before the field `crc`.
  private static func checksum(ofHeader text: UnsafeRawBufferPointer) -> UInt32 {
    let ending = #","crc":"00000000","records":["#.utf8.count + 1
    return CRC32C.checksum(UnsafeRawBufferPointer(rebasing: text.dropLast(ending)))
  }

  /// Reads the record of one line of a main file, and compares the record's checksum.
  ///
  /// - Parameters:
  ///   - line: The bytes of the line, from its opening brace to its closing brace.
  ///   - file: The path of the main file, for errors.
  ///   - offset: The offset of the line in the main file, for errors.
  /// - Throws: `.corrupted` with the offset.
  public static func record(ofLine line: Data, file: String, at offset: Int) throws(RepositoryError) -> StoredRecord {
    // `MainFileScanner` accepts the last line only if a line feed and the byte `]` follow, so both are appended.
    try (line + Data("\n]".utf8)).lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: file)
      cursor.base = offset
      // `MainFileScanner` refuses a record whose revision is newer than the newest commit in the header. The header of a damaged file may
      // be wrong, so the scanner gets the largest commit number, `.max`, and refuses no record for its revision.
      var scanner = MainFileScanner(cursor, commit: .max)
      guard let found = try scanner.next(before: 1) else {
        throw RepositoryError(.corrupted, "expected a line that begins with a brace", file: file, offset: UInt64(offset))
      }
      guard found.text.upperBound == line.count else {
        throw RepositoryError(.corrupted, "expected the end of the line", file: file, offset: UInt64(offset + found.text.upperBound))
      }
      return StoredRecord(
        collection: scanner.collection, key: found.key, revision: Revision(found.revision), schemaVersion: found.schemaVersion,
        value: found.value.map { Data(bytes[$0]) })
    }
  }
}

/// The header values of a main file that a tool writes: a copy of a store with the same identifier, or a file with new checksums.
@_spi(Inspection)
public struct JSONFileCopy: Sendable {
  /// Unique identifier of the store.
  public var storeID: UUID
  /// Generation of the main file, which grows by one with every checkpoint.
  ///
  /// A journal names the generation of the main file that it continues.
  public var generation: UInt64
  /// Newest commit in the main file.
  public var commit: UInt64
  /// Commit up to which tombstones (records of deletions) may have been dropped.
  public var tombstonesSince: UInt64

  /// Creates the header values of a main file.
  public init(storeID: UUID, generation: UInt64, commit: UInt64, tombstonesSince: UInt64) {
    self.storeID = storeID
    self.generation = generation
    self.commit = commit
    self.tombstonesSince = tombstonesSince
  }

  /// Writes the main file as a new file, and syncs it.
  ///
  /// The new main file gets a new journal tag, so that Larder refuses every existing journal beside it.
  /// - Parameters:
  ///   - records: All records and tombstones, sorted by collection and key.
  ///   - path: The path of a file that does not exist.
  /// - Throws: `.full`, `.inputOutput`, `.protectedDataUnavailable`. If this function throws, the caller removes the unfinished file.
  public func write(_ records: [StoredRecord], to path: String, in fileSystem: any FileSystem) throws(RepositoryError) {
    let file = try fileSystem.create(path)
    var writer = MainFileWriter(
      file,
      // The header gets a new journal tag, so that Larder refuses a journal of the original store beside the new main file.
      MainFileHeader(
        storeID: storeID, generation: generation, commit: commit, tombstonesSince: tombstonesSince, journal: MainFileHeader.newTag()))
    for record in records { try writer.add(record) }
    try writer.finish()
    try file.close()
  }
}
