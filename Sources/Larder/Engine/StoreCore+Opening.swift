internal import Dispatch
internal import Foundation

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

/// The first published state in the making, from the records that a backend streams while it opens.
struct StoreLoader {
  private let limits: StoreOptions.Limits
  private var names: [String] = []
  private var packs: [[RecordPack]] = []
  /// The position of the collection that the last record was of.
  private var current = -1
  /// The records of that collection that are in no pack yet.
  private var packer: RecordPacker?
  private static let packSize = 256 << 10
  private var deletions: [DeletionLog.Deletion] = []
  /// The names whose records have moved to another one: those with a tombstone that a move has left.
  private(set) var movedNames: Set<String> = []
  /// The records over a limit.
  private(set) var undecodable: [UndecodableRecord] = []

  init(limits: StoreOptions.Limits) { self.limits = limits }

  /// Opens a backend and adds everything that it has.
  mutating func load(_ backend: any StorageBackend, _ options: StoreOptions) throws(RepositoryError) -> OpenReport {
    guard let backend = backend as? any PackingBackend else { return try backend.open(options) { add($0) } }
    return try backend.openPacked(options) { add($0) }
  }

  /// Adds records or a tombstone, in the order in which the backend has them.
  mutating func add(_ records: LoadedRecords) {
    switch records {
    case .pack(let pack):
      finishPack()
      select(pack.collection)
      take(pack)
    case .record(let record): add(record)
    }
  }

  /// Adds a record or a tombstone, in the order in which the backend has them.
  mutating func add(_ record: StoredRecord) {
    if current < 0 || names[current] != record.collection {
      finishPack()
      select(record.collection)
    }
    guard let value = record.value else {
      if record.schemaVersion == StoreCore.movedVersion { movedNames.insert(record.collection) }
      return deletions.append(.init(collection: current, key: record.key, revision: record.revision))
    }
    if packer == nil { packer = RecordPacker(record.collection, limits: limits, capacity: value.count) }
    value.withUnsafeBytes { packer?.append(record.key, revision: record.revision, schemaVersion: record.schemaVersion, value: $0) }
    if let packer, packer.byteCount >= Self.packSize { finishPack() }
  }

  /// Returns a stored record in memory, and the reason why its value is refused if it is over a limit.
  static func slot(of record: StoredRecord, _ value: Data, _ limits: StoreOptions.Limits) -> (RecordSlot, RepositoryError?) {
    let (key, revision, version) = (record.key, record.revision, record.schemaVersion)
    let limits = limits.holding(for: record.collection)
    if let limits, let error = value.withUnsafeBytes({ RecordLimit.violation(of: limits, key: key, value: $0) }) {
      return (RecordSlot(key: key, revision: revision, schemaVersion: version, refusedFor: error), error)
    }
    return (RecordSlot(key: key, revision: revision, schemaVersion: version, value: value), nil)
  }

  /// Returns the state of everything that was added.
  mutating func finish(commit: Revision) -> StoreState {
    finishPack()
    return StoreState(commit: commit.number, names: names, collections: packs.map { CollectionState(records: RecordMap($0)) })
  }

  /// Returns the tombstones, which the backend has kept since a commit.
  func deletionLog(since horizon: Revision) -> DeletionLog {
    DeletionLog(deletions, horizon: horizon, limit: limits.tombstones)
  }

  private mutating func finishPack() {
    guard let packer else { return }
    self.packer = nil
    take(packer.finish())
  }

  private mutating func take(_ pack: RecordPack) {
    packs[current].append(pack)
    for refused in pack.refused { undecodable.append(UndecodableRecord(refused.slot, in: pack.collection, refused.error)) }
  }

  private mutating func select(_ name: String) {
    if current >= 0, names[current] == name { return }
    if let position = names.firstIndex(of: name) {
      current = position
    } else {
      names.append(name)
      packs.append([])
      current = names.count - 1
    }
  }
}

/// The findings of opening a repository that its store's report does not have, since only a schema leads to them.
struct OpeningFindings: Sendable {
  /// The name of the collection.
  let collection: String
  /// The records that unique indexes found equal when they were built.
  var duplicates: [OpenReport.Duplicate] = []
  /// The move of the records from an older name, and its commit, if this opening has made it.
  var renamed: (renaming: OpenReport.Renaming, commit: Revision)?
  /// All records, if none of them decodes.
  var undecodable: [UndecodableRecord] = []

  init(collection: String) { self.collection = collection }

  /// Returns the report of the store with these findings.
  func added(to report: OpenReport) -> OpenReport {
    var report = report
    report.duplicates = duplicates
    if let (renaming, commit) = renamed {
      report.renamed = renaming
      report.commit = commit
      report.collections = report.collections.filter { $0.name != renaming.oldName }
      report.collections.append(.init(name: renaming.name, recordCount: renaming.recordCount))
      report.collections.sort { $0.name < $1.name }
      report.undecodable = report.undecodable.map { $0.collection == renaming.oldName ? $0.moved(to: renaming.name, at: commit) : $0 }
    }
    // The store lists those among them that are over a limit.
    if !undecodable.isEmpty { report.undecodable = report.undecodable.filter { $0.collection != collection } + undecodable }
    return report
  }
}
