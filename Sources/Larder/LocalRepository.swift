internal import Synchronization

/// A typed collection of values on this device: in memory for reading, on disk before a write returns.
///
/// ```swift
/// let spots = try await LocalRepository<Spot>(jsonFile: url)
/// try await spots.save(Spot(id: UUID(), name: "Jogashima", country: "JP", rating: 5))
/// let all = try await spots.loadAll()
/// ```
///
/// Reads answer from the last published snapshot: they never wait for a write, a disk or an actor. Writes return when they are durable,
/// and only then are they visible; a write that throws has changed nothing (see ``RepositoryError/Code/outcomeUnknown`` for the one
/// exception). Writes that arrive together share one sync.
public actor LocalRepository<Item: Codable & Identifiable & Sendable> where Item.ID: Hashable & Codable & Sendable {
  nonisolated let queue: CommitQueue
  nonisolated let collection: Int
  nonisolated let schema: RepositorySchema<Item>
  nonisolated let coder: RecordCoder<Item>
  /// What building the unique indexes found.
  private let duplicates = Mutex<[OpenReport.Duplicate]>([])
  /// Whether closing the repository closes the store, because nobody else has it.
  private let ownsStore: Bool
  private let use: StoreUse
  nonisolated let migration: MigrationRun<Item>

  /// The store's own serial executor, so that nothing here blocks the cooperative pool.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { queue.executor.asUnownedSerialExecutor() }

  init(queue: CommitQueue, schema: RepositorySchema<Item>, ownsStore: Bool) throws(RepositoryError) {
    try schema.check()
    try schema.checkVersion(of: queue.state)
    self.queue = queue
    use = StoreUse(queue)
    self.schema = schema
    self.ownsStore = ownsStore
    collection = try queue.collection(named: schema.name, of: Item.self)
    queue.reads(collection, upTo: schema.version)
    coder = RecordCoder(
      schemaVersion: schema.version, limits: queue.options.limits, migrations: schema.migrations, refusal: schema.placeRefusal)
    migration = queue.migration(of: collection, named: schema.name, coder: coder)
  }

  /// Declares the indexes, and builds those that must be there from the beginning.
  nonisolated func prepare() async throws(RepositoryError) {
    try queue.declare(IndexSet(schema.indexes, coder), for: collection)
    for (index, declaration) in schema.indexes.enumerated() where declaration.isUnique || queue.options.indexing == .eager {
      await queue.buildIndex(index, of: collection)
      let found = queue.state.collections[collection].indexes.duplicates(index, collection: schema.name)
      duplicates.withLock { $0 += found }
    }
  }

  /// Opens the store that a backend keeps, with one repository in it.
  ///
  /// What is refused, for whatever reason, is left as it was: nothing is written before the store was read and accepted.
  ///
  /// - Throws: what the backend's `open` throws; `.newerSchema` when a record was written by a newer version of the schema; `.unsupported`
  ///   for a schema that cannot be stored, and for one of the default name where the store has records in other collections only: the message
  ///   names them, since what was forgotten is most likely the schema.
  public init(
    backend: any StorageBackend, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    try schema.check()
    let queue = try await CommitQueue.open(backend, options) { (state) throws(RepositoryError) in
      try schema.checkVersion(of: state)
      try schema.checkName(against: state, in: backend.name)
    }
    do throws(RepositoryError) {
      try self.init(queue: queue, schema: schema, ownsStore: true)
      try await prepare()
    } catch {
      await queue.abandon()
      throw error
    }
    await beginMigration()
  }

  /// Makes a repository that lives in memory only and is gone with the process.
  ///
  /// - Throws: `.unsupported` for a schema that cannot be stored.
  public init(inMemory schema: RepositorySchema<Item> = .init()) async throws(RepositoryError) {
    try await self.init(backend: InMemoryBackend(), schema: schema)
  }

  /// What opening the store found and did.
  public nonisolated var openReport: OpenReport {
    var report = queue.openReport
    report.duplicates = duplicates.withLock { $0 }
    return report
  }

  // MARK: Reading

  /// The records at the newest commit, as an immutable value.
  ///
  /// Cost: a copy of some pointers.
  ///
  /// It goes on answering after ``close()``, with the last state.
  public nonisolated var snapshot: RepositorySnapshot<Item> {
    let state = queue.state
    return RepositorySnapshot(
      revision: Revision(state.commit), collection: schema.name, records: state.collections[collection].records, coder: coder,
      indexes: state.collections[collection].indexes)
  }

  /// The record with this id, or `nil` when there is none.
  ///
  /// Never leaves the caller's actor and never waits. Cost: about a dictionary's; the first touch of a record also decodes it.
  /// - Throws: `.decodingFailed` or `.tooLarge` for a record that is there but cannot be read as `Item`, `.invalidKey` for an id that
  ///   cannot be a key, `.closed`.
  public nonisolated(nonsending) func find(by id: Item.ID) async throws(RepositoryError) -> Item? {
    try queue.records(of: collection)[coder.keys.key(for: id)]?.value(coder)
  }

  /// All records that decode, in the order of their keys' bytes; `snapshot.undecodable` lists the others.
  ///
  /// Records that were not touched yet are decoded in parallel, away from the caller's actor. Cost: linear.
  /// - Throws: `.closed`.
  public nonisolated(nonsending) func loadAll() async throws(RepositoryError) -> [Item] {
    let records = try queue.records(of: collection)
    guard records.count > ParallelDecoding.chunk else {
      return RepositorySnapshot(revision: .zero, collection: schema.name, records: records, coder: coder).loadAll()
    }
    return await ParallelDecoding.items(records, coder)
  }

  /// The commit that wrote the record with this id; `nil` when there is none.
  ///
  /// Give it to `ifRevision:` for compare-and-set.
  public nonisolated func revision(of id: Item.ID) -> Revision? { snapshot.revision(of: id) }

  // MARK: Upkeep

  /// Makes every earlier write survive power loss; needed only after `.buffered` writes.
  ///
  /// - Throws: `.outcomeUnknown` when the sync fails, which poisons the store; `.poisoned`, `.closed`.
  public func flush() async throws(RepositoryError) { try await queue.flush() }

  /// Folds the journal into the main file.
  ///
  /// Happens by itself on close, when idle and by size; see ``StoreOptions/checkpoint``.
  ///
  /// - Throws: `.full` or `.inputOutput` when the store goes on as before, `.corrupted` when the old file is damaged, `.poisoned`, `.closed`.
  public func checkpoint() async throws(RepositoryError) { try await queue.checkpoint() }

  /// Shows what other processes have committed by now, in a store that is open `.shared` or `.readOnly`.
  ///
  /// Happens by itself within ``StoreOptions/pollInterval`` and before every write; for an app that comes to the foreground.
  ///
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing` or `.locked`, and then the repository shows what it did before; `.poisoned`, `.closed`.
  public func refresh() async throws(RepositoryError) { try await queue.refresh() }

  /// Commits what is queued and closes the store: afterwards only its main file remains, beside a large JSON file perhaps a journal that is not
  /// worth folding yet, and calls throw `.closed`.
  ///
  /// A repository that came from a ``Store`` makes its writes durable and leaves the store open. The second call does nothing. A repository
  /// that is dropped without closing loses nothing; the next open replays its journal.
  /// - Throws: what prevented a clean close; everything committed is safe in any case.
  public func close() async throws(RepositoryError) {
    if ownsStore { return try await queue.close() }
    do throws(RepositoryError) {
      try await queue.flush()
    } catch {
      if error.code != .closed { throw error }
    }
  }
}
