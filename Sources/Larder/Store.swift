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
/// Open a store once, and pass its repositories to your code. Use a store's repository as any other ``LocalRepository``. All repositories
/// of a store share its file, its journal and its commits.
///
/// ## Threads and lifetime
///
/// Call a store from every thread, actor and task. Reads return from memory and never wait. Writes of all its repositories are committed by
/// one executor, and writes that arrive together share a sync.
///
/// Opening a store costs one pass over its file, and each repository costs only the building of its unique indexes. A store stays open as
/// long as it or one of its repositories is kept, or until ``close()``.
///
/// ## When to use another type
///
/// - Use ``LocalRepository`` for a single collection. A ``LocalRepository`` that you open by itself has a store of its own.
/// - Use ``snapshot`` to read several repositories at one commit. Do not use a transaction only to read, because it waits for the writes
///   before it.
///
/// ## Avoid
///
/// - Do not open a file twice. A second opening for writing throws `.alreadyOpen`, unless both are `.shared`.
/// - Do not rename a collection without ``RepositorySchema/renamedFrom``. A store may have several collections, so a new name opens a new,
///   empty collection.
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
  /// Counts this object as a user of the store, as long as the object exists.
  ///
  /// When the store's last user is freed, its background migrations are cancelled.
  private let use: StoreUser

  private init(_ core: StoreCore) {
    self.core = core
    use = StoreUser(core)
  }

  /// Opens the store of a backend, or creates it.
  ///
  /// Opening also recovers from a crash. Schemas are passed later, to ``repository(_:)``. If it refuses a collection, the store is already
  /// open and recovered, and stays open.
  ///
  /// - Throws: `.locked` or `.alreadyOpen` if the store is open elsewhere. `.protectedDataUnavailable` if the system refuses access.
  ///   `.unsupported` for options that the backend cannot serve. A store that is refused is left as it was, and nothing that was
  ///   acknowledged is lost if recovering fails. See <doc:Errors>.
  public static func open(_ backend: any StorageBackend, options: StoreOptions = .init()) async throws(RepositoryError) -> Store {
    // The check of the schema is empty, because a store is opened before any repository brings a schema. Recovery follows at once.
    Store(try await StoreCore.open(backend, options) { (_) throws(RepositoryError) in })
  }

  /// The findings of opening the store, or of the last ``resume()`` that had to read it again.
  public var openReport: OpenReport { core.openReport }

  /// Returns the repository of a collection, which shares its records with all repositories of the same name.
  ///
  /// Records under the name in ``RepositorySchema/renamedFrom`` are moved first, if there are any.
  /// - Throws: `.newerSchema` if a newer version wrote a record. `.unsupported` for a schema that cannot be stored, for records that cannot
  ///   move (both names have some, or the old one was synced), and for a schema with another type or other indexes than the first
  ///   repository of the name had since the store was opened, even if that first repository was dropped or refused. If records move, also
  ///   the errors of a save.
  public func repository<Item>(_ schema: RepositorySchema<Item>) async throws(RepositoryError) -> LocalRepository<Item> {
    let repository = try LocalRepository(core: core, schema: schema, ownsStore: false)
    try await repository.prepare()
    // The migration begins only after `prepare()`, so that records which `prepare()` has moved to this collection are rewritten too.
    await repository.beginMigration()
    return repository
  }

  /// Runs reads and writes on several repositories as one commit, all of them or none, with no other write between.
  ///
  /// The closure is synchronous and runs on the store's executor, where its reads include its own writes.
  /// - Returns: The value that the closure returns, once its writes are durable.
  /// - Throws: the error of the closure, and then nothing was written. The other errors are those of
  ///   ``LocalRepository/transaction(durability:_:)``.
  @concurrent @discardableResult
  public func transaction<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await core.transaction(durability, body).get()
  }

  /// Makes every earlier write durable, so that no power cut can undo it.
  ///
  /// Call `flush()` after `.buffered` or `.ordered` writes that a power cut must not undo. `.durable` writes, the default, do not need it.
  ///
  /// - Throws: `.outcomeUnknown` if the sync fails, and from then on writes throw `.poisoned`. `.dataMissing` if the files are gone, and
  ///   `.locked` if the journal belongs to another process. See <doc:Errors>.
  public func flush() async throws(RepositoryError) { try await core.flush() }

  /// Folds the journal into the main file.
  ///
  /// You seldom need to call `checkpoint()`. A checkpoint runs by itself when the journal is large. It also runs when the store is idle or
  /// closed, if the main file is small or at most twice as large as the journal, or if the oldest change in the journal is a day old.
  ///
  /// Cost: reads and writes the whole main file, beside other writes.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`, after which the store goes on as before. `.corrupted` if the old
  ///   file is damaged. `.unsupported` for a JSON file opened `.readOnly`. See <doc:Errors>.
  public func checkpoint() async throws(RepositoryError) { try await core.checkpointer.checkpoint(core) }

  /// Reads the commits of other processes into a store that is open `.shared` or `.readOnly`.
  ///
  /// A store also reads those commits within ``StoreOptions/pollInterval``, and before every write.
  ///
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing` or `.locked`, after which reads go on as before. See <doc:Errors>.
  public func refresh() async throws(RepositoryError) { try await core.refresh() }

  /// Releases every lock before the system suspends the process, and keeps the store readable.
  ///
  /// iOS ends a process that is suspended while it holds a lock on a file of a shared container (`0xDEAD10CC`). Call `suspend()` when the
  /// app goes to the background, and ``resume()`` when it comes back: see <doc:InAnXcodeApp>. Between ``suspend()`` and ``resume()``,
  /// another process may use the store.
  ///
  /// Reads, snapshots, live queries and observers go on with the records in memory. A write waits for ``resume()``, and throws `.suspended`
  /// if it has waited for ``StoreOptions/suspensionTimeout``. The other calls that need the files (`checkpoint`, `backup`, `flush` and
  /// `refresh`) throw `.suspended` at once, and `verify` reports that error. A checkpoint that runs beside commits is given up, without a
  /// loss of data.
  ///
  /// Every acknowledged write is durable when `suspend()` returns, including `.buffered` writes. A call on a store that is already
  /// suspended or closed does nothing.
  ///
  /// Cost: one commit with as many of the waiting writes as fit into it, and some syncs. The call also waits for a backup or a verification
  /// that is running.
  public nonisolated(nonsending) func suspend() async { await core.suspend() }

  /// Takes the locks again, and reads the commits that other processes have made since ``suspend()``.
  ///
  /// Observers receive those commits, and then the waiting writes go on. The call does nothing if the store is not suspended.
  ///
  /// An exclusive store that another process has written may have to be read again, after which ``openReport`` has the findings of this
  /// reading. After writes of another process, an exclusive SQLite store is always read again, and a JSON file is read again if the other
  /// process has made a checkpoint. Each close of a JSON file of up to 1 MiB makes a checkpoint.
  ///
  /// Cost: under a millisecond if no other process has written. After writes of another process, a `.shared` store reads only the new
  /// commits. A JSON store reads only the new commits if the other process has appended to the same journal. Reading a store again takes
  /// about twice as long as opening it.
  /// - Throws: `.locked` or `.alreadyOpen` while another process, or another `Store` in this process, has the file open. `.dataMissing` if
  ///   another file, or an older copy, is in the place of the store. The other errors are those of ``open(_:options:)``. After any of these
  ///   errors the store stays suspended, and a later call of `resume()` may succeed. `.poisoned` after a failed sync. `.closed`.
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
  /// After a close only the main file remains, and beside a large JSON file perhaps a journal that is not worth folding yet. A second call
  /// of `close()` does nothing.
  /// - Throws: the error that prevented a clean close. Everything that was committed is safe even if `close()` throws.
  public func close() async throws(RepositoryError) { try await core.close() }
}
