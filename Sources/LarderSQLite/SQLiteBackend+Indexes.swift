public import Foundation
public import Larder
internal import Synchronization

/// The indexes of records that the database holds.
extension SQLiteBackend {
  /// True for an exclusive store that was opened with ``openPaged(_:_:)``.
  public var storesIndexes: Bool { store.withLock { $0.indexes != nil } }

  /// Returns whether the database has a complete index, as of the newest commit.
  public func holdsIndex(_ index: StoredIndexID) -> Bool { store.withLock { $0.indexes?.entries[index]?.isComplete ?? false } }

  /// Adds keys to an index that is being built, in one transaction.
  ///
  /// See also `PagingBackend.extendIndex(_:by:isFirst:)`.
  /// - Throws: the errors of ``commit(_:)``. `.unsupported` if no index is being built, and for keys that do not ascend, with the index
  ///   dropped.
  public func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.indexWriter().extendIndex(index, by: keys, isFirst: isFirst) }
  }

  /// Creates a file in the directory of the database, and removes its name at once.
  ///
  /// - Throws: `.unsupported` for a store that is open `.readOnly`. `.full`, `.inputOutput`, `.protectedDataUnavailable`, `.closed`.
  public func makeScratchFile() throws(RepositoryError) -> (any OpenFile)? {
    try store.withLock { store throws(RepositoryError) in
      let path = try store.indexWriter().connection.path
      return try store.fileSystem.createScratchFile(at: path + "-keys-tmp", like: nil)
    }
  }

  /// Marks an index as complete, or replaces the boundaries of a complete index.
  ///
  /// - Throws: the errors of ``extendIndex(_:by:isFirst:)``.
  public func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.indexWriter().storeBoundaries(boundaries, of: index) }
  }

  /// Drops the table of an index, whether the index is complete or not.
  ///
  /// - Throws: the errors of ``commit(_:)``.
  public func dropIndex(_ index: StoredIndexID) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.indexWriter().dropIndex(index) }
  }
}
