public import Foundation

/// One backend with many repositories, and transactions across them.
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// let spots = try await store.repository(RepositorySchema<Spot>("spots"))
/// let visits = try await store.repository(RepositorySchema<Visit>("visits"))
/// try await store.transaction { transaction in
///   try transaction.save(spot, in: spots)
///   try transaction.save(visit, in: visits)
/// }
/// ```
public final class Store: Sendable {
  private let core: StoreCore
  private let use: StoreUse

  private init(_ core: StoreCore) {
    self.core = core
    use = StoreUse(core)
  }

  /// Opens the store that a backend keeps, or creates it.
  ///
  /// What a crash has left is recovered here: schemas are named later, by ``repository(_:)``, which may refuse a collection of a store that
  /// is open and recovered by then.
  ///
  /// - Throws: what the backend's `open` throws; what is refused is left as it was.
  public static func open(_ backend: any StorageBackend, options: StoreOptions = .init()) async throws(RepositoryError) -> Store {
    Store(try await StoreCore.open(backend, options) { (_) throws(RepositoryError) in })
  }

  /// What opening found and did.
  public var openReport: OpenReport { core.openReport }

  /// The repository of a collection.
  ///
  /// Repositories of one name share their records.
  ///
  /// - Throws: `.newerSchema` when a record was written by a newer version, `.unsupported` for a schema that cannot be stored, or that
  ///   declares other indexes than an open repository of the name.
  public func repository<Item>(_ schema: RepositorySchema<Item>) async throws(RepositoryError) -> LocalRepository<Item> {
    let repository = try LocalRepository(core: core, schema: schema, ownsStore: false)
    try await repository.prepare()
    await repository.beginMigration()
    return repository
  }

  /// Runs reads and writes on several repositories as one: all of them or none, with no other write between.
  ///
  /// The closure is synchronous and runs on the store's executor; it sees its own writes.
  /// - Returns: What the closure returns, once its writes are durable.
  /// - Throws: what the closure throws, and then nothing was written; otherwise the errors of storage, as `LocalRepository.save`.
  @concurrent @discardableResult
  public func transaction<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await core.transaction(durability, body).get()
  }

  /// Makes every earlier write survive power loss; needed only after `.buffered` writes.
  ///
  /// - Throws: `.outcomeUnknown` when the sync fails, which poisons the store; `.poisoned`, `.closed`.
  public func flush() async throws(RepositoryError) { try await core.flush() }

  /// Folds the journal into the main file.
  ///
  /// Happens by itself on close, when idle and by size.
  ///
  /// - Throws: `.full` or `.inputOutput` when the store goes on as before, `.corrupted`, `.poisoned`, `.closed`.
  public func checkpoint() async throws(RepositoryError) { try await core.checkpoint() }

  /// Shows what other processes have committed by now, in a store that is open `.shared` or `.readOnly`.
  ///
  /// Happens by itself within ``StoreOptions/pollInterval`` and before every write.
  ///
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing` or `.locked`, and then the store shows what it did before; `.poisoned`, `.closed`.
  public func refresh() async throws(RepositoryError) { try await core.refresh() }

  /// Reads everything back from storage and compares every checksum, changing nothing.
  ///
  /// Also tells of a failed automatic checkpoint, and of a failed look for what other processes have committed.
  ///
  /// Cost: reads all files; writes wait meanwhile, reads do not.
  public func verify() async -> VerifyReport { await core.verify() }

  /// Writes a complete copy of the store to a new file, which the same kind of backend can open.
  ///
  /// - Throws: `.alreadyExists` when there is a file at the URL, `.full`, `.inputOutput`, `.corrupted`, `.closed`.
  public func backup(to url: URL) async throws(RepositoryError) { try await core.backup(to: url) }

  /// Commits what is queued and closes the store: afterwards only its main file remains, beside a large JSON file perhaps a journal that is not
  /// worth folding yet, and calls throw `.closed`.
  ///
  /// - Throws: what prevented a clean close; everything committed is safe in any case. The second call does nothing.
  public func close() async throws(RepositoryError) { try await core.close() }
}
