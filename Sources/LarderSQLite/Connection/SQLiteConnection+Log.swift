internal import CSQLite
internal import Larder

/// The write-ahead log of a connection: its length, its syncs, and its checkpoints.
extension SQLiteConnection {
  /// Length of the write-ahead log in pages after the last commit.
  var logPageCount: Int { Int(logPages.pointee) }

  /// Installs a hook by which SQLite writes the length of the write-ahead log to ``logPages`` at each commit.
  ///
  /// Installing the hook turns off SQLite's automatic checkpoint, which would not report a failed sync.
  func followLogLength() {
    sqlite3_wal_hook(
      handle,
      { context, _, _, pages in
        context?.storeBytes(of: pages, as: Int32.self)
        return SQLITE_OK
      }, logPages)
  }

  /// Syncs the write-ahead log to the medium.
  func syncLog() throws(RepositoryError) {
    // SQLite's sync writes the log to the drive, perhaps only into the drive's cache. The second sync empties the drive's cache, so it must
    // come after SQLite's sync.
    try sync(SQLITE_FCNTL_JOURNAL_POINTER)
    try syncOwnLog()
  }

  /// Opens the write-ahead log through a second descriptor, which belongs to this module, for ``syncOwnLog()``.
  ///
  /// Closing the second descriptor of the log drops no lock of SQLite, because SQLite's POSIX locks are on the database and on the `-shm`
  /// file. SQLite opens the write-ahead log itself without a lock (`UNIXFILE_NOLOCK` in os_unix.c).
  func openOwnLog(_ fileSystem: any FileSystem) throws(RepositoryError) {
    guard let file = try fileSystem.open(path + "-wal", writable: false) else {
      throw RepositoryError(.dataMissing, "the log was removed while the store was opened: open the store again", file: path + "-wal")
    }
    ownLog = file
  }

  /// Moves the write-ahead log's synced bytes from the drive's cache to the medium, on systems where SQLite's sync may end in that cache.
  ///
  /// `F_FULLFSYNC` of one file empties the drive's whole cache. On systems where SQLite's sync reaches the medium, `syncOwnLog()` does
  /// nothing.
  /// - Throws: `.outcomeUnknown` if the sync fails.
  func syncOwnLog() throws(RepositoryError) {
    guard let file = ownLog else { return }
    do throws(RepositoryError) { try file.sync() } catch {
      throw RepositoryError(.outcomeUnknown, "the log could not be synced", file: path, underlying: error)
    }
  }

  /// Syncs the database to the medium through SQLite's descriptor.
  ///
  /// The database is not synced through a second descriptor, because closing such a descriptor drops the POSIX locks of all connections of
  /// this process.
  func syncDatabase() throws(RepositoryError) { try sync(SQLITE_FCNTL_FILE_POINTER) }

  private func sync(_ pointer: Int32) throws(RepositoryError) {
    // On Darwin `SQLITE_SYNC_FULL` requests `F_FULLFSYNC`, which `SQLITE_SYNC_NORMAL` does not.
    #if canImport(Darwin)
      let flags = SQLITE_SYNC_FULL
    #else
      let flags = SQLITE_SYNC_NORMAL
    #endif
    let result = larder_sqlite3_sync(handle, pointer, flags)
    if result != SQLITE_OK { throw error(result, while: .syncing) }
  }

  /// The way in which a checkpoint treats the write-ahead log after it has copied the log into the database.
  enum Checkpoint {
    /// Does not wait for readers, and leaves the pages in the write-ahead log that open read transactions still need.
    case passing
    /// Waits for readers, and writes a mark of emptiness over the write-ahead log's header, so that the log keeps its allocated space.
    ///
    /// The commit after a `marking` checkpoint shortens the log to 1,000 pages. A commit that overwrites old frames takes half the time of
    /// a commit that appends, because the sync after an append also writes the file's metadata (Docs/Profiles.md).
    case marking
    /// Waits for readers, and truncates the write-ahead log to zero bytes.
    case truncating
  }

  /// Number of pages in the write-ahead log after which a commit runs a checkpoint, and to which SQLite shortens a log that begins anew.
  static let checkpointPages = 1_000

  /// Runs a checkpoint, which copies the write-ahead log into the database ("folds" it).
  ///
  /// - Returns: False if a reader kept a `passing` checkpoint from copying all of the log.
  @discardableResult func checkpoint(_ checkpoint: Checkpoint) throws(RepositoryError) -> Bool {
    // The noted length of the log becomes 0 even if the checkpoint fails, because the next commit may still begin the log anew. Once all
    // pages are copied, the next commit begins the log anew, even if a reader kept the checkpoint from ending. A commit that finds the
    // noted length 0 writes the row of `larder_store`, which the first commit of each log must hold.
    logPages.pointee = 0
    var (length, copied): (Int32, Int32) = (0, 0)
    let result =
      switch checkpoint {
      case .passing: sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, &length, &copied)
      case .marking: SQLiteLogInspection.emptyMark.withUnsafeBytes { larder_sqlite3_checkpoint_marking(handle, $0.baseAddress) }
      case .truncating: sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
      }
    if result != SQLITE_OK { throw error(result, while: .writing) }
    return copied == length
  }

  /// Estimates the length of a write-ahead log that existed before this connection, until the next commit sets the exact length.
  func noteLogLength(bytes: Int) { logPages.pointee = Int32(clamping: bytes / 4_096) }

  /// Sets the length of the write-ahead log to 0, because the next commit may be the first of a new log.
  func forgetLogLength() { logPages.pointee = 0 }

  /// Turns off the checkpoint that SQLite runs when a connection is closed, so that the write-ahead log stays as it is.
  func keepLogOnClose() {
    if handle != nil { larder_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil) }
  }
}
