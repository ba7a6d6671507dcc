internal import Foundation

/// Leaves the records of collections in the storage, or reads them into memory.
///
/// Every function of this extension must run on the store's executor, which serializes all commits.
extension StoreCore {
  /// Sets the place of a collection's records, unless a repository has opened the collection before.
  ///
  /// - Throws: `.unsupported` if the backend cannot leave records in its storage. Otherwise the errors of reading the storage.
  func setResidency(_ wanted: Residency, of collection: Int) throws(RepositoryError) {
    let (name, present) = (state.names[collection], state.collections[collection])
    guard !present.indexes.areDeclared else { return }
    let cache = try cache(for: wanted, of: present.records, named: name)
    guard (cache != nil) != present.records.isPaged else { return }
    if state.isSuspended { throw .storeSuspended }
    let records: RecordMap
    do throws(RepositoryError) {
      records = if let cache { try paged(collection, cache: cache) } else { try resident(name) }
    } catch {
      // Also a backend that leaves records in its storage may be unable to do so with the access of this store, or beside another process.
      if case .automatic = wanted, [.unsupported, .locked].contains(error.code) { return }
      throw error
    }
    _ = updateCollection(collection) { state in
      let old = state
      // Another thread may have declared indexes meanwhile, which hold the records as they were.
      if !state.indexes.areDeclared { state.replaceRecords(with: records) }
      return old
    }
  }

  /// Returns the size of a collection's cache, or `nil` if memory must hold the records.
  private func cache(for wanted: Residency, of records: RecordMap, named name: String) throws(RepositoryError) -> ByteCount? {
    switch wanted {
    case .full: return nil
    case .onDisk(let cache): return cache
    case .automatic(let limit):
      // Records that the opening has left in the storage stay there, because only reading them would show their size.
      guard backend is any PagingBackend else { return nil }
      if records.isPaged { return Residency.automaticCache }
      var size = 0
      try records.visit { slot in
        size += slot.byteCount
        return size <= limit.bytes
      }
      return size > limit.bytes ? Residency.automaticCache : nil
    }
  }

  /// Returns the records of a collection over a base of the newest commit.
  private func paged(_ collection: Int, cache: ByteCount) throws(RepositoryError) -> RecordMap {
    // Values that only memory holds in their newest form are in the storage too, because a commit is durable before it is published.
    let base = try newestBase()
    // The base may be of a commit of another process that was published just now.
    let (name, records) = (state.names[collection], state.collections[collection].records)
    let found = PagedRecords(name, in: base, limits: options.limits, cache: cache)
    return RecordMap(found, count: records.count, versions: (records.oldestSchemaVersion, records.newestSchemaVersion))
  }

  /// Reads the records of a collection from the storage into memory.
  private func resident(_ name: String) throws(RepositoryError) -> RecordMap {
    let base = try newestBase()
    var loader = StoreLoader(limits: options.limits)
    try base.forEach(of: name) { loader.add($0) }
    let records = loader.finish(commit: base.commit).collections.first?.records ?? RecordMap()
    records.index()
    if !loader.undecodable.isEmpty {
      var report = openReport
      report.undecodable += loader.undecodable
      replaceReport(report)
    }
    return records
  }

  /// Returns the records of the storage as of the newest published commit, to which all collections in the storage move on.
  ///
  /// The commits of other processes are published first. All collections move together, because the backend may give up every base but the
  /// newest one, and need not keep the state of an old commit for one of them.
  /// - Throws: `.locked` if other processes commit all the time. Otherwise the errors of ``PagingBackend/keepBase()``, and in a shared
  ///   store those of ``StorageBackend/beginCommit(after:_:)``.
  func newestBase() throws(RepositoryError) -> any StoredBase {
    guard let backend = backend as? any PagingBackend else { throw .cannotPage(self.backend) }
    let isShared = options.access == .shared
    for _ in 0..<3 {
      if isShared { _ = try follower.beginSharedCommit(options.durability, after: state, of: self) }
      // `cancelCommit` lets the backend free the space of the old base, so it runs after `moveCollections` has released the old base.
      defer { if isShared { backend.cancelCommit() } }
      let base = try backend.keepBase()
      if base.commit.number == state.commit {
        moveCollections(to: base)
        return base
      }
      // Another process has committed to a store that is read only, so its commits are published before the next attempt.
      if !isShared { try follower.publishNewCommits(of: self) }
    }
    throw RepositoryError(.locked, "expected a moment without commits of other processes, found none; try again", file: backend.name)
  }

  /// Moves the collections whose records stay in the storage on to the newest commit, if one of them has many changes in memory or the
  /// backend asks for it.
  ///
  /// In a shared store, first keeps other processes from committing and publishes their commits, unless another process is committing.
  func moveBaseIfWorthwhile() {
    // No constant holds the state, because the old base must be released while no other process may commit.
    guard let backend = backend as? any PagingBackend, state.collections.contains(where: \.records.isPaged) else { return }
    if backend.wantsNewerBase {
      moveBase(isForced: true)
    } else if state.collections.contains(where: \.records.wantsNewerBase) {
      moveBase()
    }
  }

  /// Moves the collections whose records stay in the storage on to the newest commit.
  ///
  /// Does nothing while another process keeps this one from committing, since nobody waits for the move.
  /// - Parameter isForced: True if a base of the newest commit must be replaced, too.
  func moveBase(isForced: Bool = false) {
    guard state.isOpen, (backend as? any PagingBackend)?.canKeepBase == true,
      isForced ? state.collections.contains(where: \.records.isPaged) : state.hasOlderBase
    else { return }
    // After a failure the changes stay in memory, and the next commit tries again.
    do throws(RepositoryError) { _ = try newestBase() } catch {}
  }

  /// Takes a newer base in place of one that was lost, in a commit to a shared store that has begun.
  ///
  /// Before the commit, another process may have kept this one from taking a newer base.
  func replaceLostBase() throws(RepositoryError) {
    guard let backend = backend as? any PagingBackend, state.hasLostBase else { return }
    moveCollections(to: try backend.keepBase())
  }

  /// Moves the collections whose records stay in the storage on to a base of the newest published commit.
  func moveCollections(to base: any StoredBase) {
    for (position, collection) in state.collections.enumerated() where collection.records.isPaged {
      let moved = collection.records.moved(to: base)
      let indexes = movedIndexes(of: collection, to: base)
      _ = updateCollection(position) { state in
        let old = state
        state.replaceRecords(with: moved)
        for (index, body) in indexes { state.indexes.bodies[index] = body }
        return old
      }
    }
  }

  /// Returns the indexes in the storage over a newer base, by position, and stores new boundaries of their blocks.
  private func movedIndexes(of collection: CollectionState, to base: any StoredBase) -> [(index: Int, body: IndexBody)] {
    guard let backend = backend as? any PagingBackend else { return [] }
    return collection.indexes.bodies.enumerated().compactMap { index, body in
      guard case .stored(let entries) = body else { return nil }
      guard backend.holdsIndex(entries.run.id) else { return (index, .absent) }
      // Without its boundaries, a run that no query has read would not divide the blocks that have grown. The next query finds an error.
      do throws(RepositoryError) { _ = try entries.run.boundaries() } catch {}
      let moved = entries.moved(to: base)
      if let boundaries = moved.run.newBoundaries {
        // Without the boundaries in the storage, the next opening divides the large blocks again.
        do throws(RepositoryError) { try backend.storeBoundaries(boundaries, of: entries.run.id) } catch {}
      }
      return (index, .stored(moved))
    }
  }

  /// Gives up the indexes that the backend has dropped outside a commit, so that the next query builds them.
  func dropLostIndexes() {
    guard let backend = backend as? any PagingBackend, backend.storesIndexes else { return }
    for position in state.collections.indices {
      updateCollection(position) { $0.indexes.dropStored { !backend.holdsIndex($0) } }
    }
  }

  /// Builds the unique indexes in memory that the storage has lost, or that do not fit the records.
  ///
  /// A write that is compared with such an index builds it, too. But a write that is refused is taken back with the index.
  /// - Returns: True if an index was built.
  func buildLostUniqueIndexes() -> Bool {
    var isBuilt = false
    for (position, collection) in state.collections.enumerated() where collection.indexes.hasLostUniqueIndex {
      if indexBuilder.hasFailed(position) { continue }
      let (lost, indexes) = (collection.indexes.lostUniqueIndexes, collection.indexes)
      do throws(RepositoryError) {
        var rebuilt = indexes
        try rebuilt.rebuild(lost, from: collection.records)
        for index in lost { indexBuilder.stored.noteRefutation(of: indexes.bodies[index]) }
        let bodies = lost.map { (index: $0, body: rebuilt.bodies[$0]) }
        updateCollection(position) { state in for (index, body) in bodies { state.indexes.bodies[index] = body } }
        indexBuilder.stored.copySoon(lost, of: position, in: self)
        isBuilt = true
      } catch {
        // A damaged record stops each build. Writes that need no index must not wait for it again.
        indexBuilder.noteFailure(of: position)
      }
    }
    return isBuilt
  }

  /// Uses the indexes that the storage holds, for a collection whose indexes were just declared.
  ///
  /// Without a call of `useStoredIndexes` before the collection's first commit, that commit would not change the stored indexes, and the
  /// backend would drop them.
  func useStoredIndexes(of collection: Int) {
    let refused = catchUpIndexes(of: collection)
    let present = state.collections[collection]
    // A base with changes in memory has other keys than the newest commit.
    guard let backend = backend as? any PagingBackend, backend.storesIndexes, let base = present.records.unchangedBase else { return }
    let bodies = present.indexes.storedIDs(of: state.names[collection]).compactMap { index, id -> (index: Int, body: IndexBody)? in
      guard case .absent = present.indexes.bodies[index], backend.holdsIndex(id), !refused.contains(id) else { return nil }
      return (index, .stored(StoredEntries(StoredRun(id, present.indexes.definitions[index], in: base))))
    }
    updateCollection(collection) { state in
      for (index, body) in bodies {
        state.indexes.bodies[index] = body
        if state.indexes.definitions[index].isUnique { state.indexes.enforcedIndexes.insert(index) }
      }
    }
  }

  /// Brings the stored indexes of a collection up to date with the commits that they lack after a crash.
  ///
  /// - Returns: The unique indexes that now have duplicates, and must not be used.
  private func catchUpIndexes(of collection: Int) -> Set<StoredIndexID> {
    let present = state.collections[collection]
    guard present.records.isPaged, let backend = backend as? any PagingBackend, backend.storesIndexes else { return [] }
    var caughtUp: [(id: StoredIndexID, definition: IndexDefinition, keys: [Data])] = []
    for (index, id) in present.indexes.storedIDs(of: state.names[collection]) where !backend.holdsIndex(id) {
      let definition = present.indexes.definitions[index]
      do throws(RepositoryError) {
        let missed = try backend.missedChanges(of: id)
        if missed.isEmpty { continue }
        guard let edits = edits(missed, of: id, definition) else {
          try backend.dropIndex(id)
          continue
        }
        try backend.catchUpIndex(id, by: edits)
        caughtUp.append((id, definition, edits.compactMap(\.added)))
      } catch {
        // The next query builds the index, and the next commit drops the one in the storage.
      }
    }
    if caughtUp.isEmpty { return [] }
    var refused: Set<StoredIndexID> = []
    // The missed commits may be those of a process that does not declare the index.
    for (id, definition, keys) in caughtUp where definition.isUnique && hasDuplicate(id, definition, among: keys, in: backend) {
      refused.insert(id)
      // After an error, the next commit drops the index, because no collection uses it.
      do throws(RepositoryError) { try backend.dropIndex(id) } catch {}
    }
    // The present base has no keys of these indexes.
    moveBase(isForced: true)
    return refused
  }

  /// Returns true if a unique index in the storage has a duplicate of one of some keys, or cannot be read.
  private func hasDuplicate(
    _ id: StoredIndexID, _ definition: IndexDefinition, among keys: [Data], in backend: any PagingBackend
  ) -> Bool {
    do throws(RepositoryError) { return try StoredRun(id, definition, in: backend.keepBase()).hasDuplicate(among: keys) } catch {
      return true
    }
  }

  /// Returns the edits of an index for changed records, or `nil` if a record has no entry that the storage can hold.
  private func edits(_ missed: [MissedChange], of index: StoredIndexID, _ definition: IndexDefinition) -> [IndexEdit]? {
    func slot(_ record: StoredRecord?) -> RecordSlot? {
      record.flatMap { record in record.value.map { RecordSlot.loaded(record, $0, options.limits).0 } }
    }
    var edits: [IndexEdit] = []
    for missed in missed {
      let change = IndexChange(old: slot(missed.before), new: slot(missed.after))
      guard let edit = StoredEdit(change, definition, stubs: change.stubs) else { return nil }
      let (removed, added) = (edit.before.map(IndexKey.bytes), edit.after.map(IndexKey.bytes))
      if removed != added { edits.append(IndexEdit(index: index, removed: removed, added: added)) }
    }
    return edits
  }
}

extension StoredBase {
  /// Visits the records of a collection in the order of their keys.
  ///
  /// - Throws: The errors of ``records(of:after:limit:)``. `.corrupted` if the keys do not ascend.
  func forEach(of collection: String, _ body: (StoredRecord) -> Void) throws(RepositoryError) {
    var last: RecordKey?
    while case let records = try records(of: collection, after: last, limit: 1_024), let end = records.last?.key {
      // In a damaged storage the blocks may not ascend, and this loop would be endless.
      if let last, !(last < end) { throw .disorder(in: collection, at: end) }
      for record in records { body(record) }
      last = end
    }
  }
}

extension RepositoryError {
  /// Returns the error for a backend that cannot leave records in its storage.
  static func cannotPage(_ backend: any StorageBackend) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected a backend that leaves records in its storage, found \(type(of: backend)); open it with `residency: .full` or `.automatic`",
      file: backend.name)
  }
}
