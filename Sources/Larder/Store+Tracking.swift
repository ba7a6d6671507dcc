internal import Synchronization

extension Store {
  /// Returns the position of a collection in the store's list of collections, and creates the collection if it is new.
  package func collection(named name: String) -> Int { core.collection(named: name) }

  /// A snapshot of the newest commit, from which records are read as undecoded JSON.
  package var stored: StoredSnapshot {
    // A record that was migrated in memory holds bytes of the repository's schema version, and not of the version in which it is stored.
    StoredSnapshot(state: core.state, versions: core.register.triggers.mapValues(\.coder.schemaVersion))
  }

  /// True if other processes may write the store.
  package var isShared: Bool { core.options.access == .shared }

  /// Size limits of the store's records.
  package var limits: StoreOptions.Limits { core.options.limits }

  /// The triggers that run at each change of a record, by the names of their collections.
  package var recordTriggers: [String: any RecordTrigger] {
    // The triggers are read before the names. A repository that opens meanwhile adds its name before its trigger, so each trigger that is
    // found here has a name.
    let triggers = core.register.triggers
    let names = core.state.names
    var named: [String: any RecordTrigger] = [:]
    for (position, trigger) in triggers { named[names[position]] = trigger.trigger }
    return named
  }

  /// Runs reads and writes of undecoded JSON values as one write, and marks its changes as changes of another device.
  ///
  /// - Throws: the error of the closure, and nothing was written in that case. The other errors are those of
  ///   ``transaction(durability:_:)``.
  package func writeStored<Output: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout PendingState) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    try await core.write(durability) { (pending) throws(RepositoryError) in
      // The changes are marked as remote, so that no trigger puts them into the outbox, from which they would be sent back to the server.
      pending.beginStored()
      return try body(&pending)
    }
  }
}

/// A snapshot of a store at one commit, whose records are read as undecoded JSON.
package struct StoredSnapshot: Sendable {
  let state: StoreState
  /// The schema version to which records are migrated in memory, by the position of each collection that has a trigger.
  let versions: [Int: Int]

  /// Returns the position of a collection in the snapshot's list, or `nil` if the collection does not exist.
  package func collection(named name: String) -> Int? { state.names.firstIndex(of: name) }

  /// Returns the stored value of a record, or `nil` if there is none.
  package func stored(_ key: RecordKey, in collection: Int) throws(RepositoryError) -> StoredValue? {
    // A collection that was created after the snapshot has a position beyond the end of the snapshot's list. All functions of the snapshot
    // treat such a collection as empty.
    collection < state.collections.count ? try state.collections[collection].records[key]?.stored(versions[collection]) : nil
  }

  /// Returns true if a collection has a record with this key.
  package func has(_ key: RecordKey, in collection: Int) throws(RepositoryError) -> Bool {
    collection < state.collections.count ? try state.collections[collection].records[key] != nil : false
  }

  /// Returns the number of records of a collection.
  package func count(in collection: Int) -> Int {
    collection < state.collections.count ? state.collections[collection].records.count : 0
  }

  /// Newest commit in the snapshot.
  package var revision: Revision { Revision(state.commit) }

  /// Visits the records of a collection that were written after a commit, in no order.
  ///
  /// Cost: one comparison for each record of the collection.
  package func visit(
    _ collection: Int, after commit: Revision, _ body: (RecordKey, StoredValue) -> Void
  ) throws(RepositoryError) {
    guard collection < state.collections.count else { return }
    try state.collections[collection].records.visit { slot in
      if slot.revision > commit, let stored = slot.stored(versions[collection]) { body(slot.key, stored) }
      return true
    }
  }
}

extension PendingState {
  /// Inserts a value of a repository, or replaces the stored value with the same id.
  ///
  /// - Throws: the errors that a save of the value throws.
  package mutating func save<Item>(_ item: Item, in repository: LocalRepository<Item>) throws(RepositoryError) {
    try put(repository.coder.encode(item, decoding: false), in: repository.collection)
  }

  /// Returns a value of a repository, or `nil` if there is none with this id.
  ///
  /// - Throws: `.invalidKey` for an id that cannot be a key. `.decodingFailed`, `.migrationFailed` or `.newerSchema` for a stored value
  ///   that cannot be read.
  package func find<Item>(by id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try collections[repository.collection].records[repository.coder.keys.key(for: id)]?.value(repository.coder)
  }

  /// Deletes a value of a repository, if there is one.
  package mutating func delete<Item>(_ id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) {
    // `deleteStored` checks no version and runs no trigger. LarderSync calls `delete(_:in:)` only for its own collections, which need no
    // version check and have no trigger.
    try deleteStored(repository.coder.keys.key(for: id), in: repository.collection)
  }
}

extension Store {
  /// Starts to collect the keys of a collection's records that any writer changes from now on.
  package func changes(of collection: Int) -> ChangedKeys { changedKeys(of: collection, editsOnly: false) }

  /// Starts to collect the keys of a collection's records that this device changes from now on, in this or another process.
  package func edits(of collection: Int) -> ChangedKeys { changedKeys(of: collection, editsOnly: true) }

  private func changedKeys(of collection: Int, editsOnly: Bool) -> ChangedKeys {
    let keys = ChangedKeys(editsOnly: editsOnly)
    core.hub.register(keys, for: collection)
    return keys
  }

  /// The newest commit that was announced to ``ChangedKeys``, or zero before the first announcement.
  ///
  /// On the store's executor, as in a closure of ``writeStored(durability:_:)``, the announced commit is the store's newest commit. On
  /// another thread the announced commit may be older than the newest commit.
  package var announced: Revision { core.hub.progress.revision }
}

/// A set of the keys of changed records of one collection, which one reader takes and empties.
package final class ChangedKeys: ChangeObserver {
  private let editsOnly: Bool
  private let keys = Mutex<Set<RecordKey>>([])
  private let signal = Signal()

  /// - Parameter editsOnly: True to leave out changes of other devices and of migrations.
  init(editsOnly: Bool) { self.editsOnly = editsOnly }

  func receive(_ changes: [RecordChange], commit: Revision) {
    // At each commit the store calls the observers of all collections, and most of these calls bring no changes.
    guard !changes.isEmpty else { return }
    // Values that came from other devices must not be sent back, and a migration does not change the meaning of a record.
    let changed = changes.lazy.filter { [editsOnly] in !editsOnly || ($0.origin != .remote && $0.origin != .migration) }.map(\.key)
    let isEmpty = keys.withLock { keys in
      keys.formUnion(changed)
      return keys.isEmpty
    }
    if !isEmpty { signal.raise() }
  }

  func finish() { signal.finish() }

  /// Returns the keys of all records that have changed since the last call, and empties the set.
  package func takeKeys() -> Set<RecordKey> {
    keys.withLock { keys in
      defer { keys = [] }
      return keys
    }
  }

  /// Returns the keys of all records that have changed since the last call, as soon as there are any.
  ///
  /// The call returns `nil` when the store is closed or the task is cancelled.
  package nonisolated(nonsending) func next() async -> Set<RecordKey>? {
    while !Task.isCancelled {
      // The state of the signal is read before the keys. A change after the read of the signal ends the wait, and changes before the
      // store's close are still returned.
      let (moment, isFinished) = (signal.moment, signal.isFinished)
      let taken = takeKeys()
      if !taken.isEmpty { return taken }
      if isFinished { return nil }
      await signal.wait(after: moment)
    }
    return nil
  }
}

extension PendingState {
  /// Returns the keys of records that earlier writes of the same commit have changed in a collection.
  package func staged(in collection: Int) -> [RecordKey] { changes.lazy.filter { $0.collection == collection }.map(\.key) }
}
