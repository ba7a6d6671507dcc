// LarderSQLite/ keeps a store in one SQLite database that other programs can read.
// Invariant: it uses the public API of Larder only. A batch is one transaction, and every row carries the checksum of its record.
// Called by Store, through the StorageBackend seam. How a file is laid out: Docs/Larder.docc/Formats/SQLiteFormat.md.

public import Foundation
public import Larder
internal import Synchronization

/// A backend that keeps a store in a SQLite database, in tables that other programs can read.
///
/// ```swift
/// let file = URL.documentsDirectory.appending(path: "spots.sqlite")
/// let spots = try await LocalRepository<Spot>(sqliteFile: file, schema: .init("spots"))    // one repository, or
/// let store = try await Store.open(SQLiteBackend(file: file))                              // a store with several
/// ```
///
/// Each collection is a table with the columns `id, revision, version, crc, value`; the value is the record's JSON. Any SQLite tool can
/// read it, also while the store is open. Do not write to it with other tools: a changed row no longer matches its checksum, and the next
/// open is `.corrupted`.
///
/// ## Files
///
/// While the store is open, three files are beside the database: its write-ahead log (`-wal`), the log's index (`-shm`) and a lock file
/// (`-lock`). After a clean close only the database remains. All have mode 0600. The path may lead through linked directories; the file
/// itself must not be a link.
///
/// ## Durability
///
/// A durable commit syncs the log once (`synchronous=FULL`). A buffered one does not. Apple's own build of SQLite is reported to stop at a
/// barrier, which is the durability of an ordered commit. So on Darwin a durable commit also calls `F_FULLFSYNC` on the log.
///
/// ## Limits
///
/// Collections need names that differ in more than the case of their letters and do not start with `sqlite_` or `larder_`: `.unsupported`.
/// Values have at most 1,000,000,000 bytes, the limit of common builds of SQLite: `.tooLarge`.
///
/// ## Several processes
///
/// `StoreOptions.Access.readOnly` reads without a lock while other processes write; its own writes throw `.unsupported`. With `.shared`
/// several processes write, each commit under SQLite's write lock; each table then gets an index by revision, which makes finding foreign
/// commits cheap.
///
/// ## Cost
///
/// Opening reads every row. A commit costs the rows that it writes, their path in the table's tree, and one sync if it is durable; after
/// 1,000 pages of log it also folds the log into the database.
///
/// ## Topics
///
/// ### Making a backend
/// - ``init(file:)``
/// - ``name``
///
/// ### Opening and closing
/// - ``open(_:_:)``
/// - ``recover(_:)``
/// - ``close()``
/// - ``abandon()``
///
/// ### Writing
/// - ``commit(_:)``
/// - ``commitOnFullDisk(_:)``
/// - ``flush()``
/// - ``checkpoint()``
///
/// ### Sharing the store with other processes
/// - ``beginCommit(after:_:)``
/// - ``cancelCommit()``
/// - ``foreignCommits(after:)``
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
public final class SQLiteBackend: PackingBackend {
  /// The path of the database.
  public let name: String
  let store: Mutex<SQLiteStore>
  /// The waits of the store's connection, outside the lock that a call holds while it waits.
  let wait = SQLiteWait()

  /// Names the file; touches nothing before ``open(_:_:)``.
  public convenience init(file: URL) {
    self.init(file: file, fileSystem: POSIXFileSystem())
  }

  init(file: URL, fileSystem: any FileSystem = POSIXFileSystem(), disk: SQLiteDisk = .system) {
    name = file.standardizedFileURL.path(percentEncoded: false)
    store = Mutex(SQLiteStore(file, fileSystem, disk, wait))
  }

  // MARK: Opening

  /// Reads the database and its log, and changes neither; see `StorageBackend.open(_:_:)`.
  ///
  /// Reads every row and compares its checksum, the order of the keys, and a sum of all of them. After a run that did not close the store,
  /// it also runs SQLite's `quick_check`, and compares what the write-ahead log holds with what SQLite recovers from it: a torn last
  /// write is reported, damage before a later durable commit is `.corrupted`. A file of zero bytes is `.corrupted` too, and so is a log of
  /// another copy of the store.
  /// - Throws: the errors of `StorageBackend.open(_:_:)`. `.dataMissing` for a database that is missing beside its log or journal, and for
  ///   a missing one when only reading; `.unsupported` for a name of more than 243 bytes, for anything but a plain file, and for a file
  ///   with several names (hard links); `.notOurStore` for a rollback journal beside the file, which SQLite would roll into it; `.locked`
  ///   when another process has the file open by any name (Linux).
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try open(options, limits: nil) { $0.forEach(visit) }
  }

  package func openPacked(_ options: StoreOptions, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> OpenReport {
    try open(options, limits: options.limits, visit)
  }

  private func open(
    _ options: StoreOptions, limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void
  ) throws(RepositoryError) -> OpenReport {
    try store.withLock { store throws(RepositoryError) in try store.beginOpening(options, limits) }
    do {
      while let records = try store.withLock({ store throws(RepositoryError) in try store.nextRecords() }) {
        for record in records { visit(record) }
      }
      return try store.withLock { store throws(RepositoryError) in try store.finishOpening() }
    } catch {
      store.withLock { $0.abandonOpening() }
      throw error
    }
  }

  /// Creates a new store, or folds a log that was found into the database and sets a torn end aside; see `StorageBackend.recover(_:)`.
  ///
  /// On a full disk an existing store stays open for reading: each commit tries again, and throws `.full` until there is space.
  /// - Throws: `.full` for a new store; `.inputOutput`, `.outcomeUnknown`, `.protectedDataUnavailable`, `.dataMissing`, `.unsupported` for
  ///   a file system without shared memory, and `.locked` when another program changed the store since it was read.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try store.withLock { store throws(RepositoryError) in try store.recover(report) }
  }

  /// Folds the write-ahead log into the database and closes it; a shared store leaves the log to other processes that have it open.
  ///
  /// Releases the lock even when it throws; the second call does nothing.
  /// - Throws: `.full`, `.inputOutput` or `.outcomeUnknown` when the log could not be folded: the next open does it.
  public func close() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.close() }
  }

  /// Closes a store that was refused after it was opened: the log that was found stays as it is.
  public func abandon() {
    store.withLock { $0.abandon() }
  }

  // MARK: Writing

  /// Writes the batch in one transaction.
  ///
  /// Unless the store is shared, it leaves 256 KiB of the disk free (and one 500th of the file's size): the space that clearing a full
  /// store takes. Before it refuses values for that, it gives back what log and free pages hold.
  /// - Throws: `.full`, `.inputOutput`, `.locked` when another program holds the database or has committed to it since it was opened,
  ///   `.dataMissing` when the file, its log or the log's index was removed or replaced, `.tooLarge`, `.unsupported` or `.corrupted`, each
  ///   with nothing of the batch kept; `.outcomeUnknown` when COMMIT met an I/O error; `.poisoned` after that.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.write(batch) }
  }

  /// Writes deletions in the space that commits of values leave free; see `StorageBackend.commitOnFullDisk(_:)`.
  ///
  /// Writes no tombstones where these would be more than the limit or have no room, and shrinks the file to what is left, if that has room.
  /// - Throws: as ``commit(_:)``; `.full` when another program has taken that space too.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.writeOnFullDisk(batch) }
  }

  /// Syncs the write-ahead log if a buffered commit is in it.
  /// - Throws: `.outcomeUnknown` or `.poisoned`.
  public func flush() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.flush() }
  }

  /// Whether there are more tombstones than twice the limit, and a thousand; the log is folded as it grows.
  public var wantsCheckpoint: Bool { store.withLock { $0.wantsCheckpoint } }

  /// Folds the write-ahead log into the database and empties it, and forgets tombstones over the limit.
  ///
  /// The log of a store that is not shared keeps its space until the store is closed, from the next commit on 4 MB at most, unless less
  /// than 1 GiB of the disk is free.
  /// - Throws: `.full`, `.inputOutput`, `.corrupted`, `.outcomeUnknown` when a sync failed, `.poisoned`.
  public func checkpoint() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.checkpoint() }
  }

  // MARK: Sharing

  /// Takes SQLite's write lock, and reads the foreign commits after a revision; see `StorageBackend.beginCommit(after:_:)`.
  ///
  /// Cost: some ten microseconds, and the changes.
  /// - Throws: `.locked` when other processes hold the lock for longer than `StoreOptions.lockTimeout`, `.dataMissing`, `.corrupted`,
  ///   `.inputOutput`, `.poisoned`.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try store.withLock { store throws(RepositoryError) in try store.beginCommit(after: revision, durability) }
  }

  /// Gives the write lock back.
  public func cancelCommit() {
    store.withLock { $0.cancelCommit() }
  }

  /// Reads the foreign commits after a revision; `nil` when there is none.
  ///
  /// Asks SQLite's `PRAGMA data_version` first, or in a read-only store the times of the files, so an answer of `nil` is cheap.
  /// - Throws: `.corrupted`, `.inputOutput`, `.dataMissing`, `.locked`, `.poisoned`, `.closed`.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try store.withLock { store throws(RepositoryError) in try store.foreignCommits(after: revision) }
  }

  // MARK: Suspending

  /// Ends a wait for the write lock of a shared store; see `StorageBackend.endWaiting()`.
  public func endWaiting() { wait.isEnded.store(true, ordering: .relaxed) }

  /// Makes everything durable, and closes the connection and every lock; see `StorageBackend.suspend()`.
  ///
  /// A log of at most 250 pages is folded into the database, unless another process has the store open, so that the next process finds a
  /// store that was closed. A longer one stays beside it, as after a crash: folding it takes too long.
  /// - Throws: as ``close()``, and `.poisoned`.
  public func suspend() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.suspend() }
  }

  /// Takes the locks again, if the database is as it was; or open `.shared`, with whole commits after it.
  ///
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing` when another file has the name, `.notOurStore`, `.inputOutput`.
  public func resume() throws(RepositoryError) -> Bool {
    try store.withLock { store throws(RepositoryError) in try store.resume() }
  }

  // MARK: Checking and copying

  /// Runs SQLite's `integrity_check` and compares every checksum; lists up to a thousand problems.
  public func verify() -> VerifyReport {
    store.withLock { $0.verify() }
  }

  /// Writes a compact copy by `VACUUM INTO`, mode 0600, durably; it is a complete store of its own with the same id.
  /// - Throws: `.alreadyExists` when there is a file at the URL, `.unsupported` for a path that cannot be served, `.corrupted`, `.full`,
  ///   `.inputOutput`, `.protectedDataUnavailable`, `.poisoned`, `.closed`.
  public func backup(to url: URL) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.backup(to: url) }
  }

  /// Reads a copy as a read-only store does, without a lock.
  /// - Throws: as `StorageBackend.readCopy(at:_:)`.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    let (fileSystem, disk) = store.withLock { ($0.fileSystem, $0.disk) }
    let reader = SQLiteBackend(file: url, fileSystem: fileSystem, disk: disk)
    let report = try reader.open(StoreOptions(access: .readOnly), visit)
    try reader.close()
    return report
  }
}
