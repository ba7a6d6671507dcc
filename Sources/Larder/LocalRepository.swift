// The source files of Larder outside its folders are the public API: repositories, stores, transactions, snapshots.
// Invariant: a public type checks its arguments, encodes values, and calls the folders, which alone hold the logic of storage.
// Called by apps and by the other products of this package.

internal import Foundation
internal import Synchronization

/// A typed collection of `Codable` values on this device, which is written to disk and by default read from memory.
///
/// ```swift
/// // A JSON file in the app's own directory, created if it is missing
/// let spots = try await LocalRepository<Spot>(filename: "spots.json")
///
/// // A JSON file at a URL of your own
/// let archive = try await LocalRepository<Spot>(jsonFile: url)
///
/// // A repository without a file, for tests
/// let samples = try await LocalRepository<Spot>(inMemory: .init("spots"))
/// ```
///
/// Open a file once, and pass the repository to all of your code. For a SQLite file, import `LarderSQLite`: <doc:Backends>.
///
/// ```swift
/// try await spots.save(Spot(id: UUID(), name: "Jogashima", country: "JP", rating: 5))
/// let all = try await spots.loadAll()
/// let best = try await spots.fetch(Query().where(#Predicate { $0.rating >= 4 }).sorted(by: \.rating, .reverse).limit(20))
/// ```
///
/// ## Promises and cost
///
/// A read returns the newest committed state, and never waits for a write or an actor, nor for a disk if the records are in memory. By
/// default, a write returns when it is durable, and its records cannot be read before that. A write that throws has changed nothing, with
/// one exception: ``RepositoryError/Code-swift.struct/outcomeUnknown``.
///
/// By default, memory holds every record, and ``StoreOptions/residency`` can leave the records in the storage. A look-up by id costs about
/// as much as in a dictionary, and the first read of a record also decodes it. For a store of any size, a write costs one sync of the disk,
/// and now and then some more syncs, when the journal file grows. Writes that arrive together share a sync.
///
/// ## Threads and tasks
///
/// Call a repository from any thread, actor or task. `LocalRepository` is declared an `actor`, but it has no isolated state: reads and
/// writes are `nonisolated`, so they never queue behind each other on the actor. `find(by:)` stays on the caller's actor. A query that
/// examines many records leaves the caller's actor. A write encodes its value in the calling task, and the store commits it on its own
/// executor. Only ``flush()``, ``checkpoint()``, ``refresh()`` and ``close()`` are isolated to the actor, which runs on the store's
/// executor.
///
/// A snapshot reads without `await`:
///
/// ```swift
/// let spot = try spots.snapshot.find(by: id)
/// ```
///
/// ## When to use another type
///
/// - Use ``Store`` to keep several types in one file, or to write to several repositories in one commit.
/// - Use ``RepositorySnapshot`` for several reads that must be of one commit.
/// - Use ``LiveQuery`` in a view, and ``results(of:)`` elsewhere, for results that are updated after each write.
/// - Use ``CachedRepository`` for values that a server sends and that expire.
/// - Let a view model take ``Repository`` or ``ObservableRepository``, so that a test can pass a test double.
///
/// ## Avoid
///
/// - Do not open a file twice. A second opening for writing throws `.alreadyOpen`, unless both are `.shared`.
/// - Do not read a record, change it and save it. Another write may come between the read and the save. Use ``update(_:durability:_:)``, or
///   pass `ifRevision:`.
/// - Do not save many records one after the other, which costs a sync for each. Save many records with ``save(contentsOf:durability:)``,
///   which costs one sync.
/// - Do not work long in the closure of `update` or `transaction`. Other writes wait until the closure returns.
/// - Do not copy the result of ``loadAll()`` to another store. ``loadAll()`` leaves out records that do not decode. Use
///   ``Store/copy(to:)``, or read with `strict: true`.
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
/// - ``removeAutomaticIndexes()``
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
  /// True if ``close()`` closes the store, because the store was opened for this repository alone.
  private let ownsStore: Bool
  /// Counts this repository as a user of the store, as long as the repository exists.
  ///
  /// When the store's last user is freed, the background migrations of the store are cancelled.
  private let use: StoreUser
  nonisolated let migration: MigrationRun<Item>

  /// Serial executor of the store, whose own thread blocks on the disk, so that no thread of Swift's cooperative pool does.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { core.executor.asUnownedSerialExecutor() }

  init(core: StoreCore, schema: RepositorySchema<Item>, ownsStore: Bool) throws(RepositoryError) {
    try schema.validate()
    try schema.checkVersion(of: core.state)
    self.init(core: core, collection: try core.collection(named: schema.name, of: Item.self), schema: schema, ownsStore: ownsStore)
  }

  /// Creates the repository of a collection whose type and version were checked against the schema.
  init(core: StoreCore, collection: Int, schema: RepositorySchema<Item>, ownsStore: Bool) {
    self.core = core
    use = StoreUser(core)
    self.schema = schema
    self.ownsStore = ownsStore
    self.collection = collection
    findings = Mutex(OpeningFindings(collection: schema.name))
    core.follower.note(supportedVersion: schema.version, of: collection)
    // LarderSync's own collections store records of the app inside their records, so records of these collections may be longer and deeper
    // than the app's limits.
    coder = RecordCoder(
      schemaVersion: schema.version, limits: core.options.limits.holding(for: schema.name) ?? .largest, coding: core.options.coding,
      migrations: schema.migrations,
      refusal: schema.placeRefusal, keepsEncoded: schema.trigger != nil)
    if let trigger = schema.trigger {
      // The schema's trigger writes to further collections while a commit is staged, and staging cannot add a collection. The collections
      // of the trigger are therefore created before the first commit.
      for name in trigger.collections { _ = core.collection(named: name) }
      core.register.set(CollectionTrigger(trigger: trigger, coder: coder), of: collection)
    }
    migration = core.migrations.run(of: collection, named: schema.name, coder: coder, in: core)
  }

  /// Moves the records of a renamed collection to the repository's own, declares the indexes, and builds unique and eager indexes.
  ///
  /// To detect a collection that holds another type, `prepare()` also decodes records until one of them decodes.
  nonisolated func prepare() async throws(RepositoryError) {
    if let renaming = schema.renaming(in: core.backend.name),
      let moved = try await core.rename(renaming, to: collection, version: schema.version, fits: { [coder] in Self.reads($0, coder) })
    {
      let found = OpenReport.Renaming(oldName: renaming.oldName, name: renaming.name, recordCount: moved.recordCount)
      findings.withLock { $0.renamed = (found, moved.commit) }
      // The migration was set up while the renamed collection was still empty, and found nothing to rewrite. `lookAgain()` makes the
      // migration examine the moved records.
      migration.lookAgain()
    }
    let residency = schema.residency ?? core.residency
    // A repository of records in memory is ready at once, also while a commit waits for the disk on the executor.
    if residency != .full || core.state.collections[collection].records.isPaged {
      try await core.executor.run { [core, collection] () throws(RepositoryError) in try core.setResidency(residency, of: collection) }
    }
    try core.declare(IndexSet(schema.indexes, coder), for: collection)
    if core.state.collections[collection].records.isPaged {
      await core.executor.run { [core, collection] in core.useStoredIndexes(of: collection) }
    }
    try await core.indexBuilder.build(eagerIndexes, of: collection, in: core)
    noteDuplicates()
    try await noteUndecodable()
  }

  /// Adds all records to the open report if none of them decodes.
  ///
  /// A collection in which no record decodes probably holds another type, or another program wrote its keys. `noteUndecodable()` runs off
  /// the caller's actor, because a collection in which no record decodes is examined to its last record.
  @concurrent private nonisolated func noteUndecodable() async throws(RepositoryError) {
    let failures = try core.state.collections[collection].records.failuresOfAll(coder)
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

  /// Declares and builds the indexes as ``prepare()`` does, but synchronously, for a new repository in memory that no other task can reach.
  nonisolated func prepareNow() {
    var indexes = IndexSet(schema.indexes, coder)
    // The records of a preview are in memory, so reading them cannot fail.
    do throws(RepositoryError) { try indexes.build(eagerIndexes, from: core.state.collections[collection].records) } catch {}
    // No commit can happen between reading the records and setting the indexes, because no other task has a reference to the store.
    core.updateCollection(collection) { $0.indexes = indexes }
    noteDuplicates()
  }

  /// Positions of the indexes that are built before the repository is returned: unique indexes, and all indexes with `.eager`.
  private nonisolated var eagerIndexes: [Int] {
    schema.indexes.indices.filter { schema.indexes[$0].isUnique || core.options.indexing == .eager }
  }

  private nonisolated func noteDuplicates() {
    for index in eagerIndexes {
      let found = core.state.collections[collection].indexes.duplicates(index, collection: schema.name)
      findings.withLock { $0.duplicates += found }
    }
  }

  /// Opens or creates the store of a backend, with this repository as the store's only one.
  ///
  /// A store that is refused is left as it was, because nothing is written before the store was read and accepted. If recovering from a
  /// crash fails (`.inputOutput`, `.full`), no acknowledged write is lost.
  ///
  /// - Throws: `.locked` or `.alreadyOpen` if the store is open elsewhere. `.newerSchema` if a newer version wrote the file or a record.
  ///   `.unsupported` for options that the backend cannot serve, for a schema that cannot be stored, and for a collection name that is
  ///   missing in a store whose records are in collections of other names. A collection name is usually missing because the schema was
  ///   forgotten, or because the records were stored without a name: see ``RepositorySchema/renamedFrom``. See <doc:Errors>.
  public init(
    backend: any StorageBackend, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    try schema.validate()
    // The schema is checked before recovery writes anything, so that a refused store keeps every byte.
    let core = try await StoreCore.open(backend, options) { (found) throws(RepositoryError) in
      try schema.checkVersion(of: found.state)
      try schema.checkName(against: found)
    }
    do throws(RepositoryError) {
      try self.init(core: core, schema: schema, ownsStore: true)
      try await prepare()
    } catch {
      // The store is closed with `abandon()`, because `close()` runs a checkpoint, which would change the files of a store that is refused.
      await core.abandon()
      throw error
    }
    await beginMigration()
  }

  /// Creates a repository that keeps its records in memory only and writes no file.
  ///
  /// - Throws: `.unsupported` for a schema that cannot be stored.
  public init(inMemory schema: RepositorySchema<Item> = .init()) async throws(RepositoryError) {
    try await self.init(backend: InMemoryBackend(), schema: schema)
  }

  /// The report on opening the store, with the renaming, the duplicates and the undecodable records of this repository's collection.
  public nonisolated var openReport: OpenReport { findings.withLock { $0.added(to: core.openReport) } }

  // MARK: Reading

  /// An immutable value with the records of the newest commit.
  ///
  /// Cost: a copy of some pointers. The snapshot still returns its records after ``close()``.
  public nonisolated var snapshot: RepositorySnapshot<Item> {
    let state = core.state
    return RepositorySnapshot(
      revision: Revision(state.commit), collection: schema.name, records: state.collections[collection].records, coder: coder,
      indexes: state.collections[collection].indexes)
  }

  /// Returns the record with this id, or `nil` if there is none.
  ///
  /// With the records in memory, `find(by:)` never leaves the caller's actor and never waits. Cost: about that of a look-up in a
  /// dictionary. The first read of a record also decodes it. With ``Residency/onDisk(cache:)``, a record that is not in the cache is read
  /// from the storage: on the calling thread, or away from it if that is the main thread.
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.tooLarge` or `.newerSchema` for a stored record that cannot be read as `Item`.
  ///   `.invalidKey` for an id that cannot be a key. `.closed` after the store was closed.
  public nonisolated(nonsending) func find(by id: Item.ID) async throws(RepositoryError) -> Item? {
    // `find(by:)` does not use `snapshot`, because copying the store's whole state would slow down a look-up that costs about as much as
    // one in a dictionary.
    let (records, key) = (try core.records(of: collection), try coder.keys.key(for: id))
    do throws(RepositoryError) {
      if records.mustRead(key), isOnMainThread { return try await Self.read(key, in: records, coder) }
      return try records.value(for: key, coder)
    } catch {
      // The backend may have given up the base after this call has read the published state. The newest state has another base.
      guard error.code == .superseded else { throw error }
      return try await Self.read(key, in: try core.records(of: collection), coder)
    }
  }

  /// Reads a record from the storage away from the main thread, which a slow disk must not block.
  @concurrent private nonisolated static func read(
    _ key: RecordKey, in records: RecordMap, _ coder: RecordCoder<Item>
  ) async throws(RepositoryError) -> Item? {
    try records.value(for: key, coder)
  }

  /// Returns all records that decode, sorted by the bytes of their keys.
  ///
  /// `snapshot.undecodable` lists the records that do not decode. In a collection of more than 512 records, the records that were not read
  /// yet are decoded in parallel, off the caller's actor. Cost: linear in the number of records.
  /// - Throws: `.closed` after the store was closed.
  public nonisolated(nonsending) func loadAll() async throws(RepositoryError) -> [Item] {
    try await readingRecords { records throws(RepositoryError) in
      // Up to 512 records are decoded on the caller's actor, which takes less time than starting tasks for them. The main thread must not
      // wait for records that stay in the storage.
      guard records.count > ConcurrentMap.partSize || records.isPaged && isOnMainThread else {
        return try RepositorySnapshot(revision: .zero, collection: schema.name, records: records, coder: coder).allItems()
      }
      return try await records.items(coder)
    }
  }

  /// Returns the revision of the record with this id, or `nil` if there is none.
  ///
  /// Pass the revision as `ifRevision:` to a later write, which then throws if the record has changed since. If the records stay in the
  /// storage and the storage cannot be read, the result is a revision that no record has.
  public nonisolated func revision(of id: Item.ID) -> Revision? { snapshot.revision(of: id) }

  // MARK: Upkeep

  /// Makes every earlier write durable, so that a power cut cannot undo any of them.
  ///
  /// Call `flush()` after `.buffered` or `.ordered` writes that a power cut must not undo. `.durable` writes, the default, do not need
  /// `flush()`.
  ///
  /// - Throws: `.outcomeUnknown` if the sync fails, and from then on writes throw `.poisoned`. `.dataMissing` if the files are gone, and
  ///   `.locked` if the journal belongs to another process. See <doc:Errors>.
  public func flush() async throws(RepositoryError) { try await core.flush() }

  /// Writes the changes in the journal into the main file, which is called a checkpoint.
  ///
  /// You seldom need to call `checkpoint()`. A checkpoint runs by itself when the journal is large. A checkpoint also runs when the store
  /// is idle or closed, if the main file is small or at most twice as large as the journal, or if the oldest change in the journal is a day
  /// old: see ``StoreOptions/checkpoint``.
  ///
  /// Cost: reads and writes the whole main file, while other writes go on.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`, after which the store goes on as before. `.corrupted` if the main
  ///   file is damaged. `.unsupported` for a JSON file opened `.readOnly`. See <doc:Errors>.
  public func checkpoint() async throws(RepositoryError) { try await core.checkpointer.checkpoint(core) }

  /// Reads the commits of other processes into a store that is open `.shared` or `.readOnly`.
  ///
  /// Call `refresh()` when the app comes to the foreground. A store also reads the commits of other processes within
  /// ``StoreOptions/pollInterval``, and before every write.
  ///
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing` or `.locked`, after which reads go on as before. See <doc:Errors>.
  public func refresh() async throws(RepositoryError) { try await core.refresh() }

  /// Suspends the store with all of its repositories, as ``Store/suspend()`` does.
  public nonisolated(nonsending) func suspend() async { await core.suspend() }

  /// Resumes the store with all of its repositories, as ``Store/resume()`` does.
  ///
  /// - Throws: The errors of ``Store/resume()``.
  public nonisolated(nonsending) func resume() async throws(RepositoryError) { try await core.resume() }

  /// Commits the queued writes and closes the store, after which calls throw `.closed`.
  ///
  /// After a close, only the main file remains. Beside a large JSON file, a journal may remain that is too small for a checkpoint.
  /// `close()` of a repository of a ``Store`` makes earlier writes durable and leaves the store open. A second call of `close()` does
  /// nothing. You may also drop a repository without closing it: no write is lost, and the next opening replays the journal.
  /// - Throws: The error that prevented a clean close. Every committed write is kept even if `close()` throws.
  public func close() async throws(RepositoryError) {
    if ownsStore { return try await core.close() }
    do throws(RepositoryError) {
      try await core.flush()
    } catch {
      // A closed store has nothing left to sync, and a second `close()` must do nothing. `close()` therefore does not throw the error
      // `.closed`.
      if error.code != .closed { throw error }
    }
  }
}
