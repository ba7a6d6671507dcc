internal import Dispatch
internal import Foundation

extension StoreCore {
  /// Opens the backend, reads its records, and returns the open store.
  ///
  /// The backend first reads its files without writing, and the closure `judge` accepts or refuses the records. Only an accepted store is
  /// recovered from a crash, which may write to its files.
  /// - Parameter judge: Closure that refuses the store by throwing an error. The files of a store that `judge` refuses stay unchanged.
  static func open(
    _ backend: any StorageBackend, _ options: StoreOptions,
    judgedBy judge: @escaping @Sendable (LoadedStore) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) -> StoreCore {
    let executor = StoreExecutor(label: "larder.store")
    let core = try await StoreUserCount.retryingWhileReleased(backend.name) { () async throws(RepositoryError) in
      try await executor.run { () throws(RepositoryError) in try openNow(backend, options, on: executor, judgedBy: judge) }
    }
    // The hash tables of the records' keys are built after the opening, because building them takes time for each record. Until the tables
    // are built, look-ups use a binary search.
    let collections = core.state.collections
    executor.queue.async { for collection in collections { collection.records.index() } }
    core.checkpointer.scheduleIdleCheckpoint(of: core)
    core.follower.schedulePoll(of: core)
    return core
  }

  /// Opens the backend, passes its records to `judge`, and recovers the store if `judge` throws no error.
  ///
  /// Must run on the store's executor, which serializes all commits.
  private static func openNow(
    _ backend: any StorageBackend, _ options: StoreOptions, on executor: StoreExecutor,
    judgedBy judge: (LoadedStore) throws(RepositoryError) -> Void
  ) throws(RepositoryError) -> StoreCore {
    let start = ContinuousClock.now
    var loader = StoreLoader(limits: options.limits)
    var report = try loader.load(backend, options)
    var state = loader.finish(commit: report.commit)
    do throws(RepositoryError) {
      try judge(LoadedStore(state: state, movedNames: loader.movedNames, file: backend.name, access: options.access))
      if options.access != .readOnly { report = try backend.recover(report) }
      if loader.residency != .full, let backend = backend as? any PagingBackend {
        state = loader.finish(commit: report.commit, over: try backend.keepBase())
      }
    } catch {
      // `abandon` is called and not `close`, which may fold the journal, because the files of a refused store must stay unchanged.
      backend.abandon()
      throw error
    }
    report.undecodable += loader.undecodable
    report.residency = loader.residency
    report.recordCount = state.collections.reduce(0) { $0 + $1.records.count }
    report.collections = state.contents
    report.duration = .now - start
    return StoreCore(
      executor: executor, backend: backend, options: options, state: state, deletions: loader.deletionLog(since: report.tombstoneHorizon),
      openReport: report)
  }

  /// Returns an open store in memory whose first commit contains `records`.
  ///
  /// All records must be of one collection, and sorted by key.
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

/// The records of a store whose files were read, before the store is accepted or refused.
struct LoadedStore: Sendable {
  let state: StoreState
  /// Names of collections whose records have moved to another name through ``RepositorySchema/renamedFrom``.
  let movedNames: Set<String>
  let file: String
  let access: StoreOptions.Access

  /// Returns the number of records of a collection, or `nil` if the store has neither a record nor a tombstone of it.
  func recordCount(of name: String) -> Int? { state.names.firstIndex(of: name).map { state.collections[$0].records.count } }
}

/// Builds the first published state from the records that a backend passes while it opens.
///
/// The loader gathers the records in packs. A pack is one block of memory with encoded records of one collection.
struct StoreLoader {
  private let limits: StoreOptions.Limits
  private var names: [String] = []
  private var packs: [[RecordPack]] = []
  /// Position of the collection of the last added record, or -1 before the first record.
  private var current = -1
  /// Packer with the records of the current collection that are not in a finished pack (a block of encoded records) yet.
  private var packer: RecordPacker?
  private static let packSize = 256 << 10
  private var deletions: [DeletionLog.Deletion] = []
  /// Names of collections whose records have moved to another name, as tombstones with ``StoreCore/movedVersion`` show.
  private(set) var movedNames: Set<String> = []
  /// Records that exceed a size limit of the store.
  ///
  /// A record over a size limit stays in the store, and every read of its value throws.
  private(set) var undecodable: [UndecodableRecord] = []
  /// Place of the records, as ``load(_:_:)`` has decided it.
  private(set) var residency = Residency.full
  /// Collections whose records stay in the storage, by position.
  private var summaries: [Int: CollectionSummary] = [:]

  init(limits: StoreOptions.Limits) { self.limits = limits }

  /// Opens a backend and adds all its records and tombstones.
  ///
  /// If the records stay in the storage, adds only the tombstones and a summary of each collection.
  mutating func load(_ backend: any StorageBackend, _ options: StoreOptions) throws(RepositoryError) -> OpenReport {
    if let report = try loadPaged(backend, options) { return report }
    // A `PackingBackend` passes whole packs (blocks of encoded records), which saves the creation of a `StoredRecord` for each record.
    guard let backend = backend as? any PackingBackend else { return try backend.open(options) { add($0) } }
    return try backend.openPacked(options) { add($0) }
  }

  /// Opens a backend without its records, or returns `nil` with the backend closed if the records must be in memory.
  ///
  /// - Throws: `.unsupported` if the options demand that the records stay in the storage, and the backend cannot leave them there.
  private mutating func loadPaged(_ backend: any StorageBackend, _ options: StoreOptions) throws(RepositoryError) -> OpenReport? {
    guard options.residency != .full else { return nil }
    guard let paging = backend as? any PagingBackend else {
      if case .onDisk = options.residency { throw .cannotPage(backend) }
      return nil
    }
    if case .automatic(let limit) = options.residency, let bound = paging.valueSizeBound, bound <= limit { return nil }
    let before = self
    let opening: PagedOpening
    do throws(RepositoryError) {
      opening = try paging.openPaged(options) { add($0) }
    } catch {
      self = before
      // A shared store opens with its records in memory also while another process holds the write lock.
      if case .automatic = options.residency, [.unsupported, .locked].contains(error.code) { return nil }
      throw error
    }
    if case .automatic(let limit) = options.residency {
      var size = 0
      for summary in opening.collections {
        let (sum, isTooLarge) = size.addingReportingOverflow(summary.byteCount)
        size = isTooLarge ? .max : sum
      }
      guard size > limit.bytes else {
        backend.abandon()
        self = before
        return nil
      }
    }
    residency = .onDisk(cache: options.residency.cache ?? Residency.automaticCache)
    for summary in opening.collections where summary.recordCount > 0 {
      select(summary.name)
      summaries[current] = summary
    }
    return opening.report
  }

  /// Adds a pack (a block of encoded records), a single record or a tombstone.
  ///
  /// Records must be added in the order in which the backend passes them.
  mutating func add(_ records: LoadedRecords) {
    switch records {
    case .pack(let pack):
      finishPack()
      select(pack.collection)
      take(pack)
    case .record(let record): add(record)
    }
  }

  /// Adds a record or a tombstone.
  ///
  /// Records must be added in the order in which the backend passes them.
  mutating func add(_ record: StoredRecord) {
    if current < 0 || names[current] != record.collection {
      finishPack()
      select(record.collection)
    }
    guard let value = record.value else {
      // Only the move of a collection to another name writes tombstones with the schema version `movedVersion`. Without `movedNames`, the
      // old name would look like a collection that its user has emptied.
      if record.schemaVersion == StoreCore.movedVersion { movedNames.insert(record.collection) }
      return deletions.append(.init(collection: current, key: record.key, revision: record.revision))
    }
    if packer == nil { packer = RecordPacker(record.collection, limits: limits, capacity: value.count) }
    value.withUnsafeBytes { packer?.append(record.key, revision: record.revision, schemaVersion: record.schemaVersion, value: $0) }
    if let packer, packer.byteCount >= Self.packSize { finishPack() }
  }

  /// Returns the store's state at `commit`, with all added records.
  ///
  /// - Parameter base: The records that stay in the storage, or `nil` before the store was recovered. Without a base, only the number and
  ///   the schema versions of the records can be read.
  mutating func finish(commit: Revision, over base: (any StoredBase)? = nil) -> StoreState {
    finishPack()
    guard let cache = residency.cache else {
      return StoreState(commit: commit.number, names: names, collections: packs.map { CollectionState(records: RecordMap($0)) })
    }
    let base = base ?? UnreadBase(commit: commit)
    let collections = names.enumerated().map { position, name in
      let paged = PagedRecords(name, in: base, limits: limits, cache: cache)
      guard let summary = summaries[position] else { return CollectionState(records: RecordMap(paged, count: 0, versions: (.max, 0))) }
      let versions = (summary.schemaVersions.lowerBound, summary.schemaVersions.upperBound)
      return CollectionState(records: RecordMap(paged, count: summary.recordCount, versions: versions))
    }
    return StoreState(commit: commit.number, names: names, collections: collections)
  }

  /// Returns a deletion log that is made from the added tombstones.
  ///
  /// The deletion log contains the deletions of the commits after `horizon`. If the deletions exceed the tombstone limit, only the newest
  /// deletions are kept.
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

/// The records of a store that was opened without them and is not recovered yet, each read of which throws.
private final class UnreadBase: StoredBase {
  let commit: Revision

  init(commit: Revision) { self.commit = commit }

  private var notRecovered: RepositoryError { RepositoryError(.closed, "the store is not recovered yet; wait for its opening") }

  func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] { throw notRecovered }

  func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
    throw notRecovered
  }
}

/// Findings of opening one repository, which depend on its schema and are therefore not in the report of opening the store.
struct OpeningFindings: Sendable {
  /// Name of the repository's collection.
  let collection: String
  /// Groups of records that have the same values in a unique index, found when the index was built.
  var duplicates: [OpenReport.Duplicate] = []
  /// Move of the records from an older name, with the commit of the move, or `nil` if the opening moved no records.
  var renamed: (renaming: OpenReport.Renaming, commit: Revision)?
  /// All records of the collection if none of them can be decoded, otherwise empty.
  var undecodable: [UndecodableRecord] = []

  init(collection: String) { self.collection = collection }

  /// Returns the report of opening the store with the findings of the repository added.
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
    // The store's report already lists the records over a size limit, and the filter keeps a record from being listed twice.
    if !undecodable.isEmpty { report.undecodable = report.undecodable.filter { $0.collection != collection } + undecodable }
    return report
  }
}
