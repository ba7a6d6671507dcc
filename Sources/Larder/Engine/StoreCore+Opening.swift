internal import Dispatch

extension StoreCore {
  /// Opens the backend and takes in its records.
  ///
  /// The backend reads, the judge decides on what was read, and only then may the backend write.
  /// - Parameter judge: Refuses the store by throwing; its files are then as they were.
  static func open(
    _ backend: any StorageBackend, _ options: StoreOptions,
    judgedBy judge: @escaping @Sendable (LoadedStore) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) -> StoreCore {
    let executor = StoreExecutor(label: "larder.store")
    let core = try await StoreUsage.retryingWhileReleased(backend.name) { () async throws(RepositoryError) in
      try await executor.run { () throws(RepositoryError) in try openNow(backend, options, executor, judge) }
    }
    // Behind the opening, so that it does not wait for it.
    let collections = core.state.collections
    executor.queue.async { for collection in collections { collection.records.index() } }
    core.checkpointer.scheduleIdleCheckpoint(of: core)
    core.follower.schedulePoll(of: core)
    return core
  }

  /// Opens the backend, has the judge decide, and recovers what it accepts.
  ///
  /// On the executor only.
  private static func openNow(
    _ backend: any StorageBackend, _ options: StoreOptions, _ executor: StoreExecutor,
    _ judge: (LoadedStore) throws(RepositoryError) -> Void
  ) throws(RepositoryError) -> StoreCore {
    let start = ContinuousClock.now
    var loader = StoreLoader(limits: options.limits)
    var report = try loader.load(backend, options)
    let state = loader.finish(commit: report.commit)
    do throws(RepositoryError) {
      try judge(LoadedStore(state: state, movedNames: loader.movedNames, file: backend.name, access: options.access))
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

  /// Makes an open store in memory that holds some records of one collection, in the order of their keys, as its first commit.
  static func previewing(_ records: [StoredRecord], _ leftOut: [RepositoryError]) -> StoreCore {
    let options = StoreOptions()
    let commit = records.isEmpty ? Revision.zero : Revision(1)
    var loader = StoreLoader(limits: options.limits)
    for record in records { loader.add(record) }
    let state = loader.finish(commit: commit)
    let backend = InMemoryBackend(open: records, at: commit, tombstoneLimit: options.limits.tombstones)
    var report = OpenReport(storeID: backend.storeID, commit: commit, isNew: true, recordCount: records.count)
    report.collections = state.contents
    report.leftOut = leftOut
    return StoreCore(
      executor: StoreExecutor(label: "larder.store"), backend: backend, options: options, state: state,
      deletions: loader.deletionLog(since: .zero), openReport: report)
  }
}

/// A store as it was read, before it is accepted.
struct LoadedStore: Sendable {
  let state: StoreState
  /// The names whose records have moved to another one.
  let movedNames: Set<String>
  let file: String
  let access: StoreOptions.Access

  /// Returns the number of records of a collection; `nil` for one of which the store has nothing, not even a tombstone.
  func recordCount(of name: String) -> Int? { state.names.firstIndex(of: name).map { state.collections[$0].records.count } }
}
