// The folder Inspection/ shows tools the parts of a JSON store's files that an app cannot read: the header of the main file and the frames
// of the journal (the append-only log of commits).
// Invariant: Inspection/ reads the files as a store opened `.readOnly` does. The types of Inspection/ are SPI for tools, and no public API.
// The folder Inspection/ is called by the command-line tool `larder`.

public import Foundation

/// The header of a JSON store's main file, and its journal, as they are on the disk at one moment.
@_spi(Inspection)
public struct JSONFileInspection: Sendable {
  /// Unique identifier of the store.
  public let storeID: UUID
  /// Generation of the main file, which grows by one with every checkpoint.
  public let generation: UInt64
  /// Newest commit in the main file.
  public let commit: Revision
  /// Commit up to which tombstones (records of deletions) may have been dropped.
  public let tombstoneHorizon: Revision
  /// Journal beside the main file, or `nil` if there is none.
  public let journal: JournalInspection?

  /// Largest number of times that the initializer reads the files, if a writer changes them between the reads.
  private static let attempts = 5
  /// Number of bytes to read from the main file, which is enough for its header.
  private static let headerSize = 4_096

  /// Reads the header of a main file and the whole journal without a lock, and changes no file.
  ///
  /// - Throws: `.dataMissing` if there is no main file. `.notOurStore`, `.newerSchema`, `.corrupted` with the offset.
  public init(file: URL, fileSystem: any FileSystem = POSIXFileSystem()) throws(RepositoryError) {
    let paths = JSONFilePaths(file)
    var (before, journal): (Data?, Data?) = (nil, nil)
    for _ in 0..<Self.attempts {
      before = try fileSystem.contents(of: paths.mainFile, limit: Self.headerSize)
      journal = try fileSystem.contents(of: paths.journal)
      // A checkpoint between the two reads replaces the main file. The header and the journal that were read do then not belong together,
      // so both are read again.
      if try fileSystem.contents(of: paths.mainFile, limit: Self.headerSize) == before { break }
    }
    guard let before else { throw RepositoryError(.dataMissing, "there is no such file", file: paths.mainFile) }
    let header = try before.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: paths.mainFile)
      var seal = SealHash()
      return try MainFileReader(source: .data(before), file: paths.mainFile).readHeader(&cursor, &seal)
    }
    (storeID, generation) = (header.storeID, header.generation)
    (commit, tombstoneHorizon) = (Revision(header.commit), Revision(header.tombstonesSince))
    if let journal { self.journal = try JournalInspection(journal, paths.journal) } else { self.journal = nil }
  }
}

/// The complete frames of a journal (each frame is one group of commits), and the kind of the bytes behind the last frame.
@_spi(Inspection)
public struct JournalInspection: Sendable {
  /// A frame of a journal, which holds one group of commits.
  ///
  /// A recovery restores all commits of a frame or none.
  public struct Frame: Sendable {
    /// Offset of the frame's first byte in the journal.
    public let offset: Int
    /// Size of the frame in bytes, including its header and its checksums.
    public let byteCount: Int
    /// Numbers of the commits in the frame.
    public let commits: ClosedRange<UInt64>
    /// Records and tombstones of the frame, in the order in which they are stored.
    public internal(set) var records: [StoredRecord]
  }

  /// The kind of the bytes behind the last complete frame.
  public enum Tail: Sendable {
    /// Only zero bytes follow the last complete frame, which the writer has allocated for later frames.
    case clean
    /// An incomplete frame of `byteCount` bytes follows, which an interrupted write has left.
    ///
    /// If `isAmbiguous` is true, the bytes may also be a complete frame that was damaged later.
    case torn(byteCount: Int, isAmbiguous: Bool)
  }

  /// Unique identifier of the store that the journal belongs to.
  public let storeID: UUID
  /// Generation of the main file that the journal continues.
  public let generation: UInt64
  /// Newest commit of the main file that the journal continues.
  public let base: UInt64
  /// Complete frames with matching checksums, in the order of the file.
  public let frames: [Frame]
  /// Newest commit in any complete frame, or ``base`` if the journal has no complete frame.
  public let lastCommit: UInt64
  /// Offset behind the last complete frame.
  public let end: Int
  /// Kind of the bytes behind the last complete frame.
  public let tail: Tail

  /// Reads all frames of a journal.
  init(_ data: Data, _ file: String) throws(RepositoryError) {
    var frames: [Frame] = []
    let contents = try JournalReader(data: data, file: file).read(
      { record throws(RepositoryError) in frames[frames.count - 1].records.append(record) },
      begin: { frame, offset in
        frames.append(Frame(offset: offset, byteCount: frame.size, commits: frame.commits, records: []))
      })
    (storeID, generation, base) = (contents.header.storeID, contents.header.generation, contents.header.base)
    (self.frames, lastCommit, end) = (frames, contents.lastCommit, contents.end)
    tail =
      switch contents.tail {
      case .clean: .clean
      case .torn(let end, let isAmbiguous): .torn(byteCount: end - contents.end, isAmbiguous: isAmbiguous)
      }
  }
}
