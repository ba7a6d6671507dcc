public import Foundation

/// A main file that a tool writes: a copy of a store that keeps its identity, or one whose checksums are made anew.
@_spi(Inspection)
public struct JSONFileCopy: Sendable {
  /// The identity of the store.
  public var storeID: UUID
  /// The generation; a journal of another one does not continue the file.
  public var generation: UInt64
  /// The newest commit.
  public var commit: UInt64
  /// The commit up to which deletions may have been forgotten.
  public var tombstonesSince: UInt64

  /// Makes the description of a main file.
  public init(storeID: UUID, generation: UInt64, commit: UInt64, tombstonesSince: UInt64) {
    self.storeID = storeID
    self.generation = generation
    self.commit = commit
    self.tombstonesSince = tombstonesSince
  }

  /// Writes a new file, and syncs it; no journal that exists continues it.
  /// - Parameters:
  ///   - records: All records and tombstones, in the order of their addresses.
  ///   - path: The path of a file that does not exist.
  /// - Throws: `.full`, `.inputOutput`, `.protectedDataUnavailable`; what was written then is for the caller to remove.
  public func write(_ records: [StoredRecord], to path: String, in fileSystem: any FileSystem) throws(RepositoryError) {
    let file = try fileSystem.create(path)
    var writer = MainFileWriter(
      file,
      MainFileHeader(
        storeID: storeID, generation: generation, commit: commit, tombstonesSince: tombstonesSince, journal: MainFileHeader.newTag()))
    for record in records { try writer.add(record) }
    try writer.finish()
    try file.close()
  }
}
