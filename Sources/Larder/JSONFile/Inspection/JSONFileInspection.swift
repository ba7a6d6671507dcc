// Inspection/ shows tools the parts of a JSON store's files that are not records: the header of the main file and the frames of the
// journal.
// Invariant: it reads as a store opened `.readOnly` does, and is no public API, since an app has no use for it. Called by the larder tool.

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
  /// Newest deletion whose tombstone was forgotten.
  public let tombstoneHorizon: Revision
  /// Journal beside the main file, if there is one.
  public let journal: JournalInspection?

  /// Number of attempts to read files that a writer keeps changing.
  private static let attempts = 5
  /// Bytes that are enough to hold the header.
  private static let headerSize = 4_096

  /// Reads header and journal without a lock, and changes nothing.
  ///
  /// - Throws: `.dataMissing` if there is no main file. `.notOurStore`, `.newerSchema`, `.corrupted` with the offset.
  public init(file: URL, fileSystem: any FileSystem = POSIXFileSystem()) throws(RepositoryError) {
    let paths = JSONFilePaths(file)
    var (before, journal): (Data?, Data?) = (nil, nil)
    for _ in 0..<Self.attempts {
      before = try fileSystem.contents(of: paths.mainFile, limit: Self.headerSize)
      journal = try fileSystem.contents(of: paths.journal)
      // A checkpoint between the reads renames another main file into place, and header and journal would not belong together.
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

/// The whole frames of a journal, and the kind of the bytes behind them.
@_spi(Inspection)
public struct JournalInspection: Sendable {
  /// A frame of a journal, which is one group of commits, all or none.
  public struct Frame: Sendable {
    /// Offset of its first byte.
    public let offset: Int
    /// Size in bytes.
    public let byteCount: Int
    /// Commits in the frame.
    public let commits: ClosedRange<UInt64>
    /// Records and tombstones of the frame, in order.
    public internal(set) var records: [StoredRecord]
  }

  /// The kind of the bytes behind the last whole frame.
  public enum Tail: Sendable {
    /// Zero bytes, which are allocated ahead.
    case clean
    /// An unfinished last write of `byteCount` bytes. If ambiguous, it may also be damage to a finished one.
    case torn(byteCount: Int, isAmbiguous: Bool)
  }

  /// Unique identifier of the store that the journal belongs to.
  public let storeID: UUID
  /// Generation of the main file that the journal continues.
  public let generation: UInt64
  /// Commit that the journal continues.
  public let base: UInt64
  /// Whole frames, in order.
  public let frames: [Frame]
  /// Newest commit in a whole frame, or ``base``.
  public let lastCommit: UInt64
  /// Offset behind the last whole frame.
  public let end: Int
  /// Kind of the bytes behind the last whole frame.
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
