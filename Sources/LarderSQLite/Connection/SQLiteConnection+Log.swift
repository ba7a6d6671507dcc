internal import CSQLite
internal import Larder

/// The write-ahead log of a connection.
extension SQLiteConnection {
  /// The length of the log in pages after the last commit.
  var logPageCount: Int { Int(logPages.pointee) }

  /// Has SQLite note the length of the log at each commit.
  ///
  /// This takes the place of SQLite's automatic checkpoint, which would not report a failed sync.
  func followLogLength() {
    sqlite3_wal_hook(
      handle,
      { context, _, _, pages in
        context?.storeBytes(of: pages, as: Int32.self)
        return SQLITE_OK
      }, logPages)
  }

  /// Makes the log durable.
  func syncLog() throws(RepositoryError) {
    try sync(SQLITE_FCNTL_JOURNAL_POINTER)
    try syncOwnLog()
  }

  /// Opens the log for ``syncOwnLog()``.
  ///
  /// Closing the descriptor drops no lock of SQLite. Its POSIX locks are on the database and on the index of the log, and the log itself it
  /// opens without any (`UNIXFILE_NOLOCK` in os_unix.c).
  func openOwnLog(_ fileSystem: any FileSystem) throws(RepositoryError) {
    guard let file = try fileSystem.open(path + "-wal", writable: false) else {
      throw RepositoryError(.dataMissing, "the log was removed while the store was opened: open the store again", file: path + "-wal")
    }
    ownLog = file
  }

  /// Makes what SQLite has synced durable where its sync may end in the drive's cache: `F_FULLFSYNC` of one file empties all of that.
  /// - Throws: `.outcomeUnknown`.
  func syncOwnLog() throws(RepositoryError) {
    guard let file = ownLog else { return }
    do throws(RepositoryError) { try file.sync() } catch {
      throw RepositoryError(.outcomeUnknown, "the log could not be synced", file: path, underlying: error)
    }
  }

  /// Makes the database durable, without a descriptor of its own: closing one would drop the locks that other connections of this process
  /// have.
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

  /// The treatment of the log by a checkpoint.
  enum Checkpoint {
    /// Waits for nobody, and leaves in the log what readers hold back.
    case passing
    /// Waits for readers, and marks the log as empty: its space stays allocated. The next commit shortens it to 1,000 pages.
    ///
    /// A commit that overwrites is synced without the metadata that one which appends changes, in half the time (Docs/Profiles.md).
    case marking
    /// Waits for readers, and gives the space of the log back.
    case truncating
  }

  /// The pages of the log after which a commit folds them into the database, and which a log keeps that begins anew.
  static let checkpointPages = 1_000

  /// Copies the log into the database.
  func checkpoint(_ checkpoint: Checkpoint) throws(RepositoryError) {
    // Also when it fails: a log of which all was copied begins anew with the next commit, even if a reader kept the checkpoint from ending.
    logPages.pointee = 0
    let result =
      switch checkpoint {
      case .passing: sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, nil, nil)
      case .marking: SQLiteLogInspection.emptyMark.withUnsafeBytes { larder_sqlite3_checkpoint_marking(handle, $0.baseAddress) }
      case .truncating: sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
      }
    if result != SQLITE_OK { throw error(result, while: .writing) }
  }

  /// Notes the length of a log that was there before the connection, until the next commit tells it.
  func noteLogLength(bytes: Int) { logPages.pointee = Int32(clamping: bytes / 4_096) }

  /// Notes that the next commit may begin a log.
  func forgetLogLength() { logPages.pointee = 0 }

  /// Lets closing leave the files as they are.
  func keepLogOnClose() {
    if handle != nil { larder_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil) }
  }
}
