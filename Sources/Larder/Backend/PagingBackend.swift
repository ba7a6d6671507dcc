public import Foundation

/// A backend that can leave a store's records in its storage, for ``Residency/onDisk(cache:)``.
///
/// ```swift
/// let opening = try backend.openPaged(options) { tombstone in … }   // reads no record
/// _ = try backend.recover(opening.report)
/// let base = try backend.keepBase()                                   // the records as of the newest commit
/// let found = try base.records([RecordKey("jogashima")], of: "spots")
/// ```
///
/// A store reads records through a ``StoredBase``, which stays at one commit. The store keeps the later changes in memory until it replaces
/// the base by a newer one.
///
/// ## Order of calls
///
/// A store calls either `openPaged` or ``StorageBackend/open(_:_:)``, and the rules for `open` also hold for `openPaged`. After `recover`,
/// or after `openPaged` in a store opened `.readOnly`, the store calls ``keepBase()``, again and again while the store is open. The store
/// may call `keepBase` also if it was opened with `open`.
public protocol PagingBackend: StorageBackend {
  /// Opens the store without reading its records, and passes every tombstone to `visit`.
  ///
  /// `openPaged` should take about the same time for a store of any size. A record that is damaged need not be found by `openPaged`, since
  /// each read of a ``StoredBase`` must find it.
  /// - Returns: The report of the opening, and a summary of each collection that has a record.
  /// - Throws: The errors of ``StorageBackend/open(_:_:)``. `.unsupported` if this backend cannot leave the records of this store in its
  ///   storage.
  func openPaged(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> PagedOpening

  /// Returns the records as of the newest commit, and keeps them readable for as long as the returned object exists.
  ///
  /// The store calls `keepBase` between two commits, on the executor on which it commits. In a store opened `.shared`, the first call after
  /// `recover` must return the records as of the commit in the report of ``openPaged(_:_:)``, even if other processes have committed since.
  /// The store makes each later call after ``StorageBackend/beginCommit(after:_:)``, when no other process can commit.
  /// - Throws: The errors of ``StorageBackend/foreignCommits(after:)``.
  func keepBase() throws(RepositoryError) -> any StoredBase

  /// Whether the store should replace its base by one of the newest commit, because the old base keeps the storage from freeing space.
  ///
  /// The store reads `wantsNewerBase` after every commit, so reading it must be cheap. By default, `wantsNewerBase` is `false`.
  var wantsNewerBase: Bool { get }

  /// Whether the store can take a newer base now without a wait for another process.
  ///
  /// If `canKeepBase` is `false`, the store takes a newer base later, unless a caller needs it now. By default, `canKeepBase` is `true`.
  var canKeepBase: Bool { get }

  /// Upper bound of the length of all values together, before the store is opened, or `nil` if only opening shows it.
  ///
  /// With the bound, a store that is opened with ``Residency/automatic(limit:)`` and is small is opened once, with its records. By default,
  /// `valueSizeBound` is `nil`.
  var valueSizeBound: ByteCount? { get }

  /// Whether the storage can hold indexes. By default `false`.
  ///
  /// If `storesIndexes` is `false`, the store calls none of the members below, and builds its indexes in memory.
  var storesIndexes: Bool { get }

  /// Returns whether the storage holds an index that is complete and fits the records of the newest commit.
  ///
  /// The store calls `holdsIndex` before its first use of an index and after commits, so it must be cheap.
  func holdsIndex(_ index: StoredIndexID) -> Bool

  /// Returns the changes of records that a stored index lacks, because the opening has found commits that are newer than the index.
  ///
  /// If there are such changes, ``holdsIndex(_:)`` is false until ``catchUpIndex(_:by:)``. A batch that changes the index's collection
  /// before that call drops the index. By default, `missedChanges` returns no changes.
  /// - Throws: The errors of ``StoredBase/records(_:of:)``.
  func missedChanges(of index: StoredIndexID) throws(RepositoryError) -> [MissedChange]

  /// Changes the keys of an index by the edits of all ``missedChanges(of:)``, so that the index fits the records of the newest commit.
  ///
  /// The store may call ``dropIndex(_:)`` at once, because the changes have made two records equal in a unique index. So do not write the
  /// changed index to the storage before the next commit or ``StorageBackend/flush()``. By default, `catchUpIndex` does nothing.
  /// - Throws: The errors of ``StorageBackend/commit(_:)``.
  func catchUpIndex(_ index: StoredIndexID, by edits: [IndexEdit]) throws(RepositoryError)

  /// Adds keys to an index that is being built, in one durable or buffered transaction between two commits.
  ///
  /// The keys ascend, and follow the keys of the calls before. Batches that are committed between two calls may edit the keys that were
  /// added already. The edits follow the rules of ``WriteBatch/indexEdits``.
  /// - Parameters:
  ///   - index: The index to build.
  ///   - keys: Keys of further records, in ascending order.
  ///   - isFirst: True to begin the index anew, without the keys of an earlier attempt.
  /// - Throws: `.unsupported` if no index is being built, because the backend has dropped it. The store then begins the index anew, at
  ///   most three times. Otherwise the errors of ``StorageBackend/commit(_:)``, with the index unchanged or dropped.
  func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError)

  /// Creates an empty file that no path leads to, or returns `nil` if the storage has no files.
  ///
  /// The store sorts the keys of an index in this file before the calls of ``extendIndex(_:by:isFirst:)``. The file needs as much space as
  /// the index, and is gone when its last reference is released or the process is killed. Without a file, memory holds all keys of the
  /// index. By default, `makeScratchFile` returns `nil`.
  /// - Throws: `.full`, `.inputOutput`, `.protectedDataUnavailable`, `.closed`. The store then builds the index in memory.
  func makeScratchFile() throws(RepositoryError) -> (any OpenFile)?

  /// Marks an index as complete, or replaces the boundaries of a complete index.
  ///
  /// A backend whose indexes have boundaries of their own may ignore the given ones.
  ///
  /// - Parameters:
  ///   - boundaries: Ascending keys that divide the index into blocks of some hundred keys, beginning with an empty key.
  ///   - index: An index to which all keys were added.
  /// - Throws: The errors of ``extendIndex(_:by:isFirst:)``.
  func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError)

  /// Removes an index, whether it is complete or not. An index that is missing is no error.
  ///
  /// - Throws: The errors of ``StorageBackend/commit(_:)``.
  func dropIndex(_ index: StoredIndexID) throws(RepositoryError)
}

extension PagingBackend {
  /// By default `false`, for a storage that loses no space to an old base.
  public var wantsNewerBase: Bool { false }
  /// By default `true`, for a storage that no other process can lock.
  public var canKeepBase: Bool { true }
  /// By default `nil`.
  public var valueSizeBound: ByteCount? { nil }
  /// By default `false`.
  public var storesIndexes: Bool { false }
  /// By default `false`.
  public func holdsIndex(_ index: StoredIndexID) -> Bool { false }
  /// By default returns no changes.
  public func missedChanges(of index: StoredIndexID) throws(RepositoryError) -> [MissedChange] { [] }
  /// By default does nothing.
  public func catchUpIndex(_ index: StoredIndexID, by edits: [IndexEdit]) throws(RepositoryError) {}
  /// By default returns `nil`.
  public func makeScratchFile() throws(RepositoryError) -> (any OpenFile)? { nil }
  /// By default throws `.unsupported`.
  public func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    throw .storesNoIndexes(name)
  }
  /// By default throws `.unsupported`.
  public func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) { throw .storesNoIndexes(name) }
  /// By default does nothing.
  public func dropIndex(_ index: StoredIndexID) throws(RepositoryError) {}
}

extension RepositoryError {
  /// Returns the error for a call that concerns an index which the storage does not hold.
  public static func storesNoIndexes(_ file: String) -> RepositoryError {
    RepositoryError(.unsupported, "expected an index in the storage, found none; build it with `extendIndex` first", file: file)
  }
}

/// The result of opening a store without reading its records.
public struct PagedOpening: Sendable {
  /// The report that ``StorageBackend/open(_:_:)`` would return.
  public var report: OpenReport
  /// A summary of each collection that has a record, in any order.
  public var collections: [CollectionSummary]

  /// Makes the result of an opening.
  public init(report: OpenReport, collections: [CollectionSummary]) {
    (self.report, self.collections) = (report, collections)
  }
}

/// The number, the size and the schema versions of the records of a collection.
public struct CollectionSummary: Hashable, Sendable {
  /// Name of the collection.
  public let name: String
  /// Number of records, without tombstones.
  public let recordCount: Int
  /// Length of all values together, in bytes, or an upper bound of it.
  public let byteCount: Int
  /// Schema versions of the records: no record has an older or a newer one.
  ///
  /// The range may be wider than the versions of the records.
  public let schemaVersions: ClosedRange<Int>

  /// Makes the summary of a collection.
  public init(name: String, recordCount: Int, byteCount: Int, schemaVersions: ClosedRange<Int>) {
    self.name = name
    self.recordCount = recordCount
    self.byteCount = byteCount
    self.schemaVersions = schemaVersions
  }
}

/// The identity of an index that a ``PagingBackend`` holds beside the records of a collection.
public struct StoredIndexID: Hashable, Sendable {
  /// Name of the collection.
  public let collection: String
  /// Text that names the indexed properties, the schema version, and the form of the keys.
  ///
  /// Two indexes with different keys for the same records have different names.
  public let name: String

  /// Makes an identity.
  public init(collection: String, name: String) { (self.collection, self.name) = (collection, name) }
}

/// A change of one record's key in a stored index.
///
/// A key holds the indexed values of one record and the record's id. Keys of one index are ordered by their bytes, as unsigned numbers, and
/// a key that begins another one comes first.
public struct IndexEdit: Hashable, Sendable {
  /// The index to change.
  public let index: StoredIndexID
  /// Key to remove, or `nil` for a record that was inserted.
  public let removed: Data?
  /// Key to add, or `nil` for a record that was deleted.
  public let added: Data?

  /// Makes a change.
  public init(index: StoredIndexID, removed: Data?, added: Data?) {
    (self.index, self.removed, self.added) = (index, removed, added)
  }
}

/// The change of one record since the commit of a stored index.
public struct MissedChange: Sendable {
  /// The record whose key the index has, or `nil` if there was none.
  public let before: StoredRecord?
  /// The record as of the newest commit, or `nil` if it was deleted.
  public let after: StoredRecord?

  /// Makes a change.
  public init(before: StoredRecord?, after: StoredRecord?) { (self.before, self.after) = (before, after) }
}

/// The records of a store as of one commit, read from the storage when they are asked for.
///
/// A base never returns a record of another commit. If it can no longer read the records of its commit, it throws `.superseded`. A record
/// that must exist and cannot be read is an error, and never a missing record.
///
/// The store drops its references to a base that it no longer needs. End the transactions and close the connections of a base in its
/// deinitializer, so that the storage can free the old versions of the records.
///
/// Any number of threads may read one base at the same time, and while the store makes calls to the backend. A read may block its thread.
public protocol StoredBase: AnyObject, Sendable {
  /// Number of the commit whose records this base returns.
  var commit: Revision { get }

  /// Returns the records of keys in the order of the keys, with `nil` for a key that has no record.
  ///
  /// - Throws: `.corrupted` for a record whose checksum differs, `.superseded` if the records of ``commit`` can no longer be read,
  ///   `.inputOutput`, `.protectedDataUnavailable`, `.closed`.
  func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?]

  /// Returns the records of a collection in the order of the bytes of their keys, beginning after a key, or with the first record.
  ///
  /// Return at most `limit` records, and fewer if their values together are longer than about 1 MiB, but at least one. An empty result
  /// means that no record has a later key.
  /// - Throws: The errors of ``records(_:of:)``.
  func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord]

  /// Returns ascending keys that divide a complete index into blocks of some hundred keys, beginning with an empty key.
  ///
  /// A backend may choose other boundaries than those of ``PagingBackend/storeBoundaries(_:of:)``.
  /// - Throws: `.unsupported` if this base has no such index. The other errors are those of ``records(_:of:)``.
  func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data]

  /// Returns the keys of a complete index from a key on and below another one, in ascending order.
  ///
  /// If a commit has removed a key that the index did not have, or has added one that it had, reading the keys around it may throw
  /// `.corrupted`.
  /// - Parameters:
  ///   - index: A complete index of this base.
  ///   - lower: The least key that may be returned.
  ///   - upper: The least key that is not returned, or `nil` for all keys from `lower` on.
  /// - Throws: The errors of ``boundaries(of:)``.
  func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data]

  /// Returns the number of keys that ``indexKeys(of:from:below:)`` would return.
  ///
  /// If a commit has removed a key that the index did not have, or has added one that it had, the number may be wrong.
  ///
  /// - Throws: The errors of ``boundaries(of:)``.
  func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int
}

extension StoredBase {
  /// By default throws `.unsupported`, for a backend that stores no indexes.
  public func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] { throw .storesNoIndexes(index.collection) }
  /// By default throws `.unsupported`.
  public func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    throw .storesNoIndexes(index.collection)
  }
  /// By default throws `.unsupported`.
  public func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    throw .storesNoIndexes(index.collection)
  }
}
