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
