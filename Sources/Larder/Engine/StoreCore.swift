internal import Dispatch
internal import Foundation
internal import Synchronization

// Engine/ is one open store: its state, its collections, its one writer.
// Invariant: what is published was durable before, and only the executor publishes.
// Called by LocalRepository and Store; calls the backend.

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
  /// The count of the store's users. It is the last property, so that it is released after the backend has let go of its locks.
  let usage: StoreUsage

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
    usage = StoreUsage(name: backend.name, executor: executor)
  }

  /// Findings of opening the store, or of the last ``resume()`` that read it anew.
  var openReport: OpenReport { report.withLock { $0 } }

  /// Replaces the findings of opening, after the store was read anew.
  func replaceReport(_ new: OpenReport) { report.withLock { $0 = new } }

  /// Number of writes that wait for the next commit, cancelled ones included. Tests read it, which fill the queue while the disk is busy.
  var waitingWriteCount: Int { commits.count }

  // MARK: Writing

  /// Queues a write, and returns or throws when its commit is over.
  /// - Throws: `.cancelled` and then nothing was written; why the write was refused; why the commit failed.
  @discardableResult
  func submit(_ operation: WriteOperation, _ durability: Durability? = nil) async throws(RepositoryError) -> WriteReceipt {
    guard options.access != .readOnly else {
      throw RepositoryError(.unsupported, "the store was opened read-only; open it with another access to write", file: backend.name)
    }
    let write = PendingWrite(operation, durability ?? options.durability)
    let outcome = await withTaskCancellationHandler {
      // One whose task was cancelled before is not queued: its outcome is there already.
      if !write.outcome.isResolved { commits.add(write, to: self) }
      return await write.outcome.value()
    } onCancel: {
      write.cancel()
    }
    return try outcome.get()
  }

  /// Runs a closure over the pending state as one write, and returns what it returns once its changes are committed.
  /// - Throws: what the closure throws, and then nothing was written; otherwise as ``submit(_:_:)``.
  func write<Output: Sendable>(
    _ durability: Durability? = nil, size: WriteSize = .unknown,
    _ body: @escaping @Sendable (inout PendingState) throws(RepositoryError) -> Output
  ) async throws(RepositoryError) -> Output {
    try await result(durability, size, body).get()
  }

  /// Runs a closure as one write, with the result that the closure had.
  func result<Output: Sendable, Failure: Error>(
    _ durability: Durability?, _ size: WriteSize, _ body: @escaping @Sendable (inout PendingState) throws(Failure) -> Output
  ) async throws(RepositoryError) -> Result<Output, Failure> {
    // Beside the outcome of the write: the closure has types of its own, which a write has not.
    let result = OneShot<Result<Output, Failure>>()
    let body: @Sendable (inout PendingState) -> Void = { pending in
      let savepoint = pending.savepoint()
      do throws(Failure) {
        result.resolve(.success(try body(&pending)))
      } catch {
        pending.restore(savepoint)
        result.resolve(.failure(error))
      }
    }
    try await submit(.transaction(size, body), durability)
    return await result.value()  // there already: a write that has succeeded was run
  }
}

/// The identity of an open store, for values that outlive it: the address of a ``StoreCore`` may be used again.
final class StoreIdentity: Sendable {}

/// The published state: what readers see, at one commit.
extension StoreCore {
  /// The state that readers see now: a copy of some pointers under a lock that is held for nothing else.
  var state: StoreState { published.withLock { $0 } }

  /// Returns the position of a collection, which is made when it is new.
  ///
  /// Nothing is written until its first record is.
  /// - Throws: `.unsupported` when it is read as another type already: the records keep the values that they were decoded to.
  func collection<Item>(named name: String, of type: Item.Type) throws(RepositoryError) -> Int {
    let isSameType = register.register(type, for: name)
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

  /// Returns the position of a collection, which is made when it is new.
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
    // Not by way of `collectionState`: a look-up of one record costs little more than this lock.
    let (map, isClosed) = published.withLock { state in (state.collections[collection].records, state.isClosed) }
    if isClosed { throw .storeClosed }
    return map
  }

  /// Declares the indexes of a collection, as its first repository has them.
  ///
  /// - Throws: `.unsupported` when another repository of the collection has declared others.
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

  /// Changes a collection in the published state, as index builds do, whose changes readers of its records do not see.
  func updateCollection<Output: Sendable>(_ collection: Int, _ body: (inout CollectionState) -> Output) -> Output {
    published.withLock { state in body(&state.collections[collection]) }
  }

  /// Returns a collection and the commit that it is of, read under one lock.
  func publishedCollection(_ collection: Int) -> (state: CollectionState, commit: Revision) {
    published.withLock { ($0.collections[collection], Revision($0.commit)) }
  }

  /// Returns the records of a collection and the number of their publication, read under one lock.
  func publishedRecords(of collection: Int) -> (records: RecordMap, publication: UInt64) {
    published.withLock { ($0.collections[collection].records, $0.publication) }
  }

  /// Ends all reading and writing: every later use throws `.closed`.
  func noteClosed() { published.withLock { $0.condition = .closed } }

  /// Has writes wait until the store is resumed, or lets them go on.
  func setSuspended(_ isSuspended: Bool) { published.withLock { $0.isSuspended = isSuspended } }

  /// The number of the publication that readers see now; `nil` once the store is closed.
  ///
  /// Cost: that of the lock.
  var openPublication: UInt64? { published.withLock { $0.isClosed ? nil : $0.publication } }

  /// Publishes the collections as they are after a commit that is durable.
  ///
  /// On the executor only.
  /// - Returns: The state before. What only it keeps alive is released with it: not under the lock, and best when no caller waits.
  @discardableResult func publish(_ collections: [CollectionState], commit: Revision) -> StoreState {
    published.withLock { current in
      let old = current
      current.commit = commit.number
      current.publication += 1
      // A collection may have been added since these were taken; it is empty, and stays. So do indexes that were declared: none of them has
      // been built, since only the executor begins that.
      for (position, collection) in collections.enumerated() {
        current.collections[position] = collection
        if !collection.indexes.areDeclared { current.collections[position].indexes = old.collections[position].indexes }
      }
      return old
    }
  }

  /// Makes the look-ups of collections quick again that have changed much, and nothing else of them.
  ///
  /// Called after the callers of a commit were resumed: after a large batch it takes as long as sorting all records. A store that is about
  /// to be suspended has no time for that, and does it after a later commit.
  ///
  /// On the executor only.
  func rebaseIfWorthwhile() {
    for (position, collection) in state.collections.enumerated() {
      guard let rebased = collection.rebasedIfWorthwhile(unless: { commits.isSuspending }) else { continue }
      _ = published.withLock { state in
        let old = state.collections[position]
        state.collections[position].take(rebased)
        return old
      }
    }
  }

  /// Refuses all writes from now on, if an error is that of a sync: which commits are durable is not known any more.
  func notePoison(_ error: RepositoryError) {
    guard error.code == .outcomeUnknown || error.code == .poisoned else { return }
    published.withLock { if case .open = $0.condition { $0.condition = .poisoned(error) } }
  }
}

extension RepositoryError {
  /// The error for any use of a closed store.
  static var storeClosed: RepositoryError { RepositoryError(.closed, "the store was closed; open it again") }
}

/// The types that a store's collections are read as, with the triggers and coders of tracked collections.
final class CollectionRegister: Sendable {
  private let types = Mutex<[String: ObjectIdentifier]>([:])
  private let tracked = Mutex<[Int: CollectionTrigger]>([:])

  /// Registers the type of a collection if it has none yet. Returns false if it is read as another type.
  func register<Item>(_ type: Item.Type, for name: String) -> Bool {
    types.withLock { types in
      defer { types[name] = types[name] ?? ObjectIdentifier(type) }
      return types[name].map { $0 == ObjectIdentifier(type) } ?? true
    }
  }

  /// Keeps an old name from being opened while its records move to a new one, and afterwards. Returns false if it was opened before.
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
