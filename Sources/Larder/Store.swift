public import Foundation

/// An open store with many repositories, one backend, and transactions across the repositories.
///
/// ```swift
/// // Several types in one JSON file
/// let store = try await Store.open(JSONFileBackend(file: url))
/// let spots = try await store.repository(RepositorySchema<Spot>("spots"))
/// let visits = try await store.repository(RepositorySchema<Visit>("visits"))
///
/// // A write to both of them in one commit
/// try await store.transaction { transaction in
///   try transaction.save(spot, in: spots)
///   try transaction.save(visit, in: visits)
/// }
/// ```
///
/// Open a store once, and pass its repositories to your code. Use them as any other ``LocalRepository``. All of them share the store's
/// file, its journal and its commits.
///
/// ## Threads and lifetime
///
/// Call a store from every thread, actor and task. Reads return from memory and never wait. Writes of all its repositories are committed by
/// one executor, and writes that arrive together share a sync.
///
/// Opening costs one pass over the file, and each repository costs nothing but its unique indexes. A store stays open as long as it or one
/// of its repositories is kept, or until ``close()``.
///
/// ## When to use another type
///
/// - Use ``LocalRepository`` for a single collection. It opens a store of its own.
/// - Use ``snapshot`` to read several repositories at one commit. A transaction that only reads waits for its turn among the writes.
///
/// ## Avoid
///
/// - Do not open a file twice. A second opening for writing throws `.alreadyOpen`, unless both are `.shared`.
/// - Do not rename a collection without ``RepositorySchema/renamedFrom``. A store may have several collections, so a new name opens a new,
///   empty one.
/// - Do not keep a lock while iOS suspends your app. For a file in an app group, call ``suspend()`` and ``resume()``: <doc:InAnXcodeApp>.
/// - Do not copy the file of an open store. Use ``backup(to:)``, or ``copy(to:)`` for another kind of backend.
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
  /// Use of the store by this object, which lasts as long as the object.
  ///
  /// The last use to end also ends the migrations.
  private let use: StoreUser

  private init(_ core: StoreCore) {
    self.core = core
    use = StoreUser(core)
  }

  /// Opens the store of a backend, or creates it.
  ///
  /// Opening also recovers from a crash. Schemas follow later, with ``repository(_:)``, which may refuse a collection of a store that is
  /// open and recovered by then.
  ///
  /// - Throws: `.locked` or `.alreadyOpen` if the store is open elsewhere. `.protectedDataUnavailable` if the system refuses access.
  ///   `.unsupported` for options that the backend cannot serve. A store that is refused is left as it was, and nothing that was
  ///   acknowledged is lost if recovering fails. See <doc:Errors>.
  public static func open(_ backend: any StorageBackend, options: StoreOptions = .init()) async throws(RepositoryError) -> Store {
    // There is no schema to check yet, so recovery need not wait for one.
    Store(try await StoreCore.open(backend, options) { (_) throws(RepositoryError) in })
  }

  /// The findings of opening the store, or of the last ``resume()`` that had to read it again.
  public var openReport: OpenReport { core.openReport }

  /// Returns the repository of a collection, which shares its records with all repositories of the same name.
  ///
  /// Records under the name in ``RepositorySchema/renamedFrom`` are moved first, if there are any.
  /// - Throws: `.newerSchema` if a newer version wrote a record. `.unsupported` for a schema that cannot be stored, for records that cannot
  ///   move (both names have some, or the old one was synced), and for a schema with another type or other indexes than the first
  ///   repository of the name had since the store was opened, even if that one was dropped or refused. If records move, also the errors of
  ///   a save.
  public func repository<Item>(_ schema: RepositorySchema<Item>) async throws(RepositoryError) -> LocalRepository<Item> {
    let repository = try LocalRepository(core: core, schema: schema, ownsStore: false)
    try await repository.prepare()
    // Only now, so that the records that `prepare()` has moved here are rewritten too.
    await repository.beginMigration()
    return repository
  }

  /// Runs reads and writes on several repositories as one commit, all of them or none, with no other write between.
  ///
  /// The closure is synchronous and runs on the store's executor, where its reads include its own writes.
  /// - Returns: The value that the closure returns, once its writes are durable.
  /// - Throws: the error of the closure, and then nothing was written. Otherwise as ``LocalRepository/transaction(durability:_:)``.
  @concurrent @discardableResult
  public func transaction<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await core.transaction(durability, body).get()
  }

  /// Makes every earlier write survive power loss.
  ///
  /// Call `flush()` after `.buffered` writes. Other writes do not need it.
  ///
  /// - Throws: `.outcomeUnknown` if the sync fails, and from then on writes throw `.poisoned`. `.dataMissing` if the files are gone, and
  ///   `.locked` if the journal is another process's. See <doc:Errors>.
  public func flush() async throws(RepositoryError) { try await core.flush() }

  /// Folds the journal into the main file.
  ///
  /// You seldom need this call. A checkpoint runs by itself when the journal is large, and when the store is idle or closed if that is
  /// worth the rewriting.
  ///
  /// Cost: reads and writes the whole main file, beside other writes.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`, and then the store goes on as before. `.corrupted` if the old file
  ///   is damaged. `.unsupported` for a JSON file opened `.readOnly`. See <doc:Errors>.
  public func checkpoint() async throws(RepositoryError) { try await core.checkpointer.checkpoint(core) }

  /// Reads the commits of other processes into a store that is open `.shared` or `.readOnly`.
  ///
  /// A store also does this within ``StoreOptions/pollInterval``, and before every write.
  ///
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing` or `.locked`, and then reads go on as before. See <doc:Errors>.
  public func refresh() async throws(RepositoryError) { try await core.refresh() }

  /// Releases every lock before the system suspends the process, and keeps the store readable.
  ///
  /// iOS ends a process that is suspended while it holds a lock on a file of a shared container (`0xDEAD10CC`). Call this when the app goes
  /// to the background, and ``resume()`` when it comes back: see <doc:InAnXcodeApp>. In between, another process may use the store.
  ///
  /// Reads, snapshots, live queries and observers go on with the records in memory. A write waits for ``resume()``, at most for
  /// ``StoreOptions/suspensionTimeout``, and then throws `.suspended`. The other calls that need the files throw it at once: `checkpoint`,
  /// `backup`, `flush` and `refresh`. `verify` reports it. A checkpoint that runs beside commits is given up, and nothing is lost with it.
  ///
  /// Everything that was acknowledged is durable when this returns, buffered writes too. A second call does nothing, and neither does a
  /// call on a closed store.
  ///
  /// Cost: the writes that wait already, as far as one commit takes them, and some syncs. The call also waits for a backup or a
  /// verification that is running.
  public nonisolated(nonsending) func suspend() async { await core.suspend() }

  /// Takes the locks again, and reads the commits that other processes have made since ``suspend()``.
  ///
  /// Observers receive those commits, and then the waiting writes go on. The call does nothing if the store is not suspended.
  ///
  /// An exclusive store that another process has written may have to be read again, and ``openReport`` then has the findings. A SQLite
  /// store is always read again, and a JSON file after a checkpoint, which each close of a JSON file of up to 1 MiB makes.
  ///
  /// Cost: under a millisecond if no other process has written. Otherwise a `.shared` store, or a JSON file whose journal another process
  /// has continued, reads the new commits. A store that is read again takes about twice as long as opening it.
  /// - Throws: `.locked` or `.alreadyOpen` while another process, or another store of this one, has the file. `.dataMissing` if another
  ///   file, or an older copy, is in the place of the store. Otherwise as ``open(_:options:)``. The store stays suspended, and a later call
  ///   may succeed. `.poisoned` after a failed sync. `.closed`.
  public nonisolated(nonsending) func resume() async throws(RepositoryError) { try await core.resume() }

  /// Reads everything back from storage and compares every checksum, without changing the files.
  ///
  /// The report also has the error of a failed automatic checkpoint, and of a failed look for the commits of other processes.
  ///
  /// Cost: reads all files. Writes wait for the call, and reads do not.
  public func verify() async -> VerifyReport { await core.verify() }

  /// Writes a complete copy of the store to a new file, which the same kind of backend can open.
  ///
  /// The copy is the whole store as of one commit. Cost: reads and writes all files. Writes wait for the call, and reads do not.
  /// - Throws: `.alreadyExists` if there is a file at the URL. `.full` if there is no space. `.unsupported` for a store in memory, for a
  ///   JSON file opened `.readOnly`, and for a name that is too long. See <doc:Errors>.
  public func backup(to url: URL) async throws(RepositoryError) { try await core.backup(to: url) }

  /// Commits the queued writes and closes the store, after which calls throw `.closed`.
  ///
  /// Only the main file remains, and beside a large JSON file perhaps a journal that is not worth folding yet. A second call does nothing.
  /// - Throws: the error that prevented a clean close. Everything that was committed is safe in any case.
  public func close() async throws(RepositoryError) { try await core.close() }
}
