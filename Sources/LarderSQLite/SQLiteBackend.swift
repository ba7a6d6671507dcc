// LarderSQLite/ keeps a store in one SQLite database that other programs can read.
// Invariant: it uses the public API of Larder only. A batch is one transaction, and every row carries the checksum of its record.
// Called by Store, through the StorageBackend seam. How a file is laid out: Docs/Larder.docc/Formats/SQLiteFormat.md.

public import Foundation
public import Larder
internal import Synchronization

/// Keeps a store in a SQLite database: one readable table for each collection, `id, revision, version, crc, value`.
///
/// Beside the file are, while it is open, its write-ahead log (`-wal`), the log's index (`-shm`) and a lock file (`-lock`); after a clean
/// close only the file remains. All are mode 0600. The path may go through linked directories; the file itself must not be a link.
///
/// A durable commit syncs the log once (`synchronous=FULL`); a buffered one does not. On Darwin syncs ask for `F_FULLFSYNC`, which Apple's
/// own build of SQLite may weaken to a barrier: order is certain there, survival of a power cut is the drive's promise.
///
/// Collections need names that differ in more than the case of their letters and do not start with `sqlite_` or `larder_`: `.unsupported`.
/// Values are at most 1,000,000,000 bytes, the limit of common builds of SQLite: `.tooLarge`.
///
/// `StoreOptions.Access.readOnly` reads beside writers, without the lock; writes throw `.unsupported`. With `.shared` several processes write,
/// each commit under SQLite's write lock; an index by revision, which each table then gets, tells each what the others have done.
public final class SQLiteBackend: StorageBackend {
  /// The path of the database.
  public let name: String
  private let store: Mutex<SQLiteStore>

  /// Names the file; nothing is touched before ``open(_:_:)``.
  public convenience init(file: URL) {
    self.init(file: file, fileSystem: POSIXFileSystem())
  }

  init(file: URL, fileSystem: any FileSystem) {
    name = file.standardizedFileURL.path(percentEncoded: false)
    store = Mutex(SQLiteStore(file, fileSystem))
  }

  /// Reads the database and its log, and changes neither; see `StorageBackend.open(_:_:)`.
  ///
  /// Reads every row and compares its checksum, the order of the keys, and a sum of all of them. After a run that did not close the store,
  /// it also runs SQLite's `quick_check`, and compares what the write-ahead log holds with what SQLite recovers from it: a torn last
  /// write is reported, damage before a later durable commit is `.corrupted`. A file of zero bytes is `.corrupted` too, and so is a log of
  /// another copy of the store.
  /// - Throws: as the seam says. A database whose log or journal is left without it is `.dataMissing`; so is a missing one when only reading.
  ///   `.unsupported` for a name of more than 243 bytes, for whatever is not a plain file, and for a file with several names (hard links);
  ///   `.notOurStore` for a rollback journal beside the file, which SQLite would roll into it; `.locked` when another process has the file open,
  ///   by whatever name (Linux).
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try store.withLock { store throws(RepositoryError) in try store.beginOpening(options) }
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

  /// Creates a new store; brings a log that was found into the database, durably, and keeps a torn end aside; see `StorageBackend.recover(_:)`.
  ///
  /// On a full disk a store that is there stays open for reading: each commit tries again, and throws `.full` until there is space.
  /// - Throws: `.full` for a new store; `.inputOutput`, `.outcomeUnknown`, `.protectedDataUnavailable`, `.dataMissing`, `.unsupported` for a
  ///   file system without shared memory, and `.locked` when another program changed the store since it was read.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try store.withLock { store throws(RepositoryError) in try store.recover(report) }
  }

  /// Writes the batch in one transaction.
  ///
  /// Of the disk it leaves 256 KiB free (and one 500th of the file's size), unless the store is shared: what it takes to clear a store that has
  /// filled it. Before it refuses values for that, it gives back what log and free pages hold.
  /// - Throws: `.full`, `.inputOutput`, `.locked` when a foreign program holds the database or has committed to it since it was opened,
  ///   `.dataMissing` when the file, its log or the log's index was removed or replaced, `.tooLarge`,
  ///   `.unsupported` or `.corrupted`, each with nothing of the batch kept; `.outcomeUnknown` when COMMIT met an I/O error; `.poisoned` after that.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.write(batch) }
  }

  /// Writes deletions in the space that commits of values leave free for them, without tombstones where these would be more than the limit or have no
  /// room, and makes the file as small as what is left, if that has room; see `StorageBackend.commitOnFullDisk(_:)`.
  ///
  /// - Throws: as ``commit(_:)``; `.full` when another program has taken that space too.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.writeOnFullDisk(batch) }
  }

  /// Takes SQLite's write lock, and reads what others have committed since; see `StorageBackend.beginCommit(after:_:)`.
  ///
  /// Cost: some ten microseconds, and what has changed.
  /// - Throws: `.locked` when others hold the lock for longer than `StoreOptions.lockTimeout`, `.dataMissing`, `.corrupted`, `.inputOutput`,
  ///   `.poisoned`.
  public func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try store.withLock { store throws(RepositoryError) in try store.beginCommit(after: revision, durability) }
  }

  /// Gives the write lock back.
  public func cancelCommit() {
    store.withLock { $0.cancelCommit() }
  }

  /// Looks at `PRAGMA data_version`, and reads by revision when others have committed; a read-only store looks at the commit number in the file.
  /// - Throws: `.corrupted`, `.inputOutput`, `.dataMissing`, `.locked`, `.poisoned`, `.closed`.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try store.withLock { store throws(RepositoryError) in try store.foreignCommits(after: revision) }
  }

  /// Syncs the write-ahead log if a buffered commit is in it.
  /// - Throws: `.outcomeUnknown` or `.poisoned`.
  public func flush() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.flush() }
  }

  /// Copies the write-ahead log into the database and empties it, and forgets tombstones over the limit.
  /// - Throws: `.full`, `.inputOutput`, `.corrupted`, `.outcomeUnknown` when a sync failed, `.poisoned`.
  public func checkpoint() throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.checkpoint() }
  }

  /// Runs SQLite's `integrity_check` and compares every checksum; lists up to a thousand problems.
  public func verify() -> VerifyReport {
    store.withLock { $0.verify() }
  }

  /// Writes a compact copy by `VACUUM INTO`, mode 0600, durably; it is a complete store of its own with the same id.
  /// - Throws: `.alreadyExists` when there is a file at the URL, `.full`, `.inputOutput`, `.poisoned`.
  public func backup(to url: URL) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.backup(to: url) }
  }

  /// Empties the write-ahead log into the database and closes it; a shared store leaves the log to those who still have it open.
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

  /// Runs a statement on the connection: tests bring about a full disk with it.
  func execute(_ sql: String) throws(RepositoryError) {
    try store.withLock { store throws(RepositoryError) in try store.execute(sql) }
  }
}
