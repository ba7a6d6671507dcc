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
///
/// Opening costs one pass over the file; each repository of it costs nothing but its unique indexes. A store stays open
/// as long as it or one of its repositories is kept, or until ``close()``. For a single collection, ``LocalRepository``
/// opens a store of its own.
///
/// ## Topics
///
/// ### Opening
///
/// - ``open(_:options:)``
/// - ``repository(_:)``
/// - ``openReport``
///
/// ### Reading
///
/// - ``snapshot``
///
/// ### Writing
///
/// - ``transaction(durability:_:)``
/// - ``flush()``
///
/// ### Keeping
///
/// - ``verify()``
/// - ``backup(to:)``
/// - ``copy(to:)``
/// - ``checkpoint()``
/// - ``refresh()``
/// - ``suspend()``
/// - ``resume()``
/// - ``close()``
///
/// ### Migrating
///
/// - ``dryRun(_:schema:options:)``
public final class Store: Sendable {
  let core: StoreCore
  private let use: StoreUse

  private init(_ core: StoreCore) {
    self.core = core
    use = StoreUse(core)
  }

  /// Opens the store that a backend keeps, or creates it.
  ///
  /// Recovers from a crash: schemas are named later, by ``repository(_:)``, which may refuse a collection of a store
  /// that is open and recovered by then.
  ///
  /// - Throws: `.corrupted`, `.newerSchema`, `.notOurStore`, `.dataMissing`, `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`,
  ///   `.inputOutput`, `.full`; `.unsupported` for options that the backend cannot serve. What is refused is left as it was, and
  ///   nothing acknowledged is lost where recovering fails.
  public static func open(_ backend: any StorageBackend, options: StoreOptions = .init()) async throws(RepositoryError) -> Store {
    Store(try await StoreCore.open(backend, options) { (_) throws(RepositoryError) in })
  }

  /// The findings of opening the store, or of the last ``resume()`` that had to read it anew.
  public var openReport: OpenReport { core.openReport }

  /// Returns the repository of a collection; repositories of one name share their records.
  ///
  /// Moves the records of ``RepositorySchema/renamedFrom`` first, if there are any.
  /// - Throws: `.newerSchema` when a record was written by a newer version; what a save throws, where records move; `.unsupported` for a
  ///   schema that cannot be stored, for records that cannot move (both names have some, or the old one was synced), or for one that has
  ///   another type or other indexes than the first repository of the name since the store was opened, even if that was dropped or refused.
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
  /// - Throws: what the closure throws, and then nothing was written; otherwise as ``LocalRepository/transaction(durability:_:)``.
  @concurrent @discardableResult
  public func transaction<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await core.transaction(durability, body).get()
  }

  /// Makes every earlier write survive power loss; needed only after `.buffered` writes.
  ///
  /// - Throws: `.outcomeUnknown` when the sync fails, after which writes throw `.poisoned`; `.dataMissing`, or `.locked` for a journal of
  ///   another process; `.inputOutput`, `.protectedDataUnavailable`, `.poisoned`, `.closed`.
  public func flush() async throws(RepositoryError) { try await core.flush() }

  /// Folds the journal into the main file.
  ///
  /// Happens by itself by size, and on close and when idle where it is worth what it rewrites.
  ///
  /// Cost: reads and writes the whole main file, beside other writes.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` when the store goes on as before; `.corrupted` when the old file is
  ///   damaged; `.dataMissing`, or `.locked` for a journal of another process; `.outcomeUnknown`, `.poisoned`, `.closed`; `.unsupported`
  ///   for a JSON file opened `.readOnly`.
  public func checkpoint() async throws(RepositoryError) { try await core.checkpointer.checkpoint(core) }

  /// Takes in the commits of other processes, in a store that is open `.shared` or `.readOnly`.
  ///
  /// Happens by itself within ``StoreOptions/pollInterval`` and before every write.
  ///
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing` or `.locked`, and then reads go on as before; `.poisoned`, `.closed`.
  public func refresh() async throws(RepositoryError) { try await core.refresh() }

  /// Gives up every lock before the system stops the process, and keeps the store usable for reading.
  ///
  /// iOS ends a process that is suspended while it holds a lock on a file of a shared container (`0xDEAD10CC`). Call this when the app goes
  /// to the background, and ``resume()`` when it comes back; <doc:InAnXcodeApp> says where. In between another process may use the store.
  ///
  /// Reads, snapshots, live queries and observers go on with what is in memory. A write waits for ``resume()``, at most for
  /// ``StoreOptions/suspensionTimeout``, and then throws `.suspended`. What else needs the files throws it at once: `checkpoint`, `backup`,
  /// `flush`, `refresh`; `verify` reports it. A checkpoint that runs beside commits is given up, and nothing is lost with it.
  ///
  /// What was acknowledged is durable when this returns, buffered writes too. The second call does nothing, nor does one on a closed store.
  ///
  /// Cost: the writes that wait already, as far as one commit takes them, and some syncs. A backup or a verification that runs is waited
  /// for.
  public nonisolated(nonsending) func suspend() async { await core.suspend() }

  /// Takes the locks again, and takes in what other processes have committed since ``suspend()``.
  ///
  /// Observers are told of those commits, and the writes that wait go on after them. The call does nothing when the store is not suspended.
  ///
  /// An exclusive store that another process has written may have to be read anew, and ``openReport`` then says what was found: a SQLite
  /// store always, and a JSON file after a checkpoint. Each close of a JSON file of up to 1 MiB makes one.
  ///
  /// Cost: under a millisecond where nobody has written. Otherwise a `.shared` store, or a JSON file whose journal another process has
  /// continued, reads what was committed meanwhile. A store that is read anew takes about twice as long as opening it.
  /// - Throws: `.locked` or `.alreadyOpen` while another process, or another store of this one, has the file; `.dataMissing` when another
  ///   file, or an older copy, has taken the place of the store; otherwise as ``open(_:options:)``. The store stays suspended, and a later
  ///   call may succeed. `.poisoned` after a failed sync, `.closed`.
  public nonisolated(nonsending) func resume() async throws(RepositoryError) { try await core.resume() }

  /// Reads everything back from storage and compares every checksum, changing nothing.
  ///
  /// Reports a failed automatic checkpoint, too, and a failed look for the commits of other processes.
  ///
  /// Cost: reads all files; writes wait meanwhile, reads do not.
  public func verify() async -> VerifyReport { await core.verify() }

  /// Writes a complete copy of the store to a new file, which the same kind of backend can open.
  ///
  /// The copy holds one commit whole. Cost: reads and writes all files; writes wait meanwhile, reads do not.
  /// - Throws: `.alreadyExists` when there is a file at the URL; `.full`, `.inputOutput`, `.protectedDataUnavailable`, `.corrupted`;
  ///   `.unsupported` for a store in memory, for a JSON file opened `.readOnly`, and for a name that is too long; `.poisoned`, `.closed`.
  public func backup(to url: URL) async throws(RepositoryError) { try await core.backup(to: url) }

  /// Commits the writes that are queued, and closes the store; later calls throw `.closed`.
  ///
  /// Afterwards only the main file remains, beside a large JSON file perhaps a journal that is not worth folding yet. The second call does
  /// nothing.
  /// - Throws: what prevented a clean close; everything committed is safe in any case.
  public func close() async throws(RepositoryError) { try await core.close() }
}
