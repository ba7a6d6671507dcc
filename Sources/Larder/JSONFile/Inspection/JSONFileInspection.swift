// Inspection/ shows tools what the files of a JSON store hold beside records: the header of the main file, and the frames of the journal.
// Invariant: it reads as a store opened `.readOnly` does, and is no public API: an app has no use for it. Called by the larder tool.

public import Foundation

/// The header of a JSON store's main file, and its journal, as they are on the disk at one moment.
@_spi(Inspection)
public struct JSONFileInspection: Sendable {
  /// The identity of the store.
  public let storeID: UUID
  /// The generation of the main file, which grows by one with every checkpoint.
  public let generation: UInt64
  /// The newest commit in the main file.
  public let commit: Revision
  /// The newest deletion whose tombstone was forgotten.
  public let tombstoneHorizon: Revision
  /// The journal beside the main file, if there is one.
  public let journal: JournalInspection?

  /// The number of attempts to read files that change meanwhile.
  private static let attempts = 5
  /// Enough to hold the header.
  private static let headerSize = 4_096

  /// Reads header and journal, locks nothing, and changes nothing.
  ///
  /// - Throws: `.dataMissing` where there is no main file; `.notOurStore`, `.newerSchema`, `.corrupted` with the offset.
  public init(file: URL, fileSystem: any FileSystem = POSIXFileSystem()) throws(RepositoryError) {
    let paths = JSONFilePaths(file)
    var (before, journal): (Data?, Data?) = (nil, nil)
    for _ in 0..<Self.attempts {
      before = try fileSystem.contents(of: paths.mainFile, limit: Self.headerSize)
      journal = try fileSystem.contents(of: paths.journal)
      // A checkpoint in between puts another main file into place.
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

/// The frames of a journal, as far as they are whole, and the kind of what follows them.
@_spi(Inspection)
public struct JournalInspection: Sendable {
  /// A frame: one group of commits, all or none.
  public struct Frame: Sendable {
    /// The offset of its first byte.
    public let offset: Int
    /// Its size in bytes.
    public let byteCount: Int
    /// The commits that it makes.
    public let commits: ClosedRange<UInt64>
    /// The records and tombstones that it writes, in order.
    public internal(set) var records: [StoredRecord]
  }

  /// The bytes behind the last whole frame.
  public enum Tail: Sendable {
    /// Zero bytes, which are allocated ahead.
    case clean
    /// A last write that is not whole, of so many bytes; if ambiguous, damage is as likely.
    case torn(byteCount: Int, isAmbiguous: Bool)
  }

  /// The identity of the store that it belongs to.
  public let storeID: UUID
  /// The generation of the main file that it continues.
  public let generation: UInt64
  /// The commit that it continues.
  public let base: UInt64
  /// The whole frames, in order.
  public let frames: [Frame]
  /// The newest commit in a whole frame, or the base.
  public let lastCommit: UInt64
  /// The offset behind the last whole frame.
  public let end: Int
  /// The bytes from there on.
  public let tail: Tail

  /// Reads all frames.
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
