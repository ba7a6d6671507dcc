// Backend/ holds the seam between a store and what keeps its bytes, and the one backend that keeps them in memory.
// Invariant: a backend knows records as addressed bytes, never as values. Called by StoreCore, on the store's executor only.

public import Foundation

/// The storage of a store's bytes: a JSON file, a SQLite database, memory, or your own.
///
/// A store is opened on a backend, and from then on the backend is the store's:
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// ```
///
/// A conformer needs only the public API of this module. `LarderTesting` has the conformance suite for it, with one test for each rule
/// that can be seen from outside; see <doc:WritingABackend>.
///
/// ## Order of calls
///
/// A store calls its backend synchronously, one call at a time, from an executor that may block. First comes `open`, which reads. Then
/// `recover` follows, once the store has accepted what was read (never for `.readOnly`), or `abandon`, if it has not. `close` comes last.
/// Three exceptions run beside other calls: the parts that ``beginCheckpoint()`` and ``continueCheckpoint()`` hand out,
/// ``readCopy(at:_:)``, and ``endWaiting()``.
///
/// After `close`, after `abandon`, and after an `open` that has thrown, the backend is as if it had just been made: it may be opened
/// again, and every other call but `verify`, `close`, `abandon`, `readCopy` and `readAll` throws `.closed`. An `open` of a backend that
/// is open throws `.alreadyOpen`.
///
/// A conformer is `Sendable` so that it can be handed over. Its state can live in a `Mutex`, which is hardly ever contended: only the
/// exceptions run beside other calls.
///
/// ## Cost
///
/// `open` may read everything. `commit` should cost the batch, not the store. Properties are asked for after every commit, so they must be
/// cheap.
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
  /// The path of the main file, or a word such as "memory"; errors name it.
  var name: String { get }

  /// Reads the store and hands every record to `visit`, each address once, tombstones included; the first step of opening.
  ///
  /// Called before everything else, and again only after `close`, `abandon`, or an `open` that has thrown. Must take the locks and leave
  /// every file byte-identical: what recovery has to write waits for ``recover(_:)``, because the store may still refuse what was read.
  /// Must guarantee that only the absence of all its files announces a new store; that damage, foreign and newer files are refused; that
  /// what a finished `commit` made durable is there; and that a record whose checksum differs is reported as `.corrupted`, never skipped.
  /// - Returns: What is there, and what recovery would change.
  /// - Throws: `.corrupted`, `.newerSchema`, `.notOurStore`, `.dataMissing`, `.protectedDataUnavailable`, `.locked`, `.alreadyOpen`,
  ///   `.inputOutput`, `.full`, or `.unsupported` for options that it cannot serve.
  func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Writes what opening has to write, once the store has accepted what ``open(_:_:)`` read; the second step of opening.
  ///
  /// Creates a new store, cuts a torn tail and keeps it aside, rewrites or folds a journal that a crash has left, removes temporary files.
  /// Not called for a store that is open `.readOnly`. What this throws leaves nothing lost; the store is then abandoned.
  /// - Parameter report: What `open` returned.
  /// - Returns: The report with what recovery did.
  /// - Throws: `.inputOutput`, `.full`, `.protectedDataUnavailable`, `.outcomeUnknown`, or `.dataMissing` when the files went away.
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport

  /// Makes the batch durable, all of it or none.
  ///
  /// A batch has at most 64 MiB in 65,536 records, unless a single write is larger.
  ///
  /// When this returns, the records survive what the batch's durability says, and every earlier batch does too if it says `.durable`.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` when nothing of the batch is kept and the backend can go on;
  ///   `.outcomeUnknown` when a sync failed, after which every call but `verify` and `close` throws `.poisoned`; `.tooLarge`,
  ///   `.unsupported` or `.encodingFailed` for a batch it cannot keep.
  func commit(_ batch: WriteBatch) throws(RepositoryError)

  /// Commits a batch of deletions on a disk that is full, and gives back to the system what they free.
  ///
  /// Called in the place of ``commit(_:)`` with a batch that only deletes, once a commit of a store opened `.exclusive` has thrown
  /// `.full`. May rewrite what is left of the store, and promises the same: all of the batch or none, durably, also when it is cut short.
  /// By default an ordinary commit.
  /// - Throws: as ``commit(_:)``; `.full` when there is not even the little space that this takes.
  func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError)

  /// Begins a commit of a store that is open `.shared`: keeps other processes from committing, and returns their commits since a revision.
  ///
  /// Called before every `commit` of such a store, and only of such a store. The writes are staged against what is returned, so no other
  /// process may commit between. What follows on the same backend is `commit`, or `cancelCommit` when there is nothing to write; both let
  /// the others go on, also when they fail. May wait, at most ``StoreOptions/lockTimeout``.
  /// - Parameters:
  ///   - revision: The newest commit that the store knows.
  ///   - durability: What the batch that follows must survive at most.
  /// - Returns: What others committed after the revision; `nil` when they committed nothing.
  /// - Throws: `.locked` when others do not let go in time; otherwise as `commit`, with nothing begun.
  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits?

  /// Gives up a commit that was begun: nothing was written, and others may commit.
  func cancelCommit()

  /// Returns what others committed since a revision, as of one moment; `nil` when they committed nothing.
  ///
  /// Called at intervals for a store that is open `.shared` or `.readOnly`, so it must be cheap when there is nothing new. Every store also
  /// calls it after a ``resume()`` that has returned `true`.
  /// - Throws: `.inputOutput`, `.corrupted`, `.dataMissing`, `.locked`, `.closed` or `.poisoned`; the store keeps what it has.
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits?

  /// Whether others may commit to the store while it is open here; if not, ``foreignCommits(after:)`` is not called at intervals.
  ///
  /// Unless a backend says otherwise, it is so.
  var hasOtherWriters: Bool { get }

  /// Makes every earlier buffered commit survive power loss; does nothing in a store opened `.readOnly`.
  /// - Throws: `.outcomeUnknown` or `.poisoned`, as `commit` does.
  func flush() throws(RepositoryError)

  /// Whether a checkpoint would pay now, because the journal has outgrown the data, or tombstones their limit; asked after commits. Must be
  /// cheap.
  var wantsCheckpoint: Bool { get }

  /// Whether a checkpoint is worth what it rewrites, asked when writing has paused; where it is not, the journal stays. Must be cheap.
  var isCheckpointWorthwhile: Bool { get }

  /// Folds the journal into the main file. Whenever it fails or is cut short, nothing is lost.
  /// - Throws: `.full` or `.inputOutput` when the store goes on as before; `.corrupted` when the old file is damaged; `.poisoned`.
  func checkpoint() throws(RepositoryError)

  /// Begins a checkpoint that goes on beside commits, and hands out its long part.
  ///
  /// The store runs that on a thread of its own, goes on committing meanwhile, and calls ``continueCheckpoint()`` when it has ended. Every
  /// other call may come in between; `checkpoint`, `close` and `abandon` give up what was begun. By default the checkpoint is over when
  /// this returns.
  /// - Returns: The long part; `nil` when the checkpoint is over.
  /// - Throws: as `checkpoint`.
  func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)?

  /// Goes on with a checkpoint whose long part has ended.
  /// - Returns: The next long part; `nil` when the checkpoint is over or was given up.
  /// - Throws: as `checkpoint`; the checkpoint is given up then.
  func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)?

  /// Ends a wait for other processes: the call that waits throws `.locked`, and so does every later one until ``suspend()``.
  ///
  /// Called beside other calls, from any thread, before `suspend`. By default it does nothing.
  func endWaiting()

  /// Gives up every lock and transaction for a while, and leaves to other processes a store that holds everything committed.
  ///
  /// What follows is ``resume()``, `close` or `abandon`. Must be quick: the system is about to stop the process. The second call does
  /// nothing, but that waits are allowed again. By default everything is made durable and the backend is closed.
  /// - Throws: `.outcomeUnknown` when a sync failed, or what else went wrong; the locks are given up all the same.
  func suspend() throws(RepositoryError)

  /// Takes the locks again that ``suspend()`` has given up, unless others have changed the files.
  ///
  /// Commits of others since then must be told by ``foreignCommits(after:)``, which the store calls next, or must lead to `false`.
  /// - Returns: `false` when the store must be read anew, as by default: the backend is closed then, and ``open(_:_:)`` follows.
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing` when another file has taken the place of the store's, or what else was in the way;
  ///   the backend stays suspended, and may be asked again.
  func resume() throws(RepositoryError) -> Bool

  /// Reads everything back from storage and compares every checksum, changing nothing.
  func verify() -> VerifyReport

  /// Writes a complete copy of the store to a new file, durably, which the same kind of backend can open.
  /// - Throws: `.alreadyExists` when there is a file at the URL; `.unsupported` with the URL's path as the error's file: this path cannot
  ///   be served, and a migration that needs the copy stops; any other `.unsupported`: no copies can be made, and migrations go on
  ///   without one; otherwise as `checkpoint`.
  func backup(to url: URL) throws(RepositoryError)

  /// Reads a copy that ``backup(to:)`` wrote, and changes nothing: hands every record to `visit`, as ``open(_:_:)`` does.
  ///
  /// Touches nothing of the store that is open, so it may be called at the same time as other calls. A store that migrates finds the copy
  /// of an earlier run with it; see ``StoreOptions/Migration/Backup``.
  /// - Throws: `.dataMissing` when there is no file at the URL, otherwise as `open` for `.readOnly`; `.unsupported` where copies cannot be
  ///   read, as by default.
  func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Reads the open store again, as of its newest commit: hands every record to `visit`, as ``open(_:_:)`` does, and changes nothing.
  ///
  /// Called between commits, to copy a store. By default the main file is read as a copy.
  /// - Throws: as ``readCopy(at:_:)``; `.unsupported` where a store cannot be read while it is open.
  func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport

  /// Ends the use of the store, and releases locks and descriptors even when it throws.
  ///
  /// A clean close leaves one file, or a journal that is not worth folding. The second call does nothing. The backend may be opened again.
  /// - Throws: what prevented a clean close; everything committed is safe in any case.
  func close() throws(RepositoryError)

  /// Ends the use of a store that was refused after it was read: leaves the files as they are.
  ///
  /// Called instead of `recover`, or after it (also after one that succeeded), and instead of `close`. Without an `abandon` of its own, a
  /// backend is closed.
  func abandon()
}
