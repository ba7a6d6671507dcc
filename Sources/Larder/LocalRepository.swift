internal import Synchronization

/// A typed collection of values on this device: in memory for reading, on disk before a write returns.
///
/// ```swift
/// let spots = try await LocalRepository<Spot>(jsonFile: url)
/// try await spots.save(Spot(id: UUID(), name: "Jogashima", country: "JP", rating: 5))
/// let all = try await spots.loadAll()
/// ```
///
/// Reads answer from the published state: they never wait for a write, a disk or an actor. Writes return when they are
/// durable, and only then are they visible; a write that throws has changed nothing (see
/// ``RepositoryError/Code-swift.struct/outcomeUnknown`` for the one exception).
///
/// A look-up by id costs about what a dictionary's does, and decodes the record when it is first touched. A write costs
/// one sync of the disk, whatever the size of the store, and now and then some more to make room; writes that arrive
/// together share it. Memory holds every record.
///
/// ## Topics
///
/// ### Opening
///
/// - ``init(jsonFile:schema:options:)``
/// - ``init(filename:schema:options:)``
/// - ``init(inMemory:)``
/// - ``init(previewing:schema:)``
/// - ``init(backend:schema:options:)``
/// - ``openReport``
///
/// ### Saving
///
/// - ``save(_:ifRevision:durability:)``
/// - ``save(contentsOf:durability:)``
/// - ``insert(_:durability:)``
/// - ``update(_:durability:_:)``
/// - ``replaceAll(with:)``
/// - ``replaceAll(with:discardingUndecodable:)``
/// - ``transaction(durability:_:)``
///
/// ### Deleting
///
/// - ``delete(_:ifRevision:durability:)``
///
/// ### Reading
///
/// - ``find(by:)``
/// - ``loadAll()``
/// - ``snapshot``
/// - ``revision(of:)``
///
/// ### Querying
///
/// - ``fetch(_:)``
/// - ``first(_:)``
/// - ``count(_:)``
/// - ``matches(_:)``
/// - ``page(_:after:limit:)``
/// - ``grouped(by:_:)``
/// - ``explain(_:)``
///
/// ### Observing
///
/// - ``changes(since:)``
/// - ``results(of:)``
///
/// ### Keeping
///
/// - ``flush()``
/// - ``checkpoint()``
/// - ``refresh()``
/// - ``suspend()``
/// - ``resume()``
/// - ``migrationProgress``
/// - ``finishMigration()``
/// - ``close()``
public actor LocalRepository<Item: Codable & Identifiable & Sendable> where Item.ID: Hashable & Codable & Sendable {
  nonisolated let core: StoreCore
  nonisolated let collection: Int
  nonisolated let schema: RepositorySchema<Item>
  nonisolated let coder: RecordCoder<Item>
  private let findings: Mutex<OpeningFindings>
  /// Whether closing the repository closes the store, because it was opened for this repository alone.
  private let ownsStore: Bool
  private let use: StoreUse
  nonisolated let migration: MigrationRun<Item>

  /// The store's own serial executor, so that nothing here blocks the cooperative pool.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { core.executor.asUnownedSerialExecutor() }

  init(core: StoreCore, schema: RepositorySchema<Item>, ownsStore: Bool) throws(RepositoryError) {
    try schema.validate()
    try schema.checkVersion(of: core.state)
    self.init(core: core, collection: try core.collection(named: schema.name, of: Item.self), schema: schema, ownsStore: ownsStore)
  }

  /// Makes the repository of a collection that was found to fit the schema.
  init(core: StoreCore, collection: Int, schema: RepositorySchema<Item>, ownsStore: Bool) {
    self.core = core
    use = StoreUse(core)
    self.schema = schema
    self.ownsStore = ownsStore
    self.collection = collection
    findings = Mutex(OpeningFindings(collection: schema.name))
    core.follower.note(supportedVersion: schema.version, of: collection)
    coder = RecordCoder(
      schemaVersion: schema.version, limits: core.options.limits.holding(for: schema.name) ?? .largest, coding: core.options.coding,
      migrations: schema.migrations,
      refusal: schema.placeRefusal, keepsEncoded: schema.trigger != nil)
    if let trigger = schema.trigger {
      for name in trigger.collections { _ = core.collection(named: name) }
      core.register.set(CollectionTrigger(trigger: trigger, coder: coder), of: collection)
    }
    migration = core.migrations.run(of: collection, named: schema.name, coder: coder, in: core)
  }

  /// Moves records of an older name here, declares the indexes, and builds those that must be there before the first call.
  ///
  /// Decodes records up to the first that decodes.
  nonisolated func prepare() async throws(RepositoryError) {
    if let renaming = schema.renaming(in: core.backend.name),
      let moved = try await core.rename(renaming, to: collection, version: schema.version, fits: { [coder] in Self.reads($0, coder) })
    {
      let found = OpenReport.Renaming(oldName: renaming.oldName, name: renaming.name, recordCount: moved.recordCount)
      findings.withLock { $0.renamed = (found, moved.commit) }
      migration.lookAgain()
    }
    try core.declare(IndexSet(schema.indexes, coder), for: collection)
    await core.indexBuilder.build(eagerIndexes, of: collection, in: core)
    noteDuplicates()
    await noteUndecodable()
  }

  /// Notes all records if none of them decodes: the collection is probably of another type, or its keys were written by another program.
  ///
  /// Away from the caller's actor, since then all are decoded.
  @concurrent private nonisolated func noteUndecodable() async {
    let failures = core.state.collections[collection].records.failuresOfAll(coder)
    guard !failures.isEmpty else { return }
    findings.withLock { $0.undecodable = failures.map { UndecodableRecord($0.slot, in: schema.name, $0.error) } }
  }

  private static func reads(_ slot: RecordSlot, _ coder: RecordCoder<Item>) -> Bool {
    do throws(RepositoryError) {
      let _: Item = try slot.value(coder)
      return true
    } catch {
      return false
    }
  }

  /// Does at once what ``prepare()`` does, for a repository that nobody else has yet.
  nonisolated func prepareNow() {
    var indexes = IndexSet(schema.indexes, coder)
    indexes.build(eagerIndexes, from: core.state.collections[collection].records)
    core.updateCollection(collection) { $0.indexes = indexes }
    noteDuplicates()
  }

  /// The indexes that must be there before the first call.
  private nonisolated var eagerIndexes: [Int] {
    schema.indexes.indices.filter { schema.indexes[$0].isUnique || core.options.indexing == .eager }
  }

  private nonisolated func noteDuplicates() {
    for index in eagerIndexes {
      let found = core.state.collections[collection].indexes.duplicates(index, collection: schema.name)
      findings.withLock { $0.duplicates += found }
    }
  }

  /// Opens the store that a backend keeps, with one repository in it.
  ///
  /// A store that is refused is left as it was: nothing is written before the store was read and accepted. Where recovering from a crash
  /// fails (`.inputOutput`, `.full`), nothing that was acknowledged is lost.
  ///
  /// - Throws: `.corrupted`, `.newerSchema` (of the file, or of a record), `.notOurStore`, `.dataMissing`,
  ///   `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`, `.inputOutput`, `.full`; `.unsupported` for options that
  ///   the backend cannot serve, for a schema that cannot be stored, and for a name of which the store has nothing where
  ///   its records have another one: the schema was forgotten, or a name was given to records without one; see
  ///   ``RepositorySchema/renamedFrom``.
  public init(
    backend: any StorageBackend, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    try schema.validate()
    let core = try await StoreCore.open(backend, options) { (found) throws(RepositoryError) in
      try schema.checkVersion(of: found.state)
      try schema.checkName(against: found)
    }
    do throws(RepositoryError) {
      try self.init(core: core, schema: schema, ownsStore: true)
      try await prepare()
    } catch {
      await core.abandon()
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

  /// The findings of opening the store.
  public nonisolated var openReport: OpenReport { findings.withLock { $0.added(to: core.openReport) } }

  // MARK: Reading

  /// The records at the newest commit, as an immutable value.
  ///
  /// Cost: a copy of some pointers.
  ///
  /// It goes on answering after ``close()``, with the last state.
  public nonisolated var snapshot: RepositorySnapshot<Item> {
    let state = core.state
    return RepositorySnapshot(
      revision: Revision(state.commit), collection: schema.name, records: state.collections[collection].records, coder: coder,
      indexes: state.collections[collection].indexes)
  }

  /// Returns the record with this id, or `nil` when there is none.
  ///
  /// Never leaves the caller's actor and never waits. Cost: about a dictionary's; the first touch of a record also decodes it.
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge` or `.newerSchema` for a record that is there but
  ///   cannot be read as `Item`; `.invalidKey` for an id that cannot be a key; `.closed`.
  public nonisolated(nonsending) func find(by id: Item.ID) async throws(RepositoryError) -> Item? {
    try core.records(of: collection).value(for: coder.keys.key(for: id), coder)
  }

  /// Returns all records that decode, in the order of their keys' bytes; `snapshot.undecodable` lists the others.
  ///
  /// Records that were not touched yet are decoded in parallel, away from the caller's actor. Cost: linear.
  /// - Throws: `.closed`.
  public nonisolated(nonsending) func loadAll() async throws(RepositoryError) -> [Item] {
    let records = try core.records(of: collection)
    guard records.count > ConcurrentMap.partSize else {
      return RepositorySnapshot(revision: .zero, collection: schema.name, records: records, coder: coder).loadAll()
    }
    return await records.items(coder)
  }

  /// Returns the revision of the record with this id; `nil` when there is none.
  ///
  /// For compare-and-set by `ifRevision:`.
  public nonisolated func revision(of id: Item.ID) -> Revision? { snapshot.revision(of: id) }

  // MARK: Upkeep

  /// Makes every earlier write survive power loss; needed only after `.buffered` writes.
  ///
  /// - Throws: `.outcomeUnknown` when the sync fails, after which writes throw `.poisoned`; `.dataMissing`, or `.locked` for a journal of
  ///   another process; `.inputOutput`, `.protectedDataUnavailable`, `.poisoned`, `.closed`.
  public func flush() async throws(RepositoryError) { try await core.flush() }

  /// Folds the journal into the main file.
  ///
  /// Happens by itself by size, and on close and when idle where it is worth what it rewrites; see ``StoreOptions/checkpoint``.
  ///
  /// Cost: reads and writes the whole main file, beside other writes.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` when the store goes on as before; `.corrupted` when the old file is
  ///   damaged; `.dataMissing`, or `.locked` for a journal of another process; `.outcomeUnknown`, `.poisoned`, `.closed`; `.unsupported`
  ///   for a JSON file opened `.readOnly`.
  public func checkpoint() async throws(RepositoryError) { try await core.checkpointer.checkpoint(core) }

  /// Takes in the commits of other processes, in a store that is open `.shared` or `.readOnly`.
  ///
  /// Happens by itself within ``StoreOptions/pollInterval`` and before every write; for an app that comes to the foreground.
  ///
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing` or `.locked`, and then reads go on as before; `.poisoned`, `.closed`.
  public func refresh() async throws(RepositoryError) { try await core.refresh() }

  /// Suspends the store of the repository, with all its repositories; see ``Store/suspend()``.
  public nonisolated(nonsending) func suspend() async { await core.suspend() }

  /// Resumes the store of the repository; see ``Store/resume()``.
  ///
  /// - Throws: as ``Store/resume()``.
  public nonisolated(nonsending) func resume() async throws(RepositoryError) { try await core.resume() }

  /// Commits the writes that are queued, and closes the store; later calls throw `.closed`.
  ///
  /// Afterwards only the main file remains, beside a large JSON file perhaps a journal that is not worth folding yet.
  /// A repository that came from a ``Store`` makes its writes durable and leaves the store open. The second call does nothing. A repository
  /// that is dropped without closing loses nothing; the next open replays its journal.
  /// - Throws: what prevented a clean close; everything committed is safe in any case.
  public func close() async throws(RepositoryError) {
    if ownsStore { return try await core.close() }
    do throws(RepositoryError) {
      try await core.flush()
    } catch {
      if error.code != .closed { throw error }
    }
  }
}
