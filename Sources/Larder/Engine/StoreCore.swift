internal import Dispatch
internal import Foundation
internal import Synchronization

// Engine/ is one open store: its published state, its collections, and its executor, on which all commits run.
// Invariant: the backend has committed a write before the write's state is published, and only the executor publishes records.
// Called by LocalRepository and Store. Calls the backend.

/// An open store: its published state, its collections, and its life from opening to closing.
///
/// ``submit(_:_:)`` adds a write to the queue ``commits``, which groups the waiting writes, stages them, commits them, and publishes the
/// new state. Published records change on ``executor`` only. Any thread may add a collection or declare indexes.
final class StoreCore: Sendable {
  let identity = StoreIdentity()
  let executor: StoreExecutor
  let options: StoreOptions
  /// Place of the records of a collection whose schema names none: `.full`, or `.onDisk`.
  let residency: Residency
  let backend: any StorageBackend
  private let published: Mutex<StoreState>
  private let report: Mutex<OpenReport>
  /// Queue of the writes that wait for their commit.
  let commits = CommitQueue()
  /// Register of the types, coders and triggers of the collections.
  let register = CollectionRegister()
  let checkpointer: Checkpointer
  let indexBuilder = IndexBuilder()
  let follower = ForeignFollower()
  let hub: ChangeHub
  let migrations = MigrationRegister()
  /// Count of the repositories and ``Store`` objects that use this store.
  ///
  /// `usage` is the last stored property, so it is released after `backend`, which releases the locks on the files.
  let usage: StoreUserCount

  init(
    executor: StoreExecutor, backend: any StorageBackend, options: StoreOptions, state: StoreState, deletions: DeletionLog,
    openReport: OpenReport
  ) {
    self.executor = executor
    self.backend = backend
    self.options = options
    residency = openReport.residency
    report = Mutex(openReport)
    published = Mutex(state)
    hub = ChangeHub(deletions)
    checkpointer = Checkpointer(folded: state.commit - min(state.commit, UInt64(openReport.replayedCommits)))
    usage = StoreUserCount(name: backend.name, executor: executor)
  }

  /// Report of opening the store, or of the last ``resume()`` that opened the backend again.
  var openReport: OpenReport { report.withLock { $0 } }

  /// Replaces the report of opening, after ``resume()`` has opened the backend again.
  func replaceReport(_ new: OpenReport) { report.withLock { $0 = new } }

  /// Number of writes that wait for their commit.
  ///
  /// Cancelled writes count until a commit removes them. Tests read `waitingWriteCount` to fill the queue while the disk is busy.
  var waitingWriteCount: Int { commits.count }

  // MARK: Writing

  /// Queues a write, and returns or throws when the write's commit has ended.
  ///
  /// - Throws: `.cancelled` if the task was cancelled before the commit claimed the write, with nothing written. `.unsupported` in a
  ///   read-only store. All other errors are those with which the write was refused or its commit failed.
  @discardableResult
  func submit(_ operation: WriteOperation, _ durability: Durability? = nil) async throws(RepositoryError) -> WriteReceipt {
    guard options.access != .readOnly else {
      throw RepositoryError(.unsupported, "the store was opened read-only; open it with another access to write", file: backend.name)
    }
    let write = PendingWrite(operation, durability ?? options.durability)
    let outcome = await withTaskCancellationHandler {
      // If the task was cancelled before this call, `onCancel` has run already and resolved the outcome. A write whose outcome is resolved
      // is not queued.
      if !write.outcome.isResolved { commits.add(write, to: self) }
      return await write.outcome.value()
    } onCancel: {
      write.cancel()
    }
    return try outcome.get()
  }

  /// Runs a closure over the pending state as one write, and returns the closure's result once its changes are committed.
  ///
  /// - Throws: The error of the closure `body`, with nothing written. All other errors are those of ``submit(_:_:)``.
  func write<Output: Sendable>(
    _ durability: Durability? = nil, size: WriteSize = .unknown,
    _ body: @escaping @Sendable (inout PendingState) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    try await result(durability, size, body).get()
  }

  /// Runs a closure as one write, and returns the closure's result or error once the write is over.
  func result<Output: Sendable, Failure: Error>(
    _ durability: Durability?, _ size: WriteSize, _ body: @escaping @Sendable (inout PendingState) throws(Failure) -> Output
  ) async throws(RepositoryError) -> Result<Output, Failure> {
    // `PendingWrite` has no generic type, so the closure's result is kept in a variable of its own.
    let result = OneShot<Result<Output, Failure>>()
    let body: @Sendable (inout PendingState) -> Void = { pending in
      let savepoint = pending.savepoint()
      do throws(Failure) {
        result.resolve(.success(try body(&pending)))
      } catch {
        // The other writes of the group are committed even if the closure of this write fails. The rollback keeps the staged changes of a
        // failed closure out of the group's commit.
        pending.restore(savepoint)
        result.resolve(.failure(error))
      }
    }
    try await submit(.transaction(size, body), durability)
    return await result.value()  // the result is resolved already, because a successful write has run its closure
  }
}

/// Identity of an open store, for values that outlive the store.
///
/// The address of a released ``StoreCore`` could not serve as identity, because a later object may have the same address.
final class StoreIdentity: Sendable {}

/// Published state of a store: the records and indexes that readers see, all of one commit.
extension StoreCore {
  /// Newest published state of the store.
  ///
  /// Reading `state` copies a few references, under a lock that is held only for the copy.
  var state: StoreState { published.withLock { $0 } }

  /// Returns the position of a collection in the published state, and adds the collection if it is new.
  ///
  /// Adding a collection writes nothing to the files. The backend receives the collection's name with its first record.
  /// - Throws: `.unsupported` if a repository has opened the collection with another type, because its records keep values decoded as that
  ///   type. `.unsupported` for a name whose records have moved to another name.
  func collection<Item>(named name: String, of type: Item.Type) throws(RepositoryError) -> Int {
    let isSameType = register.register(type, for: name)
    // A reserved name is registered with the type `Renaming`. The name is checked before the type, so that the error names the move and not
    // a difference of types.
    guard !register.isReserved(name) else {
      throw RepositoryError(
        .unsupported,
        "expected a collection under its present name, found \(name), whose records have moved to another; open it under that one",
        file: backend.name)
    }
    guard isSameType else {
      throw RepositoryError(
        .unsupported, "expected the type that the collection \(name) was opened as, found \(type): use the same type, or reopen the store")
    }
    return collection(named: name)
  }

  /// Returns the position of a collection in the published state, and adds the collection if it is new.
  func collection(named name: String) -> Int {
    published.withLock { state in
      if let position = state.names.firstIndex(of: name) { return position }
      state.names.append(name)
      state.collections.append(CollectionState())
      return state.names.count - 1
    }
  }

  /// Returns the records and indexes of a collection, both of the same commit.
  ///
  /// - Throws: `.closed` if the store is closed.
  func collectionState(_ collection: Int) throws(RepositoryError) -> CollectionState {
    let (state, isClosed) = published.withLock { state in (state.collections[collection], state.isClosed) }
    if isClosed { throw .storeClosed }
    return state
  }

  /// Returns the published records of a collection, for reading.
  ///
  /// - Throws: `.closed` if the store is closed.
  func records(of collection: Int) throws(RepositoryError) -> RecordMap {
    // `collectionState` would also copy the indexes. A look-up of one record costs little more than taking the lock, so copying the indexes
    // would slow it noticeably.
    let (map, isClosed) = published.withLock { state in (state.collections[collection].records, state.isClosed) }
    if isClosed { throw .storeClosed }
    return map
  }

  /// Sets the declared indexes of a collection.
  ///
  /// The first repository that opens the collection declares its indexes. Later repositories of the collection must declare the same
  /// indexes.
  /// - Throws: `.unsupported` if another repository of the collection has declared different indexes.
  func declare(_ indexes: IndexSet, for collection: Int) throws(RepositoryError) {
    let isRefused = published.withLock { state in
      let present = state.collections[collection].indexes
      if present.areDeclared { return !present.isSame(as: indexes) }
      state.collections[collection].indexes = indexes.holdingStubs(state.collections[collection].records.isPaged)
      return false
    }
    if isRefused {
      throw RepositoryError(
        .unsupported, "expected the indexes that the collection was opened with, found others: declare the same, or reopen the store")
    }
  }

  /// Changes the indexes of a collection in the published state, without counting a new publication.
  ///
  /// The closure `body` must not change the records that readers see. For example, `body` may set an index that has been built.
  func updateCollection<Output: Sendable>(_ collection: Int, _ body: (inout CollectionState) -> Output) -> Output {
    published.withLock { state in body(&state.collections[collection]) }
  }

  /// Returns a collection and the number of the newest commit, read under one lock.
  func publishedCollection(_ collection: Int) -> (state: CollectionState, commit: Revision) {
    published.withLock { ($0.collections[collection], Revision($0.commit)) }
  }

  /// Returns the records of a collection and the number of the newest publication, read under one lock.
  func publishedRecords(of collection: Int) -> (records: RecordMap, publication: UInt64) {
    published.withLock { ($0.collections[collection].records, $0.publication) }
  }

  /// Marks the store as closed.
  ///
  /// After `noteClosed()`, every read or write of the store throws `.closed`.
  func noteClosed() { published.withLock { $0.condition = .closed } }

  /// Marks the store as suspended or as resumed.
  ///
  /// A suspended store holds new writes until it is resumed.
  func setSuspended(_ isSuspended: Bool) { published.withLock { $0.isSuspended = isSuspended } }

  /// Number of the newest publication, or `nil` once the store is closed.
  ///
  /// Reading `openPublication` takes a lock once.
  var openPublication: UInt64? { published.withLock { $0.isClosed ? nil : $0.publication } }

  /// Publishes the collections of a commit that the backend has committed.
  ///
  /// Must run on the store's executor, which serializes all commits.
  /// - Returns: The previous state of the store. Release the previous state after the callers of the commit are resumed, because freeing
  ///   the objects that only the previous state holds takes time.
  @discardableResult func publish(_ collections: [CollectionState], commit: Revision) -> StoreState {
    published.withLock { current in
      // The old state is returned to the caller. If the old state were released under the lock, the objects that only the old state holds
      // would be freed while readers wait for the lock.
      let old = current
      current.commit = commit.number
      current.publication += 1
      // Another thread may have added a collection or declared indexes after `collections` was copied. An added collection is empty and
      // stays in the published state. Newly declared indexes stay in the state too, and none of them is built yet, because only the
      // executor begins the build of an index.
      for (position, collection) in collections.enumerated() {
        current.collections[position] = collection
        if !collection.indexes.areDeclared { current.collections[position].indexes = old.collections[position].indexes }
      }
      return old
    }
  }

  /// Builds a new base (a sorted array of records) for each collection whose look-ups are slow because many records have changed.
  ///
  /// The record map of a collection has a base and a tree of the changes made after the base. A new base includes these changes, so the map
  /// holds the same records.
  ///
  /// A new base is built after the callers of a commit are resumed, because after a large batch the build takes as long as sorting all
  /// records. If the store is about to be suspended, the build is left to a later commit.
  ///
  /// Must run on the store's executor, which serializes all commits.
  func rebaseIfWorthwhile() {
    for (position, collection) in state.collections.enumerated() {
      guard let rebased = collection.rebasedIfWorthwhile(unless: { commits.isSuspending }) else { continue }
      _ = published.withLock { state in
        let old = state.collections[position]
        state.collections[position].replaceRecords(with: rebased)
        // The old collection is returned and released outside the lock, because freeing a base takes time for each of its records.
        return old
      }
    }
  }

  /// Makes the store refuse all later writes, if `error` reports a failed sync.
  ///
  /// After a failed sync it is unknown which commits are durable.
  func notePoison(_ error: RepositoryError) {
    guard error.code == .outcomeUnknown || error.code == .poisoned else { return }
    // A closed store stays closed. A poisoned store (after a failed sync) keeps the error of its first failure.
    published.withLock { if case .open = $0.condition { $0.condition = .poisoned(error) } }
  }
}

extension RepositoryError {
  /// Error for any use of a closed store.
  static var storeClosed: RepositoryError { RepositoryError(.closed, "the store was closed; open it again") }
}

/// Registers the type as which each collection is decoded, with the triggers and coders of tracked collections.
///
/// A tracked collection is a collection with a trigger, which runs with each change of a record.
final class CollectionRegister: Sendable {
  private let types = Mutex<[String: ObjectIdentifier]>([:])
  private let tracked = Mutex<[Int: CollectionTrigger]>([:])

  /// Registers the type of a collection, if the collection has no type yet.
  ///
  /// `register` returns false if the collection is registered with another type.
  func register<Item>(_ type: Item.Type, for name: String) -> Bool {
    types.withLock { types in
      defer { types[name] = types[name] ?? ObjectIdentifier(type) }
      return types[name].map { $0 == ObjectIdentifier(type) } ?? true
    }
  }

  /// Reserves the old name of a collection, so that no repository opens it while its records move or afterwards.
  ///
  /// `reserve` returns false if the name was opened or reserved before.
  func reserve(_ oldName: String) -> Bool {
    types.withLock { types in
      // `Renaming` is registered as the type of a moved name. No repository decodes values of that type, so every opening of the name is
      // refused.
      defer { types[oldName] = types[oldName] ?? ObjectIdentifier(Renaming.self) }
      return types[oldName] == nil
    }
  }

  /// Releases a name that ``reserve(_:)`` has reserved, after the move of its records has failed.
  func release(_ oldName: String) { types.withLock { $0[oldName] = nil } }

  /// True if the records of this name have moved to another name, or are moving.
  func isReserved(_ name: String) -> Bool { types.withLock { $0[name] == ObjectIdentifier(Renaming.self) } }

  /// Triggers and coders of tracked collections (those with a trigger), by the collection's position.
  var triggers: [Int: CollectionTrigger] { tracked.withLock { $0 } }

  /// Sets the trigger that runs with each change of a record in a collection.
  func set(_ trigger: CollectionTrigger, of collection: Int) { tracked.withLock { $0[collection] = trigger } }
}

/// A store's records and indexes at one commit, published to readers as one immutable value.
struct StoreState: Sendable {
  /// Number of the newest commit.
  var commit: UInt64
  /// Names of the collections, whose positions do not change while the store is open.
  var names: [String]
  var collections: [CollectionState]
  var condition: Condition = .open
  /// True if the store is suspended, so that the backend holds no locks.
  ///
  /// While the store is suspended, reads go on, and writes wait until the store is resumed.
  var isSuspended = false
  /// Number of times that records were published since the store was opened.
  ///
  /// Two states of a store with the same publication number have the same records.
  var publication: UInt64 = 0

  /// Collections that hold records, sorted by name.
  var contents: [OpenReport.Collection] {
    zip(names, collections).filter { $1.records.count > 0 }.sorted { $0.0 < $1.0 }.map { .init(name: $0, recordCount: $1.records.count) }
  }

  enum Condition: Sendable {
    case open
    /// A sync has failed, so it is unknown which commits are durable. In a poisoned store, reads go on, and writes are refused.
    case poisoned(RepositoryError)
    case closed
  }

  var isClosed: Bool { if case .closed = condition { true } else { false } }
  /// True if the backend accepts writes: the store is not suspended, poisoned or closed.
  var isOpen: Bool { if case .open = condition { !isSuspended } else { false } }

  /// True if new writes are held until the store is resumed.
  ///
  /// A poisoned or closed store refuses writes at once, even while it is suspended, because `resume()` could not commit them.
  var holdsWrites: Bool { if case .open = condition { isSuspended } else { false } }

  /// Whether a collection reads records in the storage as of an older commit.
  var hasOlderBase: Bool {
    collections.contains { collection in collection.records.pagedCommit.map { $0.number != commit } ?? false }
  }

  /// Whether a collection can no longer read its records in the storage.
  var hasLostBase: Bool { collections.contains { $0.records.isBaseLost } }

  /// Throws an error unless the store accepts writes.
  ///
  /// - Throws: `.poisoned` after a failed sync, `.closed` or `.suspended` in a closed or suspended store.
  func checkWritable() throws(RepositoryError) {
    switch condition {
    case .open: if isSuspended { throw .storeSuspended }
    case .poisoned(let cause): throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", underlying: cause)
    case .closed: throw .storeClosed
    }
  }
}
