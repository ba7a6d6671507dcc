// Backend/ holds the protocol between a store and its storage, and the backend that keeps a store in memory.
// Invariant: a backend handles records as addressed bytes, never as Swift values. Called by StoreCore, on the store's executor only.

public import Foundation

/// The storage of a store's bytes: a JSON file, a SQLite database, memory, or your own.
///
/// Open a store on a backend. The backend then belongs to that store:
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// ```
///
/// To write your own, implement this protocol with the public API of this module. `LarderTesting` has a conformance suite with one test for
/// each rule that can be checked from outside. See <doc:WritingABackend>.
///
/// ## Order of calls
///
/// A store calls its backend synchronously, one call at a time, from an executor that may block. The first call is `open`, which reads.
/// Then the store calls `recover` if it accepts the records (never for `.readOnly`), or `abandon` if it refuses them. The last call is
/// `close`. Three exceptions run beside other calls: the closures that ``beginCheckpoint()`` and ``continueCheckpoint()`` return,
/// ``readCopy(at:_:)``, and ``endWaiting()``.
///
/// After `close`, after `abandon`, and after an `open` that has thrown, behave like a new backend. The store may open it again. Until then
/// throw `.closed` from every other call but `verify`, `close`, `abandon`, `readCopy` and `readAll`. Throw `.alreadyOpen` from an `open` of
/// a backend that is open.
///
/// A backend is `Sendable` because the store moves it to its executor. Keep your state in a `Mutex`. It is hardly ever contended, since
/// only the exceptions run beside other calls.
///
/// ## Cost
///
/// `open` may read everything. `commit` should cost as much as the batch, not as much as the store. Return the properties quickly: the
/// store reads them after every commit.
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
  /// This is the first step of opening. The store calls it before everything else, and again only after `close`, `abandon`, or an `open`
  /// that has thrown. Take the locks and leave every file byte-identical. Writes that recovery needs wait for ``recover(_:)``, because the
  /// store may still refuse the records.
  /// - Report a new store only if none of its files exists.
  /// - Refuse damaged, foreign and newer files.
  /// - Pass on everything that a finished `commit` made durable.
  /// - Throw `.corrupted` for a record whose checksum differs. Never skip it.
  ///
  /// - Returns: The findings, and the changes that recovery would make.
  /// - Throws: `.corrupted`, `.newerSchema`, `.notOurStore`, `.dataMissing`, `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`,
  ///   `.inputOutput`, `.full`, or `.unsupported` for options that it cannot serve.
  func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Makes the writes that opening needs, after the store has accepted the records that ``open(_:_:)`` read.
  ///
  /// This is the second step of opening. Create a new store, cut a torn tail and keep its bytes in another file, rewrite or fold a journal
  /// that a crash has left, and remove temporary files. Not called for a store that is open `.readOnly`. If you throw, nothing may be lost.
  /// The store then calls `abandon`.
  /// - Parameter report: The result of `open`.
  /// - Returns: The report, completed with the work of recovery.
  /// - Throws: `.inputOutput`, `.full`, `.protectedDataUnavailable`, `.outcomeUnknown`, or `.dataMissing` when the files went away.
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport

  /// Commits all records of the batch, or none.
  ///
  /// A batch has at most 64 MiB in 65,536 records, unless a single write is larger.
  ///
  /// Return only when the records survive the failures that the batch's durability names. With `.durable`, every earlier batch must survive
  /// them too.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` if nothing of the batch is kept and the backend can go on.
  ///   `.outcomeUnknown` if a sync failed. After that, throw `.poisoned` from every call but `verify` and `close`. `.tooLarge`,
  ///   `.unsupported` or `.encodingFailed` for a batch that you cannot keep.
  func commit(_ batch: WriteBatch) throws(RepositoryError)

  /// Commits deletions on a full disk, and returns the space of the deleted records to the system.
  ///
  /// The store calls this instead of ``commit(_:)`` for a batch that only deletes, once a commit of a store opened `.exclusive` has thrown
  /// `.full`. You may rewrite the rest of the store. Keep the promise of `commit`: all of the batch or none, durably, also when a crash
  /// interrupts you. The default calls `commit`.
  /// - Throws: as ``commit(_:)``. `.full` if even the little space that deleting takes is missing.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError)

  /// Begins a commit of a store that is open `.shared`, and returns the commits of other processes since a revision.
  ///
  /// The store calls this before every `commit` of a shared store, and only of such a store. It stages its writes on top of the returned
  /// commits. Keep other processes from committing until the next call, which is `commit`, or `cancelCommit` when there is nothing to
  /// write. Both let the other processes go on, also when they fail. You may wait, at most ``StoreOptions/lockTimeout``.
  /// - Parameters:
  ///   - revision: The newest commit that the store has.
  ///   - durability: The strongest durability that the batch may have.
  /// - Returns: The commits of others after the revision, or `nil` if there are none.
  /// - Throws: `.locked` if other processes hold the lock for too long. Otherwise as `commit`, with nothing begun.
  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits?

  /// Gives up a commit that ``beginCommit(after:_:)`` began. Nothing was written, and other processes may commit again.
  func cancelCommit()

  /// Returns the commits of other processes since a revision, as of one moment, or `nil` if there are none.
  ///
  /// The store calls this at intervals while it is open `.shared` or `.readOnly`, so it must be cheap when there is nothing new. Every
  /// store also calls it after a ``resume()`` that has returned `true`.
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing`, `.locked`, `.closed` or `.poisoned`. The store keeps its contents.
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits?

  /// Whether other processes may commit to the store while it is open here.
  ///
  /// If `false`, the store does not call ``foreignCommits(after:)`` at intervals. The default is `true`.
  var hasOtherWriters: Bool { get }

  /// Makes every earlier buffered commit survive power loss.
  ///
  /// Do nothing in a store opened `.readOnly`.
  /// - Throws: `.outcomeUnknown` or `.poisoned`, as `commit` does.
  func flush() throws(RepositoryError)

  /// Whether a checkpoint pays now, because the journal has outgrown the data, or the tombstones their limit.
  ///
  /// The store reads it after commits, so it must be cheap. The default is `false`.
  var wantsCheckpoint: Bool { get }

  /// Whether a checkpoint is worth the bytes that it rewrites, at a pause in writing.
  ///
  /// If `false`, the journal stays. The store reads the property often, so it must be cheap. The default is `true`.
  var isCheckpointWorthwhile: Bool { get }

  /// Folds the journal into the main file.
  ///
  /// Whenever it fails or a crash interrupts it, nothing may be lost.
  /// - Throws: `.full` or `.inputOutput` if the store goes on as before, `.corrupted` if the old file is damaged, `.poisoned`.
  func checkpoint() throws(RepositoryError)

  /// Begins a checkpoint that runs beside commits, and returns its long part as a closure.
  ///
  /// The store runs the closure on a thread of its own and goes on committing. It calls ``continueCheckpoint()`` when the closure has
  /// ended. Every other call may come in between. In `checkpoint`, `close` and `abandon`, give up the checkpoint that was begun. The
  /// default makes the whole checkpoint before it returns.
  /// - Returns: The long part, or `nil` if the checkpoint is over.
  /// - Throws: as `checkpoint`.
  func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)?

  /// Continues a checkpoint whose long part has ended.
  /// - Returns: The next long part, or `nil` if the checkpoint is over or was given up.
  /// - Throws: as `checkpoint`. The checkpoint is given up then.
  func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)?

  /// Ends a wait for other processes, so that a suspending app does not wait for a lock.
  ///
  /// Throw `.locked` from the call that waits, and from every later call that would wait, until ``suspend()``. The store calls this beside
  /// other calls, from any thread, before `suspend`. The default does nothing.
  func endWaiting()

  /// Releases every lock and transaction for a while, and leaves the files complete for other processes.
  ///
  /// The next call is ``resume()``, `close` or `abandon`. Be quick: the system is about to stop the process. A second call does nothing but
  /// allow waits again. The default makes everything durable and closes the backend.
  /// - Throws: `.outcomeUnknown` if a sync failed, or any other error that occurred. Release the locks all the same.
  func suspend() throws(RepositoryError)

  /// Takes the locks again that ``suspend()`` has released, unless others have changed the files.
  ///
  /// If others have committed since then, either return those commits from ``foreignCommits(after:)``, which the store calls next, or
  /// return `false`.
  /// - Returns: `false` if the store must be read again. The backend is closed then, and ``open(_:_:)`` follows. The default returns
  ///   `false`.
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing` if another file has taken the place of the store's, or any other error that
  ///   prevents it. The backend stays suspended, and the store may call this again.
  func resume() throws(RepositoryError) -> Bool

  /// Reads everything back from storage and compares every checksum, without changing anything.
  func verify() -> VerifyReport

  /// Writes a complete copy of the store to a new file, durably, which a backend of the same kind can open.
  /// - Throws: `.alreadyExists` if there is a file at the URL. `.unsupported` with the URL's path as the error's file if you cannot serve
  ///   this path: a migration that needs the copy stops. Any other `.unsupported` if you cannot make copies at all: migrations go on
  ///   without one. Otherwise as `checkpoint`.
  func backup(to url: URL) throws(RepositoryError)

  /// Reads a copy that ``backup(to:)`` wrote, and passes every record to `visit`, as ``open(_:_:)`` does.
  ///
  /// Change nothing. Do not touch the store that is open, because this call may run beside other calls. A store that migrates uses it to
  /// find the copy of an earlier run. See ``StoreOptions/Migration/Backup``. The default throws `.unsupported`.
  /// - Throws: `.dataMissing` if there is no file at the URL, otherwise as `open` for `.readOnly`. `.unsupported` if you cannot read
  ///   copies.
  func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Reads the open store again as of its newest commit, and passes every record to `visit`, as ``open(_:_:)`` does.
  ///
  /// Change nothing. The store calls this between commits, to copy itself. The default reads the main file with ``readCopy(at:_:)``.
  /// - Throws: as ``readCopy(at:_:)``. `.unsupported` if a store cannot be read while it is open.
  func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Closes the store, and releases locks and descriptors even when it throws.
  ///
  /// After a clean close, leave one file, or also a journal that is not worth folding. A second call does nothing. The backend may be
  /// opened again.
  /// - Throws: The error that prevented a clean close. Everything committed is safe in any case.
  func close() throws(RepositoryError)

  /// Closes a store that was refused after it was read, and leaves its files as they are.
  ///
  /// The store calls this instead of `recover`, or after it (also after one that succeeded), and instead of `close`. The default calls
  /// `close`.
  func abandon()
}
