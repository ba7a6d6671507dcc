// Backend/ holds the protocol between a store and its storage, and the backend that keeps a store in memory.
// Invariant: a backend handles records as addressed bytes, never as Swift values.
// Called by StoreCore, on the store's executor only.

public import Foundation

/// The storage of a store's bytes: a JSON file, a SQLite database, memory, or your own.
///
/// Pass a backend to `Store.open`, after which only the opened store may use the backend:
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// ```
///
/// To write your own backend, implement `StorageBackend` with the public API of this module. Eight members have no default implementation:
/// ``name``, ``open(_:_:)``, ``commit(_:)``, ``flush()``, ``checkpoint()``, ``verify()``, ``backup(to:)`` and ``close()``. See
/// <doc:WritingABackend> for the code of a whole backend. `LarderTesting` has a conformance suite with one test for each rule that can be
/// checked from outside:
///
/// ```swift
/// @Test(arguments: BackendRequirement.all)
/// func keepsTheRule(_ requirement: BackendRequirement) throws {
///   try requirement.check(.file(named: "store.whole") { file in WholeFileBackend(file: file) })
/// }
/// ```
///
/// ## Threads and processes
///
/// Create a backend on any thread, and let only the store call its methods. A method of a backend may block its thread while it reads or
/// writes storage, because the store does not call the backend on Swift's cooperative thread pool. The store reads the backend's properties
/// and calls ``endWaiting()`` on any thread, so the properties and ``endWaiting()`` must return at once.
///
/// If your storage can be opened twice, take a lock in `open` and throw `.alreadyOpen` or `.locked`. Throw `.unsupported` from an `open`
/// for `.shared` access, unless you implement the members for sharing with other processes.
///
/// ## Order of calls
///
/// A store calls its backend synchronously, one call at a time, from an executor that may block. The store's first call to its backend is
/// `open`, which must not write. If the store accepts the records that `open` has read, the store calls `recover`, unless the store is
/// opened `.readOnly`. If the store refuses the records, it calls `abandon` instead of `recover`. The store's last call to its backend is
/// `close` or `abandon`, for example after the store has refused the records. Three kinds of work may run while the store makes another
/// call to its backend: the closures that ``beginCheckpoint()`` and ``continueCheckpoint()`` return, ``readCopy(at:_:)``, and
/// ``endWaiting()``. The store also reads the backend's properties while other calls to the backend run.
///
/// After `close`, after `abandon`, and after an `open` that has thrown, a backend must behave like a new one, because the store may open it
/// again. While the backend is closed, throw `.closed` from every call but `open`, `verify`, `close`, `abandon`, `readCopy` and `readAll`.
/// While the backend is open, throw `.alreadyOpen` from `open`.
///
/// A backend is `Sendable` because the store calls it on an executor of its own. Keep the backend's state in a `Mutex`. The lock of the
/// `Mutex` is hardly ever contended, since the store makes nearly all calls to its backend one at a time.
///
/// ## Cost
///
/// `open` may read the whole store. The cost of `commit` should grow with the batch and not with the store. The backend's properties must
/// return quickly, because the store reads them after every commit.
///
/// ## When to use another type
///
/// - Use ``JSONFileBackend`` for a file that every JSON tool reads, and `SQLiteBackend` of `LarderSQLite` for several processes.
/// - Use ``InMemoryBackend`` for a store without files, in tests and previews.
/// - Implement ``FileSystem``, and pass it to ``JSONFileBackend/init(file:fileSystem:)``, to change only how files are read and written.
///
/// ## Avoid
///
/// - Do not call a backend that a store has open. The store calls its backend one call at a time, in the order that the section "Order of
///   calls" gives.
/// - If the storage cannot be read, throw an error and do not report a new store. Report a new store only if none of its files exists.
/// - Do not sync again after a failed sync. A second sync may succeed although the bytes of the first sync are lost.
/// - Do not return from `commit` before the bytes are as durable as ``WriteBatch/durability`` demands.
/// - Do not compare keys as strings. `String` treats the composed and the decomposed "é" as equal, and ``RecordKey`` compares bytes.
/// - Do not wrap a backend without forwarding every member. For a member that the wrapper leaves out, the default implementation of
///   `StorageBackend` would run instead of the wrapped backend's implementation.
///
/// ## Topics
///
/// ### Opening
/// - ``open(_:_:)``
/// - ``recover(_:)``
/// - ``abandon()``
///
/// ### Committing
/// - ``commit(_:)``
/// - ``commitOnFullDisk(_:)``
/// - ``flush()``
///
/// ### Folding the journal
/// - ``checkpoint()``
/// - ``beginCheckpoint()``
/// - ``continueCheckpoint()``
/// - ``wantsCheckpoint``
/// - ``isCheckpointWorthwhile``
///
/// ### Sharing with other processes
/// - ``beginCommit(after:_:)``
/// - ``cancelCommit()``
/// - ``foreignCommits(after:)``
/// - ``hasOtherWriters``
///
/// ### Suspending
/// - ``endWaiting()``
/// - ``suspend()``
/// - ``resume()``
///
/// ### Checking and copying
/// - ``verify()``
/// - ``backup(to:)``
/// - ``readCopy(at:_:)``
/// - ``readAll(_:)``
///
/// ### Ending
/// - ``close()``
public protocol StorageBackend: Sendable {
  /// Path of the main file, or a word such as "memory", for error messages.
  var name: String { get }

  /// Reads the store and passes every record to `visit`, each address once, including tombstones.
  ///
  /// `open` is the first step of opening a store. The store calls `open` before every other method. The store calls `open` again only after
  /// `close`, `abandon`, an `open` that has thrown, or a `resume` that has returned `false`. In `open`, take the locks and leave every file
  /// byte-identical. Leave the writes that recovery needs to ``recover(_:)``, because the store may still refuse the records.
  /// - Report a new store only if none of its files exists.
  /// - Refuse damaged files, files of other programs, and files that a newer version has written.
  /// - Pass every record that a finished `commit` has made durable to `visit`.
  /// - Throw `.corrupted` for a record whose checksum differs, and never skip such a record.
  ///
  /// - Returns: A report of the state of the files, and of the changes that ``recover(_:)`` would make to them.
  /// - Throws: `.corrupted`, `.newerSchema`, `.notOurStore`, `.dataMissing`, `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`,
  ///   `.inputOutput`, `.full`, or `.unsupported` for options that the backend does not support.
  func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Makes the writes that opening needs, after the store has accepted the records that ``open(_:_:)`` has read.
  ///
  /// `recover` is the second step of opening a store. In `recover`, create a new store, or cut a torn tail (an unfinished write at the end
  /// of a file) and keep its bytes in another file. Rewrite a journal that a crash has left, or fold it into the main file, and remove
  /// temporary files. The store does not call `recover` when it is opened `.readOnly`. If `recover` throws, no record may be lost, and the
  /// store then calls `abandon`.
  /// - Parameter report: The result of `open`.
  /// - Returns: The report of `open`, completed with the work of recovery.
  /// - Throws: `.inputOutput`, `.full`, `.protectedDataUnavailable`, `.outcomeUnknown`, or `.dataMissing` if files of the store were
  ///   removed since `open`.
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport

  /// Commits all records of the batch, or none.
  ///
  /// A batch has at most 64 MiB in 65,536 records, unless a single write is larger.
  ///
  /// Return from `commit` only when the records of the batch would still be stored after each kind of failure that the batch's
  /// ``WriteBatch/durability`` names. The commit of a batch with `.durable` must also make every earlier batch durable.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` if nothing of the batch is kept and the backend can go on.
  ///   `.outcomeUnknown` if a sync failed. After a failed sync, throw `.poisoned` from every call but `verify` and `close`. `.tooLarge`,
  ///   `.unsupported` or `.encodingFailed` for a batch that you cannot keep.
  func commit(_ batch: WriteBatch) throws(RepositoryError)

  /// Commits deletions on a full disk, and returns the space of the deleted records to the system.
  ///
  /// The store calls `commitOnFullDisk` instead of ``commit(_:)`` for a batch that holds only deletions, once a commit of a store opened
  /// `.exclusive` has thrown `.full`. To free the space of the deleted records, you may rewrite the records that remain. `commitOnFullDisk`
  /// must keep the promise of `commit` even if a crash interrupts it: all of the batch is durable, or none of it. The default
  /// implementation calls `commit`.
  /// - Throws: The errors of ``commit(_:)``. `.full` if the disk has not even the little space that a deletion takes.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError)

  /// Begins a commit of a store that is open `.shared`, and returns the commits of other processes since a revision.
  ///
  /// The store calls `beginCommit` before every `commit` of a store opened `.shared`, and never in other stores. The store applies the
  /// returned commits before it prepares its own writes. Keep other processes from committing until the store's next call, which is
  /// `commit`, or `cancelCommit` if there is nothing to write. In `commit` and in `cancelCommit`, let other processes commit again, even if
  /// the call fails. `beginCommit` may wait for other processes, but at most for ``StoreOptions/lockTimeout``.
  /// - Parameters:
  ///   - revision: Number of the newest commit that the store has in memory.
  ///   - durability: The strongest durability that the batch of the coming ``commit(_:)`` may have.
  /// - Returns: The commits of other processes after the revision, or `nil` if there are none.
  /// - Throws: `.locked` if other processes hold the lock for longer than the timeout. Otherwise the errors of ``commit(_:)``. If
  ///   `beginCommit` throws, no commit has begun.
  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits?

  /// Gives up a commit that ``beginCommit(after:_:)`` began, so that other processes may commit again.
  ///
  /// The store calls `cancelCommit` if it has nothing to write after `beginCommit`, so the backend receives no batch for the cancelled
  /// commit.
  func cancelCommit()

  /// Returns the commits that other processes have made since a revision, read as one consistent state, or `nil` if there are none.
  ///
  /// A store opened `.shared` or `.readOnly` calls `foreignCommits` at intervals, so the call must be cheap when there are no new commits.
  /// Every store also calls `foreignCommits` after a ``resume()`` that has returned `true`.
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing`, `.locked`, `.closed` or `.poisoned`. If `foreignCommits` throws, the store
  ///   keeps the contents that it has in memory.
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits?

  /// Whether other processes may commit to the store while this process has it open.
  ///
  /// If `hasOtherWriters` is `false`, the store does not call ``foreignCommits(after:)`` at intervals. By default, `hasOtherWriters` is
  /// `true`.
  var hasOtherWriters: Bool { get }

  /// Makes every earlier `.buffered` commit durable, so that a power loss cannot undo it.
  ///
  /// In a store opened `.readOnly`, `flush` must do nothing.
  /// - Throws: `.outcomeUnknown` or `.poisoned`, as ``commit(_:)`` does.
  func flush() throws(RepositoryError)

  /// Whether the store should begin a checkpoint now, because the journal has outgrown the data or there are too many tombstones.
  ///
  /// The store reads `wantsCheckpoint` after commits, so reading it must be cheap. By default, `wantsCheckpoint` is `false`.
  var wantsCheckpoint: Bool { get }

  /// Whether a checkpoint is worth the bytes that it rewrites, at a pause in writing.
  ///
  /// If `isCheckpointWorthwhile` is `false`, the store leaves the journal as it is. The store reads `isCheckpointWorthwhile` at every pause
  /// in writing, so reading it must be cheap. By default, `isCheckpointWorthwhile` is `true`.
  var isCheckpointWorthwhile: Bool { get }

  /// Folds the journal into the main file.
  ///
  /// If a checkpoint fails or a crash interrupts it, no commit may be lost.
  /// - Throws: `.full` or `.inputOutput` if the store can go on as before, `.corrupted` if the old main file is damaged, `.poisoned`.
  func checkpoint() throws(RepositoryError)

  /// Begins a checkpoint that runs beside commits, and returns its long part as a closure.
  ///
  /// The store runs the returned closure on another thread and goes on committing. The store calls ``continueCheckpoint()`` when the
  /// closure has returned. The store may call every other method of the backend while the closure runs. In `checkpoint`, `close` and
  /// `abandon`, give up a checkpoint that `beginCheckpoint` has begun. The default implementation completes the checkpoint before it
  /// returns.
  /// - Returns: A closure with the long part of the checkpoint, or `nil` if the checkpoint is complete.
  /// - Throws: The errors of ``checkpoint()``.
  func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)?

  /// Continues a checkpoint after the closure with its long part has returned.
  ///
  /// - Returns: A closure with the next long part of the checkpoint, or `nil` if the checkpoint is complete or was given up.
  /// - Throws: The errors of ``checkpoint()``. If `continueCheckpoint` throws, the checkpoint is given up.
  func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)?

  /// Ends a wait for other processes, so that a suspending app does not wait for a lock.
  ///
  /// A call to the backend that is waiting for another process must throw `.locked` once the store calls `endWaiting`. Between `endWaiting`
  /// and ``suspend()``, every call to the backend that would have to wait must throw `.locked`, too. The store calls `endWaiting` before
  /// `suspend`, from any thread and while other calls to the backend run. The default implementation does nothing.
  func endWaiting()

  /// Releases every lock and transaction until ``resume()``, and leaves the files complete for other processes.
  ///
  /// The store's next call to the backend is ``resume()``, `close` or `abandon`. `suspend` should return quickly, because the system is
  /// about to stop the process. If the backend is already suspended, `suspend` only allows the waits again that ``endWaiting()`` has
  /// forbidden. The default implementation makes every commit durable and closes the backend.
  /// - Throws: `.outcomeUnknown` if a sync failed, or any other error that occurred. `suspend` must release the locks even if it throws.
  func suspend() throws(RepositoryError)

  /// Takes the locks again that ``suspend()`` has released, unless other processes have changed the files.
  ///
  /// If other processes have committed since the suspension, either return their commits from ``foreignCommits(after:)``, which the store
  /// calls next, or return `false` from `resume`.
  /// - Returns: `false` if the store must read all records again. Close the backend before you return `false`, because the store's next
  ///   call is ``open(_:_:)``. The default implementation of `resume` returns `false`.
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing` if another file has taken the place of the store's file, or any other error that
  ///   prevents resuming. After an error of `resume` the backend stays suspended, and the store may call `resume` again.
  func resume() throws(RepositoryError) -> Bool

  /// Reads every record back from storage and compares its checksum, without changing any file.
  func verify() -> VerifyReport

  /// Durably writes a complete copy of the store to a new file, which a backend of the same kind can open.
  ///
  /// - Throws: `.alreadyExists` if there is a file at the URL. `.unsupported` with the URL's path as the error's file if the backend cannot
  ///   write to this path. After `.unsupported` with this path, a migration that needs the copy stops. `.unsupported` without this path if
  ///   the backend cannot make copies at all. After `.unsupported` without this path, a migration goes on without a copy. Otherwise the
  ///   errors of ``checkpoint()``.
  func backup(to url: URL) throws(RepositoryError)

  /// Reads a copy that ``backup(to:)`` wrote, and passes every record to `visit`, as ``open(_:_:)`` does.
  ///
  /// `readCopy` must not write to any file, and must not use the state of the open store, because `readCopy` may run beside other calls to
  /// the backend. A store that migrates records calls `readCopy` to find the copy that an earlier migration run made. See
  /// ``StoreOptions/Migration/Backup``. The default implementation throws `.unsupported`.
  /// - Throws: `.dataMissing` if there is no file at the URL, otherwise the errors of ``open(_:_:)`` for `.readOnly` access. `.unsupported`
  ///   if the backend cannot read copies.
  func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Reads the open store again as of its newest commit, and passes every record to `visit`, as ``open(_:_:)`` does.
  ///
  /// `readAll` must not write to any file. A store calls `readAll` between commits, for example to copy itself to another backend. The
  /// default implementation reads the main file with ``readCopy(at:_:)``.
  /// - Throws: The errors of ``readCopy(at:_:)``. `.unsupported` if a store cannot be read while it is open.
  func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Closes the store, and releases locks and file descriptors even if an error is thrown.
  ///
  /// After a clean close, leave only the main file, or the main file and a journal that is not worth folding. A second call of `close` must
  /// do nothing. After `close`, the store may open the backend again.
  /// - Throws: The error that prevented a clean close. Even if `close` throws, no committed record may be lost.
  func close() throws(RepositoryError)

  /// Closes a store that was refused after its records were read, and leaves its files as they are.
  ///
  /// After a refusal, the store calls `abandon` instead of `close`. The store may call `abandon` instead of `recover`, or after a `recover`
  /// that has failed or succeeded. The default implementation calls `close`.
  func abandon()
}
