internal import Dispatch
internal import Foundation
internal import Synchronization

// Engine/ is one open store: its state, its collections, and its one writer.
// Invariant: the backend has committed a write before its state is published, and only the executor publishes records.
// Called by LocalRepository and Store. Calls the backend.

/// An open store: its published state, its collections, and its life from opening to closing.
///
/// ``submit(_:_:)`` receives a write. ``commits`` gathers it with others, stages them, commits them, and publishes the state that follows.
/// Published records change on ``executor`` only. A declaration of a collection or an index may come from any thread.
final class StoreCore: Sendable {
  let identity = StoreIdentity()
  let executor: StoreExecutor
  let options: StoreOptions
  let backend: any StorageBackend
  private let published: Mutex<StoreState>
  private let report: Mutex<OpenReport>
  /// Writes that wait for their commit.
  let commits = CommitQueue()
  /// Types, coders and triggers of the collections.
  let register = CollectionRegister()
  let checkpointer: Checkpointer
  let indexBuilder = IndexBuilder()
  let follower = ForeignFollower()
  let hub: ChangeHub
  let migrations = MigrationRegister()
  /// Count of the store's users.
  ///
  /// It is the last property, so that it is released after the backend has released its locks.
  let usage: StoreUserCount

  init(
    executor: StoreExecutor, backend: any StorageBackend, options: StoreOptions, state: StoreState, deletions: DeletionLog,
    openReport: OpenReport
  ) {
    self.executor = executor
    self.backend = backend
    self.options = options
    report = Mutex(openReport)
    published = Mutex(state)
    hub = ChangeHub(deletions)
    checkpointer = Checkpointer(folded: state.commit - min(state.commit, UInt64(openReport.replayedCommits)))
    usage = StoreUserCount(name: backend.name, executor: executor)
  }

  /// Findings of opening the store, or of the last ``resume()`` that read it anew.
  var openReport: OpenReport { report.withLock { $0 } }

  /// Replaces the findings of opening, after the store was read anew.
  func replaceReport(_ new: OpenReport) { report.withLock { $0 = new } }

  /// Number of writes that wait for the next commit, cancelled ones included.
  ///
  /// For tests, which fill the queue while the disk is busy.
  var waitingWriteCount: Int { commits.count }

  // MARK: Writing

  /// Queues a write, and returns or throws when its commit is over.
  /// - Throws: `.cancelled` if the task was cancelled before the commit point, with nothing written. `.unsupported` in a read-only store.
  ///   Otherwise the error that refused the write or failed its commit.
  @discardableResult
  func submit(_ operation: WriteOperation, _ durability: Durability? = nil) async throws(RepositoryError) -> WriteReceipt {
    guard options.access != .readOnly else {
      throw RepositoryError(.unsupported, "the store was opened read-only; open it with another access to write", file: backend.name)
    }
    let write = PendingWrite(operation, durability ?? options.durability)
    let outcome = await withTaskCancellationHandler {
      // In a task that was cancelled before, `onCancel` has run already and has resolved the outcome.
      if !write.outcome.isResolved { commits.add(write, to: self) }
      return await write.outcome.value()
    } onCancel: {
      write.cancel()
    }
    return try outcome.get()
  }

  /// Runs a closure over the pending state as one write, and returns the closure's result once its changes are committed.
  /// - Throws: The closure's error, with nothing written. Otherwise as ``submit(_:_:)``.
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
    // The outcome of a write has no generic type, so the closure's result needs a place of its own.
    let result = OneShot<Result<Output, Failure>>()
    let body: @Sendable (inout PendingState) -> Void = { pending in
      let savepoint = pending.savepoint()
      do throws(Failure) {
        result.resolve(.success(try body(&pending)))
      } catch {
        // The group is committed even if this closure fails, so nothing of it may stay staged.
        pending.restore(savepoint)
        result.resolve(.failure(error))
      }
    }
    try await submit(.transaction(size, body), durability)
    return await result.value()  // set already, because a write that succeeds has run its closure
  }
}

/// Identity of an open store, for values that outlive the store.
///
/// The address of a released ``StoreCore`` may be used again.
final class StoreIdentity: Sendable {}

/// Published state of a store: the records and indexes that readers see, all of one commit.
extension StoreCore {
  /// Newest published state of the store.
  ///
  /// Copies a few pointers, under a lock that is held only briefly.
  var state: StoreState { published.withLock { $0 } }

  /// Returns the position of a collection in the published state, and adds the collection if it is new.
  ///
  /// Adding writes nothing. The backend first receives the name with the collection's first record.
  /// - Throws: `.unsupported` if the collection is read as another type already, because its records keep their decoded values.
  ///   `.unsupported` for a name whose records have moved to another one.
  func collection<Item>(named name: String, of type: Item.Type) throws(RepositoryError) -> Int {
    let isSameType = register.register(type, for: name)
    // Before the check of the type: a reserved name is registered with a type of its own, and that error would mislead.
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

  /// Returns the position of a collection, and adds the collection if it is new.
  func collection(named name: String) -> Int {
    published.withLock { state in
      if let position = state.names.firstIndex(of: name) { return position }
      state.names.append(name)
      state.collections.append(CollectionState())
      return state.names.count - 1
    }
  }

  /// Returns the records and indexes of a collection at one commit.
  /// - Throws: `.closed`.
  func collectionState(_ collection: Int) throws(RepositoryError) -> CollectionState {
    let (state, isClosed) = published.withLock { state in (state.collections[collection], state.isClosed) }
    if isClosed { throw .storeClosed }
    return state
  }

  /// Returns the records of a collection, for reading.
  /// - Throws: `.closed`.
  func records(of collection: Int) throws(RepositoryError) -> RecordMap {
    // Not through `collectionState`, which also copies the indexes: a look-up of one record costs little more than this lock.
    let (map, isClosed) = published.withLock { state in (state.collections[collection].records, state.isClosed) }
    if isClosed { throw .storeClosed }
    return map
  }

  /// Declares the indexes of a collection.
  ///
  /// The first repository of the collection decides them.
  ///
  /// - Throws: `.unsupported` if another repository of the collection has declared different indexes.
  func declare(_ indexes: IndexSet, for collection: Int) throws(RepositoryError) {
    let isRefused = published.withLock { state in
      let present = state.collections[collection].indexes
      if present.areDeclared { return !present.isSame(as: indexes) }
      state.collections[collection].indexes = indexes
      return false
    }
    if isRefused {
      throw RepositoryError(
        .unsupported, "expected the indexes that the collection was opened with, found others: declare the same, or reopen the store")
    }
  }

  /// Changes the indexes of a collection in the published state, without a new publication.
  ///
  /// Readers of records must not notice the change, as with an index that was built.
  func updateCollection<Output: Sendable>(_ collection: Int, _ body: (inout CollectionState) -> Output) -> Output {
    published.withLock { state in body(&state.collections[collection]) }
  }

  /// Returns a collection and the number of its commit, read under one lock.
  func publishedCollection(_ collection: Int) -> (state: CollectionState, commit: Revision) {
    published.withLock { ($0.collections[collection], Revision($0.commit)) }
  }

  /// Returns the records of a collection and the number of their publication, read under one lock.
  func publishedRecords(of collection: Int) -> (records: RecordMap, publication: UInt64) {
    published.withLock { ($0.collections[collection].records, $0.publication) }
  }

  /// Marks the store as closed.
  ///
  /// Every later read or write throws `.closed`.
  func noteClosed() { published.withLock { $0.condition = .closed } }

  /// Marks the store as suspended or as resumed.
  ///
  /// A suspended store holds its writes.
  func setSuspended(_ isSuspended: Bool) { published.withLock { $0.isSuspended = isSuspended } }

  /// Number of the newest publication, or `nil` once the store is closed.
  ///
  /// Cost: one lock.
  var openPublication: UInt64? { published.withLock { $0.isClosed ? nil : $0.publication } }

  /// Publishes the collections of a commit that the backend has made durable.
  ///
  /// Runs on the executor only.
  /// - Returns: The state before. Release it when no caller waits any more: every object that only this state holds is freed with it.
  @discardableResult func publish(_ collections: [CollectionState], commit: Revision) -> StoreState {
    published.withLock { current in
      // Returned and not dropped here: releasing it under the lock would block every reader.
      let old = current
      current.commit = commit.number
      current.publication += 1
      // Another thread may have added a collection or declared indexes since `collections` was copied. Such a collection is empty and
      // stays. Such indexes stay too: none of them is built yet, because only the executor begins a build.
      for (position, collection) in collections.enumerated() {
        current.collections[position] = collection
        if !collection.indexes.areDeclared { current.collections[position].indexes = old.collections[position].indexes }
      }
      return old
    }
  }

  /// Builds a new base for each collection whose look-ups are slow because many of its records have changed.
  ///
  /// A base is the sorted array of records under a tree of later changes. The records stay the same.
  ///
  /// Called after the callers of a commit were resumed, because it takes as long as sorting all records after a large batch. A store that
  /// is about to be suspended has no time for that, and sorts after a later commit.
  ///
  /// Runs on the executor only.
  func rebaseIfWorthwhile() {
    for (position, collection) in state.collections.enumerated() {
      guard let rebased = collection.rebasedIfWorthwhile(unless: { commits.isSuspending }) else { continue }
      _ = published.withLock { state in
        let old = state.collections[position]
        state.collections[position].replaceRecords(with: rebased)
        // Released outside the lock: freeing a base takes time for each of its records.
        return old
      }
    }
  }

  /// Refuses all later writes if `error` reports a failed sync.
  ///
  /// It is then unknown which commits are durable.
  func notePoison(_ error: RepositoryError) {
    guard error.code == .outcomeUnknown || error.code == .poisoned else { return }
    // A closed store stays closed, and a poisoned one keeps its first cause.
    published.withLock { if case .open = $0.condition { $0.condition = .poisoned(error) } }
  }
}

extension RepositoryError {
  /// Error for any use of a closed store.
  static var storeClosed: RepositoryError { RepositoryError(.closed, "the store was closed; open it again") }
}

/// The types that a store's collections are read as, with the triggers and coders of tracked collections.
///
/// A tracked collection has a trigger.
final class CollectionRegister: Sendable {
  private let types = Mutex<[String: ObjectIdentifier]>([:])
  private let tracked = Mutex<[Int: CollectionTrigger]>([:])

  /// Registers the type of a collection if it has none yet.
  ///
  /// Returns false if it is read as another type.
  func register<Item>(_ type: Item.Type, for name: String) -> Bool {
    types.withLock { types in
      defer { types[name] = types[name] ?? ObjectIdentifier(type) }
      return types[name].map { $0 == ObjectIdentifier(type) } ?? true
    }
  }

  /// Keeps an old name from being opened while its records move to a new one, and afterwards.
  ///
  /// Returns false if it was opened before.
  func reserve(_ oldName: String) -> Bool {
    types.withLock { types in
      // The type stands for "moved": no repository reads values of it.
      defer { types[oldName] = types[oldName] ?? ObjectIdentifier(Renaming.self) }
      return types[oldName] == nil
    }
  }

  /// Frees a name that ``reserve(_:)`` took, after its records were not moved.
  func release(_ oldName: String) { types.withLock { $0[oldName] = nil } }

  /// True if the records of a name have moved, or are moving.
  func isReserved(_ name: String) -> Bool { types.withLock { $0[name] == ObjectIdentifier(Renaming.self) } }

  /// Triggers and coders of tracked collections, by position.
  var triggers: [Int: CollectionTrigger] { tracked.withLock { $0 } }

  /// Sets the trigger that runs beside each change of a collection.
  func set(_ trigger: CollectionTrigger, of collection: Int) { tracked.withLock { $0[collection] = trigger } }
}
