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
/// Open a store once, and pass its repositories to your code. The repository of a store works like any other ``LocalRepository``. All
/// repositories of a store share its file, its journal and its commits.
///
/// ## Threads and lifetime
///
/// Call a store from every thread, actor and task. Reads wait for no write. One executor commits the writes of all
/// repositories of a store, and writes that arrive together share one sync to the disk.
///
/// Opening a store costs one pass over its file, and each repository costs only the building of its unique indexes. A store stays open
/// until ``close()``, or until your code has released the store and all its repositories.
///
/// ## When to use another type
///
/// - Use ``LocalRepository`` for a single collection. A ``LocalRepository`` that you open by itself has a store of its own.
/// - Use ``snapshot`` to read several repositories at one commit. Do not use a transaction only to read, because a transaction waits for
///   the writes before it.
///
/// ## Avoid
///
/// - Do not open a file twice. A second opening for writing throws `.alreadyOpen`, unless both are `.shared`.
/// - Do not rename a collection without ``RepositorySchema/renamedFrom``. A store may have several collections, so a new name opens a new,
///   empty collection.
/// - Do not keep a lock on a file while iOS suspends your app. For a file in an app group, call ``suspend()`` and ``resume()``:
///   <doc:InAnXcodeApp>.
/// - Do not copy the file of an open store yourself. Use ``backup(to:)``, or ``copy(to:)`` for another kind of backend.
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
  /// Counts this `Store` object as a user of the store, as long as the object exists.
  ///
  /// When the last user of a store is freed, the background migrations of the store are cancelled.
  private let use: StoreUser

  private init(_ core: StoreCore) {
    self.core = core
    use = StoreUser(core)
  }

  /// Opens the store of a backend, or creates it.
  ///
  /// Opening a store also recovers it after a crash. A schema is passed later, to ``repository(_:)``. If ``repository(_:)`` refuses a
  /// collection, the store stays open.
  ///
  /// - Throws: `.locked` or `.alreadyOpen` if the store is open elsewhere. `.protectedDataUnavailable` if the system refuses access.
  ///   `.unsupported` for options that the backend cannot serve. A store that is refused before recovery is left as it was. If recovery
  ///   fails, no acknowledged write is lost. See <doc:Errors>.
  public static func open(_ backend: any StorageBackend, options: StoreOptions = .init()) async throws(RepositoryError) -> Store {
    // The closure that checks schemas before recovery is empty, because a store is opened before any repository brings a schema.
    Store(try await StoreCore.open(backend, options) { (_) throws(RepositoryError) in })
  }

  /// The findings of opening the store, or of the last ``resume()`` that had to read it again.
  public var openReport: OpenReport { core.openReport }

  /// Returns the repository of a collection, which shares its records with all repositories of the same name.
  ///
  /// If the collection named by ``RepositorySchema/renamedFrom`` has records, they are first moved to this collection.
  /// - Throws: `.newerSchema` if a newer version wrote a record. `.unsupported` for a schema that cannot be stored, for records that cannot
  ///   move (both collections have records, or the old collection was synced), and for a schema with another type or other indexes than the
  ///   first repository of the name had since the store was opened, even if that first repository was dropped or refused. If records move,
  ///   also the errors of a save.
  public func repository<Item>(_ schema: RepositorySchema<Item>) async throws(RepositoryError) -> LocalRepository<Item> {
    let repository = try LocalRepository(core: core, schema: schema, ownsStore: false)
    try await repository.prepare()
    // The migration begins only after `prepare()`, so that records which `prepare()` has moved to this collection are rewritten too.
    await repository.beginMigration()
    return repository
  }

  /// Runs reads and writes on several repositories as one commit, so that all writes are stored or none, with no other write in between.
  ///
  /// The closure is synchronous and runs on the store's executor. The reads of the closure include its own writes.
  /// - Returns: The value that the closure returns, once its writes are durable.
  /// - Throws: the error of the closure, and nothing was written in that case. The other errors are those of
  ///   ``LocalRepository/transaction(durability:_:)``.
  @concurrent @discardableResult
  public func transaction<R: Sendable>(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Transaction) throws -> R
  ) async throws -> R {
    try await core.transaction(durability, body).get()
  }

  /// Makes every earlier write durable, so that no power cut can undo it.
  ///
  /// Call `flush()` after `.buffered` or `.ordered` writes that a power cut must not undo. `.durable` writes, the default, do not need
  /// `flush()`.
  ///
  /// - Throws: `.outcomeUnknown` if the sync fails, and from then on writes throw `.poisoned`. `.dataMissing` if the files are gone, and
  ///   `.locked` if the journal belongs to another process. See <doc:Errors>.
  public func flush() async throws(RepositoryError) { try await core.flush() }

  /// Folds the journal into the main file: copies the journal's changes to the main file and empties the journal.
  ///
  /// You seldom need to call `checkpoint()`. A checkpoint runs by itself when the journal is large. A checkpoint also runs when the store
  /// is idle or closed, if the main file is small or at most twice as large as the journal, or if the oldest change in the journal is a day
  /// old.
  ///
  /// Cost: reads and writes the whole main file, while other writes go on.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`, after which the store goes on as before. `.corrupted` if the old
  ///   main file is damaged. `.unsupported` for a JSON file opened `.readOnly`. See <doc:Errors>.
  public func checkpoint() async throws(RepositoryError) { try await core.checkpointer.checkpoint(core) }

  /// Reads the commits of other processes into a store that is open `.shared` or `.readOnly`.
  ///
  /// Even without this call, a store reads the commits of other processes within ``StoreOptions/pollInterval``, and before every write.
  ///
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing` or `.locked`, after which reads go on as before. See <doc:Errors>.
  public func refresh() async throws(RepositoryError) { try await core.refresh() }

  /// Releases every lock before the system suspends the process, and keeps the store readable.
  ///
  /// iOS ends a process that is suspended while it holds a lock on a file of a shared container (`0xDEAD10CC`). Call `suspend()` when the
  /// app goes to the background, and ``resume()`` when it comes back: see <doc:InAnXcodeApp>. Between ``suspend()`` and ``resume()``,
  /// another process may use the store.
  ///
  /// Reads, snapshots, live queries and observers go on with the records in memory. With ``Residency/onDisk(cache:)``, a read of a record
  /// that is not in the cache throws `.suspended` until ``resume()`` has returned.
  ///
  /// A write waits for ``resume()``, and throws `.suspended` if it has waited for ``StoreOptions/suspensionTimeout``. Other calls that need
  /// the files (`checkpoint`, `backup`, `flush` and `refresh`) throw `.suspended` at once, and `verify` reports that error. A checkpoint
  /// that is running in the background is given up, without a loss of data.
  ///
  /// Every acknowledged write is durable when `suspend()` returns, including `.buffered` writes. A call of `suspend()` on a store that is
  /// already suspended or closed does nothing.
  ///
  /// Cost: one commit with as many of the waiting writes as fit into it, and some syncs. `suspend()` also waits for the end of a running
  /// backup or verification.
  public nonisolated(nonsending) func suspend() async { await core.suspend() }

  /// Takes the store's file locks again, and reads the commits that other processes have made since ``suspend()``.
  ///
  /// Observers receive the commits of other processes, and then the waiting writes go on. `resume()` does nothing if the store is not
  /// suspended.
  ///
  /// An exclusive store that another process has written may have to be read again, and then ``openReport`` has the findings of the new
  /// reading. After writes of another process, an exclusive SQLite store is always read again, and a JSON file is read again if the other
  /// process has made a checkpoint. Each close of a JSON file of up to 1 MiB makes a checkpoint.
  ///
  /// With ``Residency/onDisk(cache:)``, the records before the writes of another process can no longer be read. `resume()` then reads every
  /// record up to three times, also in a `.shared` store, and a change set that tells of those writes has no ``ChangeSet/Change/old``
  /// values. If the store has forgotten deletions of that time (``StoreOptions/Limits-swift.struct/tombstones``), `resume()` throws
  /// `.superseded`. Close the store then, and open it again.
  ///
  /// Cost: under a millisecond if no other process has written. After writes of another process, a `.shared` store reads only the new
  /// commits. An exclusive JSON store reads only the new commits if the other process has appended to the same journal. Reading a whole
  /// store again takes about twice as long as opening it.
  /// - Throws: `.locked` or `.alreadyOpen` while another process, or another `Store` in this process, has the file open. `.dataMissing` if
  ///   another file, or an older copy, is in the place of the store. The other errors are those of ``open(_:options:)``. After one of these
  ///   errors of `resume()` the store stays suspended, and a later call of `resume()` may succeed. `.poisoned` after a failed sync.
  ///   `.closed` after ``close()``.
  public nonisolated(nonsending) func resume() async throws(RepositoryError) { try await core.resume() }

  /// Reads all records back from storage and compares every checksum, without changing the files.
  ///
  /// The report of `verify()` also has the error of a failed automatic checkpoint, and of a failed attempt to read the commits of other
  /// processes.
  ///
  /// Cost: reads all files, while the store's writes wait and its reads go on.
  public func verify() async -> VerifyReport { await core.verify() }

  /// Writes a complete copy of the store to a new file, which the same kind of backend can open.
  ///
  /// The copy holds the whole store at one commit. Cost: reads and writes all files, while the store's writes wait and its reads go on.
  /// - Throws: `.alreadyExists` if there is a file at the URL. `.full` if the disk has no space. `.unsupported` for a store in memory, for
  ///   a JSON file opened `.readOnly`, and for a name that is too long. See <doc:Errors>.
  public func backup(to url: URL) async throws(RepositoryError) { try await core.backup(to: url) }

  /// Commits the queued writes and closes the store, after which calls throw `.closed`.
  ///
  /// After a close only the main file remains. A large JSON file may also keep its journal, until the journal is large enough for a
  /// checkpoint. A second call of `close()` does nothing.
  /// - Throws: the error that prevented a clean close. Every committed write is safe even if `close()` throws.
  public func close() async throws(RepositoryError) { try await core.close() }
}
