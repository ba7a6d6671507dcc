// Backend/ holds the protocol between a store and its storage, and the backend that keeps a store in memory.
// Invariant: a backend handles records as addressed bytes, never as Swift values.
// Called by StoreCore, on the store's executor only.

public import Foundation

/// The storage of a store's bytes: a JSON file, a SQLite database, memory, or your own.
///
/// Open a store on a backend. The backend then belongs to that store:
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// ```
///
/// To write your own, implement this protocol with the public API of this module. Eight members have no default: ``name``, ``open(_:_:)``,
/// ``commit(_:)``, ``flush()``, ``checkpoint()``, ``verify()``, ``backup(to:)`` and ``close()``. See <doc:WritingABackend> for the code of
/// a whole backend. `LarderTesting` has a conformance suite with one test for each rule that can be checked from outside:
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
/// Create a backend on any thread, and let only the store call its methods. A method may block its thread while it reads or writes storage,
/// because the store keeps these calls off the cooperative pool. The store reads the properties and calls ``endWaiting()`` on any thread,
/// and they must return at once.
///
/// If your storage can be opened twice, take a lock in `open` and throw `.alreadyOpen` or `.locked`. Throw `.unsupported` from an `open`
/// for `.shared` access, unless you implement the members for sharing with other processes.
///
/// ## Order of calls
///
/// A store calls its backend synchronously, one call at a time, from an executor that may block. The store's first call to its backend is
/// `open`, which must not write. If the store accepts the records that `open` has passed on, the store calls `recover`, unless it is opened
/// `.readOnly`. If the store refuses the records, it calls `abandon` instead of `recover`. The store's last call to its backend is `close`
/// or `abandon`, for example after it has refused the records. Three kinds of work may run while another call runs: the closures that
/// ``beginCheckpoint()`` and ``continueCheckpoint()`` return, ``readCopy(at:_:)``, and ``endWaiting()``. The store also reads the
/// properties while other calls run.
///
/// After `close`, after `abandon`, and after an `open` that has thrown, behave like a new backend: the store may open it again. While the
/// backend is closed, throw `.closed` from every call but `open`, `verify`, `close`, `abandon`, `readCopy` and `readAll`. While the backend
/// is open, throw `.alreadyOpen` from `open`.
///
/// A backend is `Sendable` because the store moves it to its executor. Keep the backend's state in a `Mutex`. The lock is hardly ever
/// contended, since the store makes nearly all of its calls one at a time.
///
/// ## Cost
///
/// `open` may read the whole store. The cost of `commit` should grow with the batch and not with the store. Return the properties quickly,
/// because the store reads them after every commit.
///
/// ## When to use another type
///
/// - Use ``JSONFileBackend`` for a file that every JSON tool reads, and `SQLiteBackend` of `LarderSQLite` for several processes.
/// - Use ``InMemoryBackend`` for a store without files, in tests and previews.
/// - Implement ``FileSystem``, and pass it to ``JSONFileBackend/init(file:fileSystem:)``, to change only how files are read and written.
///
/// ## Avoid
///
/// - Do not call a backend that a store has open. The store makes its calls one at a time, in the order of the section "Order of calls".
/// - Do not report a new store because its storage cannot be read. Report a new store only if none of its files exists.
/// - Do not sync again after a failed sync. A second sync may succeed although the bytes of the first are lost.
/// - Do not return from `commit` before the bytes are as durable as ``WriteBatch/durability`` demands.
/// - Do not compare keys as strings. `String` treats the composed and the decomposed "é" as equal, and ``RecordKey`` compares bytes.
/// - Do not wrap a backend without forwarding every member. For a member that is left out, this protocol's default would run in place of
///   the wrapped backend's implementation.
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
  /// This call is the first step of opening. The store calls `open` before every other member. The store calls `open` again only after
  /// `close`, `abandon`, an `open` that has thrown, or a `resume` that has returned `false`. In `open`, take the locks and leave every file
  /// byte-identical. Leave the writes that recovery needs to ``recover(_:)``, because the store may still refuse the records.
  /// - Report a new store only if none of its files exists.
  /// - Refuse damaged, foreign and newer files.
  /// - Pass every record that a finished `commit` has made durable to `visit`.
  /// - Throw `.corrupted` for a record whose checksum differs, and never skip such a record.
  ///
  /// - Returns: A report of the findings, and of the changes that recovery would make.
  /// - Throws: `.corrupted`, `.newerSchema`, `.notOurStore`, `.dataMissing`, `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`,
  ///   `.inputOutput`, `.full`, or `.unsupported` for options that it cannot serve.
  func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Makes the writes that opening needs, after the store has accepted the records that ``open(_:_:)`` read.
  ///
  /// This call is the second step of opening. In `recover`, create a new store, or cut a torn tail (an unfinished write at the end of a
  /// file) and keep its bytes in another file. Rewrite or fold a journal that a crash has left, and remove temporary files. The store does
  /// not call `recover` when it is opened `.readOnly`. If `recover` throws, no record may be lost, and the store then calls `abandon`.
  /// - Parameter report: The result of `open`.
  /// - Returns: The report of `open`, completed with the work of recovery.
  /// - Throws: `.inputOutput`, `.full`, `.protectedDataUnavailable`, `.outcomeUnknown`, or `.dataMissing` if files of the store were
  ///   removed since `open`.
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport

  /// Commits all records of the batch, or none.
  ///
  /// A batch has at most 64 MiB in 65,536 records, unless a single write is larger.
  ///
  /// Return only when the records would still be stored after each kind of failure that the batch's ``WriteBatch/durability`` names. The
  /// commit of a batch with `.durable` must also make every earlier batch durable.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` if nothing of the batch is kept and the backend can go on.
  ///   `.outcomeUnknown` if a sync failed. After a failed sync, throw `.poisoned` from every call but `verify` and `close`. `.tooLarge`,
  ///   `.unsupported` or `.encodingFailed` for a batch that you cannot keep.
  func commit(_ batch: WriteBatch) throws(RepositoryError)

  /// Commits deletions on a full disk, and returns the space of the deleted records to the system.
  ///
  /// The store calls this member instead of ``commit(_:)`` for a batch that holds only deletions, once a commit of a store opened
  /// `.exclusive` has thrown `.full`. To free the space of the deleted records, you may rewrite the records that remain. Keep the promise
  /// of `commit` even if a crash interrupts the call: all of the batch is durable, or none of it. The default calls `commit`.
  /// - Throws: as ``commit(_:)``. `.full` if the disk has not even the little space that a deletion takes.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError)

  /// Begins a commit of a store that is open `.shared`, and returns the commits of other processes since a revision.
  ///
  /// The store calls this member before every `commit` of a store opened `.shared`, and only in such a store. The store stages its writes
  /// on top of the returned commits. Keep other processes from committing until the store's next call, which is `commit`, or `cancelCommit`
  /// if there is nothing to write. In `commit` and in `cancelCommit`, let other processes commit again, even if the call fails. You may
  /// wait for other processes, at most for ``StoreOptions/lockTimeout``.
  /// - Parameters:
  ///   - revision: The newest commit that the store has.
  ///   - durability: The strongest durability that the batch may have.
  /// - Returns: The commits of other processes after the revision, or `nil` if there are none.
  /// - Throws: `.locked` if other processes hold the lock for longer than the timeout. Otherwise as `commit`. If this call throws, no
  ///   commit has begun.
  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits?

  /// Gives up a commit that ``beginCommit(after:_:)`` began, so that other processes may commit again.
  ///
  /// The store calls this member if it has nothing to write after all, so the backend has received no batch for this commit.
  func cancelCommit()

  /// Returns the commits of other processes since a revision, as of one moment, or `nil` if there are none.
  ///
  /// A store opened `.shared` or `.readOnly` calls this member at intervals, so it must be cheap when there are no new commits. Every store
  /// also calls this member after a ``resume()`` that has returned `true`.
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing`, `.locked`, `.closed` or `.poisoned`. After such an error, the store keeps the
  ///   contents that it has in memory.
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits?

  /// Whether other processes may commit to the store while this process has it open.
  ///
  /// If this property is `false`, the store does not call ``foreignCommits(after:)`` at intervals. The default is `true`.
  var hasOtherWriters: Bool { get }

  /// Makes every earlier `.buffered` commit durable, so that a power loss cannot undo it.
  ///
  /// In a store opened `.readOnly`, do nothing.
  /// - Throws: `.outcomeUnknown` or `.poisoned`, as `commit` does.
  func flush() throws(RepositoryError)

  /// Whether a checkpoint pays now, because the journal has outgrown the data, or the tombstones have outgrown their limit.
  ///
  /// The store reads this property after commits, so it must be cheap. The default is `false`.
  var wantsCheckpoint: Bool { get }

  /// Whether a checkpoint is worth the bytes that it rewrites, at a pause in writing.
  ///
  /// If this property is `false`, the store leaves the journal as it is. The store reads this property often, so it must be cheap. The
  /// default is `true`.
  var isCheckpointWorthwhile: Bool { get }

  /// Folds the journal into the main file.
  ///
  /// If a checkpoint fails or a crash interrupts it, no commit may be lost.
  /// - Throws: `.full` or `.inputOutput` if the store can go on as before, `.corrupted` if the old file is damaged, `.poisoned`.
  func checkpoint() throws(RepositoryError)

  /// Begins a checkpoint that runs beside commits, and returns its long part as a closure.
  ///
  /// The store runs the closure on another thread and goes on committing. The store calls ``continueCheckpoint()`` when the closure has
  /// returned. The store may make every other call while the closure runs. In `checkpoint`, `close` and `abandon`, give up a checkpoint
  /// that `beginCheckpoint` has begun. The default makes the whole checkpoint before it returns.
  /// - Returns: The long part of the checkpoint, or `nil` if the checkpoint is complete.
  /// - Throws: as `checkpoint`.
  func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)?

  /// Continues a checkpoint after the closure with its long part has returned.
  ///
  /// - Returns: The next long part, or `nil` if the checkpoint is complete or was given up.
  /// - Throws: as `checkpoint`. If this call throws, the checkpoint is given up.
  func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)?

  /// Ends a wait for other processes, so that a suspending app does not wait for a lock.
  ///
  /// A call that is waiting for another process must throw `.locked` once the store calls `endWaiting`. Until ``suspend()``, every later
  /// call that would have to wait must throw `.locked`, too. The store calls `endWaiting` before `suspend`, from any thread and beside
  /// other calls. The default does nothing.
  func endWaiting()

  /// Releases every lock and transaction for a while, and leaves the files complete for other processes.
  ///
  /// The store's next call to the backend is ``resume()``, `close` or `abandon`. Return quickly, because the system is about to stop the
  /// process. If the backend is already suspended, `suspend` only allows the waits again that ``endWaiting()`` has forbidden. The default
  /// makes every commit durable and closes the backend.
  /// - Throws: `.outcomeUnknown` if a sync failed, or any other error that occurred. Release the locks even if you throw.
  func suspend() throws(RepositoryError)

  /// Takes the locks again that ``suspend()`` has released, unless other processes have changed the files.
  ///
  /// If other processes have committed since the suspension, either return their commits from ``foreignCommits(after:)``, which the store
  /// calls next, or return `false` here.
  /// - Returns: `false` if the store must read all records again. Close the backend before you return `false`, because the store's next
  ///   call is ``open(_:_:)``. The default returns `false`.
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing` if another file has taken the place of the store's, or any other error that
  ///   prevents resuming. After an error the backend stays suspended, and the store may call `resume` again.
  func resume() throws(RepositoryError) -> Bool

  /// Reads everything back from storage and compares every checksum, without changing anything.
  func verify() -> VerifyReport

  /// Writes a complete copy of the store to a new file, durably, which a backend of the same kind can open.
  ///
  /// - Throws: `.alreadyExists` if there is a file at the URL. `.unsupported` with the URL's path as the error's file if you cannot write
  ///   to this path. A migration that needs the copy then stops. `.unsupported` without this path if you cannot make copies at all. A
  ///   migration then goes on without a copy. Otherwise as `checkpoint`.
  func backup(to url: URL) throws(RepositoryError)

  /// Reads a copy that ``backup(to:)`` wrote, and passes every record to `visit`, as ``open(_:_:)`` does.
  ///
  /// Do not write to any file. Do not use the state of the store that is open, because this call may run beside other calls. A store that
  /// migrates records calls this member to find the copy that an earlier run made. See ``StoreOptions/Migration/Backup``. The default
  /// throws `.unsupported`.
  /// - Throws: `.dataMissing` if there is no file at the URL, otherwise as `open` for `.readOnly`. `.unsupported` if you cannot read
  ///   copies.
  func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Reads the open store again as of its newest commit, and passes every record to `visit`, as ``open(_:_:)`` does.
  ///
  /// Do not write to any file. A store calls this member between commits, for example to copy itself to another backend. The default reads
  /// the main file with ``readCopy(at:_:)``.
  /// - Throws: as ``readCopy(at:_:)``. `.unsupported` if a store cannot be read while it is open.
  func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Closes the store, and releases locks and descriptors even when it throws.
  ///
  /// After a clean close, leave only the main file, or the main file and a journal that is not worth folding. A second call of `close` does
  /// nothing. After `close`, the store may open the backend again.
  /// - Throws: The error that prevented a clean close. Even if `close` throws, no committed record may be lost.
  func close() throws(RepositoryError)

  /// Closes a store that was refused after its records were read, and leaves its files as they are.
  ///
  /// The store calls `abandon` instead of `close`. The store may call `abandon` instead of `recover`, or after a `recover` that has failed
  /// or succeeded. The default calls `close`.
  func abandon()
}
