// LarderSQLite/ keeps a store in one SQLite database that other programs can read.
// Invariant: a batch is one transaction, and every row carries the checksum of its record. LarderSQLite also uses package API of Larder: it
// implements `PackingBackend` and builds `RecordPack`, so that opening is fast. A backend outside this package can use only
// `StorageBackend`.
// Called by Store, through the protocol StorageBackend. The layout of the file: Docs/Larder.docc/Formats/SQLiteFormat.md.

public import Foundation
public import Larder
internal import Synchronization

/// A storage backend that keeps a store in one SQLite database, in tables that other programs can read.
///
/// Use this backend when other programs should read the records with SQL, or when several processes write the same store. A checkpoint of
/// this backend writes only the changed pages, where a checkpoint of `JSONFileBackend` writes the whole document. Pass the backend to
/// `Store.open` or to a repository, which call its methods. You do not need to call the methods of the backend yourself.
///
/// ```swift
/// let file = URL.documentsDirectory.appending(path: "spots.sqlite")
/// let spots = try await LocalRepository<Spot>(sqliteFile: file, schema: .init("spots"))    // one repository, or
/// let store = try await Store.open(SQLiteBackend(file: file))                              // a store with several
/// ```
///
/// Each collection is a table with the columns `id, revision, version, crc, value`. The column `value` holds the record's JSON. Any SQLite
/// tool can read the table, even while the store is open. Do not write to a store's table with other tools: a changed row no longer matches
/// its checksum, and the next opening throws `.corrupted`.
///
/// ## Files
///
/// While the store is open, three files are beside the database: its write-ahead log (`-wal`), the log's index (`-shm`) and a lock file
/// (`-lock`). After a clean close only the database remains. The database and these three files have mode 0600. The path of the database
/// may lead through linked directories. The database file itself must not be a link. The write-ahead log holds acknowledged commits, so
/// never move or delete `-wal` without its database.
///
/// ## Durability
///
/// A durable commit syncs the write-ahead log once (`synchronous=FULL`). A buffered commit does not sync the write-ahead log. The sync of
/// Apple's own build of SQLite is reported to be only a write barrier, which makes a commit ordered and not durable. Therefore a durable
/// commit on Darwin also calls `F_FULLFSYNC` on the write-ahead log.
///
/// ## Limits
///
/// The names of collections must differ in more than the case of their letters, and must not start with `sqlite_` or `larder_`. A commit to
/// a collection whose name breaks one of these rules throws `.unsupported`. A value has at most 1,000,000,000 bytes, the limit of common
/// builds of SQLite. A commit of a longer value throws `.tooLarge`.
///
/// ## Several processes
///
/// Open with `StoreOptions.Access.readOnly` to read without a lock while other processes write. Writes to a store opened `.readOnly` throw
/// `.unsupported`. If several processes write to a store, open it with `.shared` in each of them. Each commit to a store opened `.shared`
/// runs under SQLite's write lock. Each table of a store opened `.shared` has an index by revision, which makes it cheap to find the
/// commits of other processes.
///
/// ## Cost
///
/// Opening a store reads every row. A commit costs the rows that it writes, their path in the table's B-tree, and one sync if it is
/// durable. When the write-ahead log has 1,000 pages, the commit also runs a checkpoint, which copies the log into the database.
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
public final class SQLiteBackend: PackingBackend, PagingBackend {
  /// Path of the database file.
  public let name: String
  let store: Mutex<SQLiteStore>
  /// Deadline and end flag of the connection's lock waits.
  ///
  /// `endWaiting()` sets the end flag without locking the backend's mutex, because the waiting call holds that mutex.
  let wait = SQLiteWait()

  /// Creates a backend for a file.
  ///
  /// The initializer does not access the disk. ``open(_:_:)`` is the first method that does.
  public convenience init(file: URL) {
    self.init(file: file, fileSystem: POSIXFileSystem())
  }

  init(file: URL, fileSystem: any FileSystem = POSIXFileSystem(), disk: SQLiteDisk = .system) {
    name = file.standardizedFileURL.path(percentEncoded: false)
    store = Mutex(SQLiteStore(file, in: fileSystem, on: disk, wait: wait))
  }

  // MARK: Opening

  /// Reads the database and its write-ahead log without changing either, and passes every record and tombstone to `visit`.
  ///
  /// Compares every row's checksum, the order of the keys, and a digest of all rows. If the store was not closed before, `open` also runs
  /// SQLite's `quick_check`, and compares the contents of the write-ahead log with the part that SQLite recovers from it. The returned
  /// report names a torn last write. Damage before a later durable commit throws `.corrupted`. A file of zero bytes throws `.corrupted`
  /// too, and so does a write-ahead log of another copy of the store. See also `StorageBackend.open(_:_:)`.
  /// - Throws: the errors of `StorageBackend.open(_:_:)`. `.dataMissing` if the database is missing beside its log or journal, and for any
  ///   missing database when only reading. `.unsupported` for a name of more than 243 bytes, for anything but a plain file, and for a file
  ///   with several names (hard links). `.notOurStore` for a rollback journal beside the file, which SQLite would roll back into the
  ///   database. `.locked` when another process has the file open by any name (Linux).
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try open(options, limits: nil) { $0.forEach(visit) }
  }

  // Larder calls `openPacked` instead of `open` if a backend has it, because packs of records need no `StoredRecord` for each row.
  package func openPacked(_ options: StoreOptions, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> OpenReport {
    try open(options, limits: options.limits, visit)
  }

  private func open(
    _ options: StoreOptions, limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void
  ) throws(RepositoryError) -> OpenReport {
    try store.withLock { store throws(RepositoryError) in try store.beginOpening(options, limits) }
    do {
      // `visit` is the caller's code and runs outside the mutex. If `visit` ran inside the mutex and called the backend, `visit` would
      // deadlock.
      while let records = try store.withLock({ store throws(RepositoryError) in try store.nextRecords() }) {
        for record in records { visit(record) }
      }
      return try store.withLock { store throws(RepositoryError) in try store.finishOpening() }
    } catch {
      store.withLock { $0.abandonOpening() }
      throw error
    }
  }

  /// Opens the store without reading its records, and passes every tombstone to `visit`.
  ///
  /// If the table `larder_collections` has the counts of the newest commit, the cost does not depend on the number of records. Otherwise
  /// every record is read and checked once, and ``recover(_:)`` writes the table. That is so for a store that was last written with another
  /// `Residency`, also by another process that shares it. The counts, the checksums of the tombstones, and the write-ahead log of an
  /// earlier run are checked. A record is checked when it is read.
  /// - Throws: the errors of ``open(_:_:)``. `.unsupported` for the access `.readOnly`. `.locked` if another process commits to a shared
  ///   store for longer than `StoreOptions.lockTimeout`.
  public func openPaged(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> PagedOpening {
    guard options.access != .readOnly else { throw SQLiteStore.pagesForWriters(name) }
    try store.withLock { store throws(RepositoryError) in try store.beginOpening(options, nil, isPaged: true) }
    do {
      let (collections, tombstones) = try store.withLock { store throws(RepositoryError) in try store.summarize() }
      // `visit` is called outside the mutex, as in `open`.
      for tombstone in tombstones { visit(tombstone) }
      let report = try store.withLock { store throws(RepositoryError) in try store.finishOpening() }
      return PagedOpening(report: report, collections: collections)
    } catch {
      store.withLock { $0.abandonOpening() }
      throw error
    }
  }

  /// Returns the records as of the newest commit, which a pool of two connections with open read transactions reads.
  ///
  /// The write-ahead log grows while the base of an older commit is in use. When the log has 4,000 pages (16 MB) and is as large as the
  /// database, the next commit supersedes the older bases. A base that was read within the last second is spared until the log is four
  /// times as long. On a disk with less than 1 GiB of free space, 1,000 pages (4 MB) are the limit, and no base is spared. The ninth base
  /// supersedes the first one, and ``close()`` supersedes all.
  ///
  /// In a shared store, the first base is of the commit of ``openPaged(_:_:)``. ``cancelCommit()`` copies a long log, and does not while
  /// another process keeps a base of an older commit.
  /// - Throws: `.unsupported` for a store that is open `.readOnly`. In a shared store without a begun commit, the errors of
  ///   ``beginCommit(after:_:)``. `.inputOutput`, `.dataMissing`, `.closed`, `.poisoned`.
  public func keepBase() throws(RepositoryError) -> any StoredBase {
    try store.withLock { store throws(RepositoryError) in try store.keepBase() }
  }

  /// True if a base is in use and the write-ahead log has grown to 1,000 pages, or by 1,000 pages since the newest base was made.
  ///
  /// Also true if the newest base was lost, and in a shared store from time to time while a long log does not grow.
  public var wantsNewerBase: Bool { store.withLock { $0.wantsNewerBase } }

  /// False while another process holds the write lock of a shared store.
  public var canKeepBase: Bool { store.withLock { $0.canKeepBase } }

  /// Size of the database and its write-ahead log, or `nil` if it cannot be read.
  public var valueSizeBound: ByteCount? { store.withLock { $0.valueSizeBound } }

  // MARK: Recovery and closing

  /// Creates a new store, or copies the write-ahead log of an earlier run into the database and sets a torn end of the log aside.
  ///
  /// On a full disk an existing store stays open for reading. While the recovery is due, each commit tries it again, and throws `.full`
  /// until there is space. See also `StorageBackend.recover(_:)`.
  /// - Throws: `.full` for a new store, `.unsupported` for a file system without shared memory, `.locked` when another program changed the
  ///   store since it was read, `.inputOutput`, `.outcomeUnknown`, `.protectedDataUnavailable` and `.dataMissing`.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try store.withLock { store throws(RepositoryError) in try store.recover(report) }
  }

  /// Copies the write-ahead log into the database and closes the database.
  ///
  /// A shared store leaves the log to other processes that have the store open. `close()` releases the lock even when it throws. A second
  /// call of `close()` does nothing.
  /// - Throws: `.full`, `.inputOutput` or `.outcomeUnknown` when the log could not be copied into the database. The next opening of the
  ///   store then copies the log.
  public func close() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.close() }
  }

  /// Closes a store that was refused after it was opened.
  ///
  /// Before ``recover(_:)`` the write-ahead log stays as the opening found it.
  public func abandon() {
    store.withLock { $0.abandon() }
  }

  // MARK: Writing

  /// Writes the batch in one transaction.
  ///
  /// Unless the store is shared, a commit of values leaves 256 KiB plus one 500th of the file's size free on the disk, which deleting all
  /// records of the store needs. If the values fit in free pages of the file, a quarter of that space is enough. Before a commit refuses
  /// values for lack of disk space, it returns the space of the log and of free pages to the disk.
  /// - Throws: `.full`, `.inputOutput`, `.locked` when another program holds the database or has committed to it since it was opened,
  ///   `.dataMissing` when the file, its log or the log's index was removed or replaced, `.tooLarge`, `.unsupported` or `.corrupted`. After
  ///   each of these errors nothing of the batch is stored. `.outcomeUnknown` when COMMIT met an I/O error, and `.poisoned` after an error
  ///   `.outcomeUnknown`.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.write(batch) }
  }

  /// Writes a batch of deletions in the disk space that ``commit(_:)`` keeps free.
  ///
  /// Writes no tombstones if they would exceed `limits.tombstones` or do not fit on the disk. Shrinks the database file to the remaining
  /// records, if the disk has room for the shrinking. See also `StorageBackend.commitOnFullDisk(_:)`.
  /// - Throws: the errors of ``commit(_:)``. `.full` when another program has taken the disk space that was kept free.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.writeOnFullDisk(batch) }
  }

  /// Syncs the write-ahead log if it holds a buffered commit.
  ///
  /// - Throws: `.outcomeUnknown` when the sync failed, `.poisoned` after an earlier failed sync or rollback, `.dataMissing` when the log
  ///   was removed, `.closed` when the store is not open.
  public func flush() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.flush() }
  }

  /// True if the tombstones outnumber twice `limits.tombstones` by more than a thousand.
  ///
  /// The length of the write-ahead log does not make this property true, because a commit itself runs a checkpoint when the log has 1,000
  /// pages.
  public var wantsCheckpoint: Bool { store.withLock { $0.wantsCheckpoint } }

  /// Copies the write-ahead log into the database, empties the log, and deletes tombstones over the limit.
  ///
  /// In a store that is not shared, the emptied log file keeps its allocated space until the store is closed. The next commit shortens a
  /// log file of more than 4 MB to 4 MB. If less than 1 GiB of the disk is free, the log is truncated.
  /// - Throws: `.full`, `.inputOutput`, `.corrupted`, `.outcomeUnknown` when a sync failed, `.poisoned`.
  public func checkpoint() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.checkpoint() }
  }

  // MARK: Sharing

  /// Takes SQLite's write lock, and reads the commits that other processes made after a revision.
  ///
  /// `beginCommit(after:_:)` takes some ten microseconds, plus the time to read the changed records. See also
  /// `StorageBackend.beginCommit(after:_:)`.
  /// - Throws: `.locked` when other processes hold the lock for longer than `StoreOptions.lockTimeout`, `.dataMissing`, `.corrupted`,
  ///   `.inputOutput`, `.poisoned`.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try store.withLock { store throws(RepositoryError) in try store.beginCommit(after: revision, durability) }
  }

  /// Rolls the begun transaction back, which releases SQLite's write lock.
  public func cancelCommit() {
    store.withLock { $0.cancelCommit() }
  }

  /// Reads the commits that other processes made after a revision, or returns `nil` when there is none.
  ///
  /// First reads SQLite's `PRAGMA data_version`, or in a read-only store the state of the files. If `data_version` or the files show no
  /// change, the method returns `nil` without reading any rows.
  /// - Throws: `.corrupted`, `.inputOutput`, `.dataMissing`, `.locked`, `.poisoned`, `.closed`.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try store.withLock { store throws(RepositoryError) in try store.foreignCommits(after: revision) }
  }

  // MARK: Suspending

  /// Ends a wait for the write lock of a shared store.
  ///
  /// See `StorageBackend.endWaiting()`.
  public func endWaiting() { wait.isEnded.store(true, ordering: .relaxed) }

  /// Makes all commits durable, closes the connection, and releases every lock.
  ///
  /// A write-ahead log of at most 250 pages is copied into the database, unless another process has the store open. After the log was
  /// copied, the next process finds the store as after `close()`. A log of more than 250 pages stays beside the database, as after a crash,
  /// because copying it takes too long for a suspension. See also `StorageBackend.suspend()`.
  /// - Throws: the errors of ``close()``, and `.poisoned`.
  public func suspend() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.suspend() }
  }

  /// Takes the locks again after ``suspend()``, and returns false when the store must be opened anew.
  ///
  /// Resuming succeeds if the database is unchanged. A store opened `.shared` also resumes when other processes have added whole commits.
  /// - Throws: `.locked`, `.alreadyOpen`, `.dataMissing` when another file has taken the database's name, `.notOurStore`, `.inputOutput`.
  public func resume() throws(RepositoryError) -> Bool {
    try store.withLock { store throws(RepositoryError) in try store.resume() }
  }

  // MARK: Checking and copying

  /// Runs SQLite's `integrity_check`, compares every checksum, and lists up to a thousand problems.
  public func verify() -> VerifyReport {
    store.withLock { $0.verify() }
  }

  /// Writes a durable, compact copy of the store by `VACUUM INTO`.
  ///
  /// The copy has mode 0600 and is a complete store of its own with the same id.
  /// - Throws: `.alreadyExists` when there is a file at the URL, `.unsupported` for a path that no store can have, `.corrupted`, `.full`,
  ///   `.inputOutput`, `.protectedDataUnavailable`, `.poisoned`, `.closed`.
  public func backup(to url: URL) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.backup(to: url) }
  }

  /// Reads a copy of a store, such as a backup, without taking a lock.
  ///
  /// - Throws: the errors of `StorageBackend.readCopy(at:_:)`.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    // The copy is read through a backend of its own, because the store of this backend may be open at the same time.
    let (fileSystem, disk) = store.withLock { ($0.fileSystem, $0.disk) }
    let reader = SQLiteBackend(file: url, fileSystem: fileSystem, disk: disk)
    let report = try reader.open(StoreOptions(access: .readOnly), visit)
    try reader.close()
    return report
  }
}

extension LocalRepository {
  /// Opens or creates a store in a SQLite database, with one repository.
  ///
  /// A missing file is created with mode 0600, and missing directories with mode 0700, so that only their owner has access. The collection
  /// is a table with the name of the schema, and other programs can read that table. Use `Store.open` with a `SQLiteBackend` when several
  /// repositories share the file.
  /// - Throws: the errors of `SQLiteBackend.open`, among them `.locked`, `.alreadyOpen`, `.corrupted`, `.notOurStore` and `.newerSchema`.
  ///   `.unsupported` for a schema that cannot be stored.
  public init(
    sqliteFile: URL, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    try await self.init(backend: SQLiteBackend(file: sqliteFile), schema: schema, options: options)
  }
}
