public import Foundation
public import Larder

/// The records of an inner backend as of one commit, whose reads a ``FaultInjectingBackend`` holds, fails and counts.
final class FaultInjectingBase: StoredBase {
  private let inner: any StoredBase
  private let backend: FaultInjectingBackend

  init(_ inner: any StoredBase, of backend: FaultInjectingBackend) { (self.inner, self.backend) = (inner, backend) }

  var commit: Revision { inner.commit }

  func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] {
    try backend.call(.read) { () throws(RepositoryError) in try inner.records(keys, of: collection) }
  }

  func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
    try backend.call(.read) { () throws(RepositoryError) in try inner.records(of: collection, after: key, limit: limit) }
  }

  func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] {
    try backend.call(.read) { () throws(RepositoryError) in try inner.boundaries(of: index) }
  }

  func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    try backend.call(.read) { () throws(RepositoryError) in try inner.indexKeys(of: index, from: lower, below: upper) }
  }

  func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    try backend.call(.read) { () throws(RepositoryError) in try inner.indexKeyCount(of: index, from: lower, below: upper) }
  }
}

extension FaultInjectingBackend {
  /// Opens the inner backend without its records, as ``open(_:_:)`` opens it with them.
  ///
  /// - Throws: `.unsupported` if the inner backend cannot leave records in its storage.
  public func openPaged(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> PagedOpening {
    let inner = try paging
    return try call(.open) { () throws(RepositoryError) in try inner.openPaged(options, visit) }
  }

  /// Returns the records of the inner backend, each read of which is counted, and may be held or failed, as an ``Operation/read``.
  ///
  /// `keepBase` itself is never counted, held or failed.
  public func keepBase() throws(RepositoryError) -> any StoredBase { FaultInjectingBase(try paging.keepBase(), of: self) }

  /// True if the inner backend wants a newer base.
  public var wantsNewerBase: Bool { (inner as? any PagingBackend)?.wantsNewerBase ?? false }

  /// True if the inner backend can keep a base without a wait.
  public var canKeepBase: Bool { (inner as? any PagingBackend)?.canKeepBase ?? true }

  /// True if the inner backend can hold indexes.
  public var storesIndexes: Bool { (inner as? any PagingBackend)?.storesIndexes ?? false }

  /// Returns whether the inner backend holds an index.
  public func holdsIndex(_ index: StoredIndexID) -> Bool { (inner as? any PagingBackend)?.holdsIndex(index) ?? false }

  /// Returns the changes that an index of the inner backend lacks.
  public func missedChanges(of index: StoredIndexID) throws(RepositoryError) -> [MissedChange] { try paging.missedChanges(of: index) }

  /// Brings an index of the inner backend up to date.
  public func catchUpIndex(_ index: StoredIndexID, by edits: [IndexEdit]) throws(RepositoryError) {
    try paging.catchUpIndex(index, by: edits)
  }

  /// Adds keys to an index of the inner backend, which is never counted, held or failed.
  public func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    try paging.extendIndex(index, by: keys, isFirst: isFirst)
  }

  /// Creates a scratch file of the inner backend, which is never failed.
  public func makeScratchFile() throws(RepositoryError) -> (any OpenFile)? { try paging.makeScratchFile() }

  /// Marks an index of the inner backend as complete.
  public func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) {
    try paging.storeBoundaries(boundaries, of: index)
  }

  /// Removes an index of the inner backend.
  public func dropIndex(_ index: StoredIndexID) throws(RepositoryError) { try paging.dropIndex(index) }

  /// Upper bound of the length of all values in the inner backend.
  public var valueSizeBound: ByteCount? { (inner as? any PagingBackend)?.valueSizeBound }

  private var paging: any PagingBackend {
    get throws(RepositoryError) {
      guard let paging = inner as? any PagingBackend else {
        throw RepositoryError(.unsupported, "expected an inner backend that leaves records in its storage, found another", file: name)
      }
      return paging
    }
  }
}
