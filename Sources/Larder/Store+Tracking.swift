internal import Synchronization

extension Store {
  /// Returns the position of a collection whose values are used as they are stored; it is made when it is new.
  package func collection(named name: String) -> Int { core.collection(named: name) }

  /// The newest commit, as values that are stored.
  package var stored: StoredSnapshot {
    StoredSnapshot(state: core.state, versions: core.register.triggers.mapValues(\.coder.schemaVersion))
  }

  /// Whether other processes may write the store.
  package var isShared: Bool { core.options.access == .shared }

  /// The limits of the store.
  package var limits: StoreOptions.Limits { core.options.limits }

  /// The triggers of the collections that have one, by the names of these.
  package var recordTriggers: [String: any RecordTrigger] {
    let names = core.state.names
    var named: [String: any RecordTrigger] = [:]
    for (position, trigger) in core.register.triggers { named[names[position]] = trigger.trigger }
    return named
  }

  /// Runs reads and writes of stored values as one write, whose changes observers are told to be of another device.
  ///
  /// - Throws: what the closure throws, and then nothing was written; otherwise as ``transaction(durability:_:)``.
  package func writeStored<Output: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout PendingState) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    try await core.write(durability) { (pending) throws(RepositoryError) in
      pending.beginStored()
      return try body(&pending)
    }
  }
}

/// A commit of a store, as values that are stored.
package struct StoredSnapshot: Sendable {
  let state: StoreState
  /// The versions that values of tracked collections are brought up to, by their positions.
  let versions: [Int: Int]

  /// Returns the position of a collection; `nil` for one that does not exist.
  package func collection(named name: String) -> Int? { state.names.firstIndex(of: name) }

  /// Returns a record of a collection as it is stored; `nil` when there is none.
  package func stored(_ key: RecordKey, in collection: Int) -> StoredValue? {
    collection < state.collections.count ? state.collections[collection].records[key]?.stored(versions[collection]) : nil
  }

  /// Returns whether a collection has a record.
  package func has(_ key: RecordKey, in collection: Int) -> Bool {
    collection < state.collections.count && state.collections[collection].records[key] != nil
  }

  /// Returns the number of records of a collection.
  package func count(in collection: Int) -> Int {
    collection < state.collections.count ? state.collections[collection].records.count : 0
  }

  /// The newest commit.
  package var revision: Revision { Revision(state.commit) }

  /// Visits the records of a collection that were written after a commit, in no order.
  ///
  /// Cost: a look at each record.
  package func visit(_ collection: Int, after commit: Revision, _ body: (RecordKey, StoredValue) -> Void) {
    guard collection < state.collections.count else { return }
    state.collections[collection].records.visit { slot in
      if slot.revision > commit, let stored = slot.stored(versions[collection]) { body(slot.key, stored) }
      return true
    }
  }
}

extension PendingState {
  /// Inserts or replaces a value of a repository.
  ///
  /// - Throws: as a save of it.
  package mutating func save<Item>(_ item: Item, in repository: LocalRepository<Item>) throws(RepositoryError) {
    try put(repository.coder.encode(item, decoding: false), in: repository.collection)
  }

  /// Returns a value of a repository; `nil` when there is none.
  ///
  /// - Throws: `.invalidKey`; `.decodingFailed`, `.migrationFailed`, `.newerSchema` for a stored value that cannot be read.
  package func find<Item>(by id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) -> Item? {
    try collections[repository.collection].records[repository.coder.keys.key(for: id)]?.value(repository.coder)
  }

  /// Deletes a value of a repository, if there is one.
  package mutating func delete<Item>(_ id: Item.ID, in repository: LocalRepository<Item>) throws(RepositoryError) {
    erase(try repository.coder.keys.key(for: id), in: repository.collection)
  }
}

extension Store {
  /// Returns the records of a collection that are changed from now on, whoever changes them.
  package func changes(of collection: Int) -> StoredChanges {
    let changes = StoredChanges()
    core.hub.register(changes, for: collection)
    return changes
  }

  /// The newest commit that ``StoredChanges`` were told of; zero before the first.
  ///
  /// On the store's executor it is the newest one, as in a closure of ``writeStored(durability:_:)``; elsewhere it may be behind.
  package var announced: Revision { core.hub.progress.revision }
}

/// The records of a collection that have changed and that its one reader has not asked for yet, each once.
package final class StoredChanges: ChangeObserver {
  private let keys = Mutex<Set<RecordKey>>([])

  func receive(_ changes: [RecordChange], commit: Revision) {
    if !changes.isEmpty { keys.withLock { $0.formUnion(changes.lazy.map(\.key)) } }
  }

  func finish() {}

  /// Returns the keys of all that have changed since the last call.
  package func take() -> Set<RecordKey> {
    keys.withLock { keys in
      defer { keys = [] }
      return keys
    }
  }
}

extension PendingState {
  /// Returns the records of a collection that are changed by writes that are committed together with this one, and come before it.
  package func staged(in collection: Int) -> [RecordKey] { changes.lazy.filter { $0.collection == collection }.map(\.key) }
}

extension Store {
  /// Returns the records of a collection that are changed from now on by writes of this device, of this process or of another one.
  package func edits(of collection: Int) -> StoredEdits {
    let edits = StoredEdits()
    core.hub.register(edits, for: collection)
    return edits
  }
}

/// The records of a collection that writes of this device have changed and that its one reader has not taken yet, each once.
package final class StoredEdits: ChangeObserver {
  private let keys = Mutex<Set<RecordKey>>([])
  private let signal = Signal()

  func receive(_ changes: [RecordChange], commit: Revision) {
    let edited = changes.lazy.filter { $0.origin != .remote && $0.origin != .migration }.map(\.key)
    let isEmpty = keys.withLock { keys in
      keys.formUnion(edited)
      return keys.isEmpty
    }
    if !isEmpty { signal.raise() }
  }

  func finish() { signal.finish() }

  /// Returns the keys of all that have changed, as soon as there are some; `nil` once the store is closed, and when the task is cancelled.
  package nonisolated(nonsending) func next() async -> Set<RecordKey>? {
    while !Task.isCancelled {
      let (moment, isFinished) = (signal.moment, signal.isFinished)
      let taken = keys.withLock { keys in
        defer { keys = [] }
        return keys
      }
      if !taken.isEmpty { return taken }
      if isFinished { return nil }
      await signal.wait(after: moment)
    }
    return nil
  }
}
