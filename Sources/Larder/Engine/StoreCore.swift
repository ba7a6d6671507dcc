internal import Dispatch
internal import Foundation
internal import Synchronization

// The root of Larder/ is the path of a write and of a read: LocalRepository encodes, StoreCore gathers and commits, StoreState is
// published, RepositorySnapshot reads it. Invariant: what is published was durable before. Called by apps.

/// The one writer of a store: gathers the writes that arrive while the disk is busy, commits them together, and publishes the result.
///
/// Order of every commit: claim (the commit point for cancellation), stage against the pending state, make durable, publish, resume the
/// callers. Only the executor's queue stages, commits and publishes, so there is no moment between reading and assigning state.
final class StoreCore: Sendable {
  let executor: StoreExecutor
  let options: StoreOptions
  let openReport: OpenReport
  let backend: any StorageBackend
  let published: Mutex<StoreState>
  private let inbox = Mutex(Inbox())
  /// The type that each collection is read as.
  private let itemTypes = Mutex<[String: ObjectIdentifier]>([:])
  let checkpoints = Mutex(CheckpointState())
  /// The indexes that have been made, or are being made.
  let indexBuilds = Mutex<[IndexPlace: Task<Void, Never>]>([:])
  /// What is known of the others who write the store.
  let sharing = Mutex(SharingState())
  /// Who is told what was committed.
  let hub: ChangeHub
  /// The rewrites of older records.
  let migrations = Mutex<[MigrationKey: any AnyMigrationRun]>([:])
  /// The copies made before the first records of newer schema versions.
  let copies = Mutex(MigrationCopies())
  /// Who uses the store; the last property, so that it goes after the backend and its locks.
  let holder: StoreUsage

  private struct Inbox: Sendable {
    var writes: [any AnyQueuedWrite] = []
    /// Whether a drain is scheduled or running, which will see what is put in.
    var isDraining = false
  }

  private init(
    executor: StoreExecutor, backend: any StorageBackend, options: StoreOptions, state: StoreState, deletions: DeletionLog,
    openReport: OpenReport
  ) {
    self.executor = executor
    self.backend = backend
    self.options = options
    self.openReport = openReport
    published = Mutex(state)
    hub = ChangeHub(deletions)
    holder = StoreUsage(name: backend.name, executor: executor)
    let replayed = UInt64(openReport.replayedCommits)
    checkpoints.withLock { $0.folded = state.commit - min(state.commit, replayed) }
  }

  /// Opens the backend and indexes its records.
  ///
  /// The backend reads, the judge decides on what was read, and only then may the backend write.
  /// - Parameter judge: Refuses the store by throwing; its files are then as they were.
  static func open(
    _ backend: any StorageBackend, _ options: StoreOptions,
    judgedBy judge: @escaping @Sendable (StoreState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) -> StoreCore {
    let executor = StoreExecutor(label: "larder.store")
    let queue = try await StoreUsage.whileDroppedStoresLetGo(of: backend.name) { () async throws(RepositoryError) in
      try await executor.run { () throws(RepositoryError) in try openNow(backend, options, executor, judge) }
    }
    // Behind the opening, so that it does not wait for it.
    let collections = queue.state.collections
    executor.queue.async { for collection in collections { collection.records.index() } }
    queue.scheduleIdleCheckpoint()
    queue.schedulePoll()
    return queue
  }

  /// On the executor only.
  private static func openNow(
    _ backend: any StorageBackend, _ options: StoreOptions, _ executor: StoreExecutor,
    _ judge: (StoreState) throws(RepositoryError) -> Void
  ) throws(RepositoryError) -> StoreCore {
    let start = ContinuousClock.now
    var loader = StoreLoader(limits: options.limits)
    var report = try backend.open(options) { loader.add($0) }
    let state = loader.finish(commit: report.commit)
    do throws(RepositoryError) {
      try judge(state)
      if options.access != .readOnly { report = try backend.recover(report) }
    } catch {
      backend.abandon()
      throw error
    }
    report.undecodable += loader.undecodable
    report.recordCount = state.collections.reduce(0) { $0 + $1.records.count }
    report.collections = state.contents
    report.duration = .now - start
    return StoreCore(
      executor: executor, backend: backend, options: options, state: state, deletions: loader.deletionLog(since: report.tombstoneHorizon),
      openReport: report)
  }

  /// What readers see now: a copy of some pointers under a lock that is held for nothing else.
  var state: StoreState { published.withLock { $0 } }

  /// The index of a collection, made when it is new.
  ///
  /// Nothing is written until its first record is.
  /// - Throws: `.unsupported` when it is read as another type already: the records keep the values that they were decoded to.
  func collection<Item>(named name: String, of type: Item.Type) throws(RepositoryError) -> Int {
    let isSameType = itemTypes.withLock { types in
      defer { types[name] = types[name] ?? ObjectIdentifier(type) }
      return types[name].map { $0 == ObjectIdentifier(type) } ?? true
    }
    guard isSameType else { throw RepositoryError(.unsupported, "the collection \(name) is open as another type") }
    return collection(named: name)
  }

  /// The index of a collection, made when it is new.
  func collection(named name: String) -> Int {
    published.withLock { state in
      if let index = state.names.firstIndex(of: name) { return index }
      state.names.append(name)
      state.collections.append(CollectionState())
      return state.names.count - 1
    }
  }

  /// The records of a collection, for reading.
  /// - Throws: `.closed`.
  func records(of collection: Int) throws(RepositoryError) -> RecordMap {
    let (map, isClosed) = published.withLock { state in (state.collections[collection].records, state.isClosed) }
    if isClosed { throw RepositoryError(.closed, "the store was closed") }
    return map
  }

  /// Whether values written to a collection will be asked for at once, by an index or an observer.
  func needsValues(of collection: Int) -> Bool {
    published.withLock { $0.collections[collection].indexes.needsValues } || hub.isObserved(collection)
  }

  /// Queues a write, and returns or throws when its commit is over.
  func write<Output: Sendable>(
    _ durability: Durability?, origin: ChangeOrigin = .thisProcess, size: WriteSize = .unknown,
    _ body: @escaping @Sendable (inout PendingState) throws -> Output
  ) async throws -> Output {
    guard options.access != .readOnly else { throw RepositoryError(.unsupported, "the store was opened read-only") }
    let write = QueuedWrite(durability ?? options.durability, origin, size, body)
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if write.start(continuation) { enqueue(write) }
      }
    } onCancel: {
      write.cancel()
    }
    return try outcome.get()
  }

  /// How many writes wait for the next commit, cancelled ones included: for tests, which fill the queue while the disk is busy.
  var waitingWriteCount: Int { inbox.withLock { $0.writes.count } }

  private func enqueue(_ write: any AnyQueuedWrite) {
    let startsDrain = inbox.withLock { inbox in
      inbox.writes.append(write)
      defer { inbox.isDraining = true }
      return !inbox.isDraining
    }
    if startsDrain { executor.queue.async { self.drain() } }
  }

  /// The writes of the next group, in their order: as many as ``WriteSize/group`` allows, and at least one.
  func takeWrites() -> [any AnyQueuedWrite]? {
    inbox.withLock { inbox in
      var size = WriteSize()
      var count = 0
      for write in inbox.writes {
        size.add(write.size)
        if count > 0, !size.isWithinGroup { break }
        count += 1
      }
      guard count > 0 else {
        inbox.isDraining = false
        return nil
      }
      let group = Array(inbox.writes.prefix(count))
      inbox.writes.removeFirst(count)
      return group
    }
  }

  /// Puts writes back that were taken and not claimed; they are the next.
  func putBack(_ writes: ArraySlice<any AnyQueuedWrite>) {
    guard !writes.isEmpty else { return }
    inbox.withLock { $0.writes = writes + $0.writes }
  }

  /// Commits what waits, and comes again behind what else the executor has to do.
  ///
  /// So no stream of writes keeps a flush waiting.
  ///
  /// On the executor only.
  private func drain() {
    guard let writes = takeWrites() else { return scheduleIdleCheckpoint() }
    commit(writes)
    checkpointBySize()
    executor.queue.async { self.drain() }
  }

  /// On the executor only.
  func publish(_ state: StoreState) {
    // The old state goes back to the caller, so that what only it has kept alive is not released under the lock.
    _ = published.withLock { current in
      let old = current
      // A collection may have been added since the state was taken; it is empty, and stays. So do indexes that were declared: none of them
      // has been built, since only the executor begins that.
      current = state
      current.names += old.names.dropFirst(state.names.count)
      current.collections += old.collections.dropFirst(state.collections.count)
      for index in state.collections.indices where !state.collections[index].indexes.areDeclared {
        current.collections[index].indexes = old.collections[index].indexes
      }
      return old
    }
  }

  func notePoison(_ error: RepositoryError) {
    guard error.code == .outcomeUnknown || error.code == .poisoned else { return }
    published.withLock { if case .open = $0.condition { $0.condition = .poisoned(error) } }
  }
}
