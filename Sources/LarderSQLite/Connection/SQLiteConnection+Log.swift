internal import CSQLite
internal import Larder

/// The write-ahead log of a connection: its length, its syncs, and its checkpoints.
extension SQLiteConnection {
  /// Length of the write-ahead log in pages after the last commit.
  var logPageCount: Int { Int(logPages.pointee) }

  /// Installs a hook by which SQLite writes the length of the write-ahead log to ``logPages`` at each commit.
  ///
  /// The hook takes the place of SQLite's automatic checkpoint, which would not report a failed sync.
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
    // SQLite's own sync comes first: where it ends in the drive's cache, the second one empties that.
    try sync(SQLITE_FCNTL_JOURNAL_POINTER)
    try syncOwnLog()
  }

  /// Opens the write-ahead log through a descriptor of this module's own, for ``syncOwnLog()``.
  ///
  /// Closing the descriptor drops no lock of SQLite. Its POSIX locks are on the database and on the index of the log, and SQLite opens the
  /// log without any (`UNIXFILE_NOLOCK` in os_unix.c).
  func openOwnLog(_ fileSystem: any FileSystem) throws(RepositoryError) {
    guard let file = try fileSystem.open(path + "-wal", writable: false) else {
      throw RepositoryError(.dataMissing, "the log was removed while the store was opened: open the store again", file: path + "-wal")
    }
    ownLog = file
  }

  /// Moves the write-ahead log's synced bytes from the drive's cache to the medium, on systems where SQLite's sync may end in that cache.
  ///
  /// `F_FULLFSYNC` of one file empties the whole cache. Does nothing where SQLite's sync reaches the medium.
  /// - Throws: `.outcomeUnknown`.
  func syncOwnLog() throws(RepositoryError) {
    guard let file = ownLog else { return }
    do throws(RepositoryError) { try file.sync() } catch {
      throw RepositoryError(.outcomeUnknown, "the log could not be synced", file: path, underlying: error)
    }
  }

  /// Syncs the database to the medium through SQLite's descriptor.
  ///
  /// Closing a descriptor of this module's own would drop the POSIX locks of other connections of this process.
  func syncDatabase() throws(RepositoryError) { try sync(SQLITE_FCNTL_FILE_POINTER) }

  private func sync(_ pointer: Int32) throws(RepositoryError) {
    #if canImport(Darwin)
      let flags = SQLITE_SYNC_FULL
    #else
      let flags = SQLITE_SYNC_NORMAL
    #endif
    let result = larder_sqlite3_sync(handle, pointer, flags)
    if result != SQLITE_OK { throw error(result, while: .syncing) }
  }

  /// The treatment of the write-ahead log by a checkpoint, which copies the log into the database.
  enum Checkpoint {
    /// Waits for no reader, and leaves in the write-ahead log the pages that readers still need.
    case passing
    /// Waits for readers, and marks the write-ahead log as empty, so that its space stays allocated.
    ///
    /// The next commit shortens it to 1,000 pages. A commit that overwrites is synced without the metadata that one which appends changes,
    /// in half the time (Docs/Profiles.md).
    case marking
    /// Waits for readers, and truncates the write-ahead log.
    case truncating
  }

  /// Length of the write-ahead log in pages after which a commit runs a checkpoint, and to which SQLite shortens a log that begins anew.
  static let checkpointPages = 1_000

  /// Runs a checkpoint, which copies the write-ahead log into the database ("folds" it).
  func checkpoint(_ checkpoint: Checkpoint) throws(RepositoryError) {
    // Also when it fails: a log whose pages were all copied begins anew with the next commit, even if a reader kept the checkpoint from
    // ending.
    logPages.pointee = 0
    let result =
      switch checkpoint {
      case .passing: sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, nil, nil)
      case .marking: SQLiteLogInspection.emptyMark.withUnsafeBytes { larder_sqlite3_checkpoint_marking(handle, $0.baseAddress) }
      case .truncating: sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
      }
    if result != SQLITE_OK { throw error(result, while: .writing) }
  }

  /// Estimates the length of a write-ahead log that was there before the connection, until the next commit sets it.
  func noteLogLength(bytes: Int) { logPages.pointee = Int32(clamping: bytes / 4_096) }

  /// Sets the length of the write-ahead log to 0, because the next commit may begin a log.
  func forgetLogLength() { logPages.pointee = 0 }

  /// Makes closing leave the write-ahead log as it is, without a checkpoint.
  func keepLogOnClose() {
    if handle != nil { larder_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil) }
  }
}
