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
    #if canImport(Darwin)
      let flags = SQLITE_SYNC_FULL
    #else
      let flags = SQLITE_SYNC_NORMAL
    #endif
    let result = larder_sqlite3_sync_log(handle, flags)
    if result != SQLITE_OK { throw error(result, while: .syncing) }
  }

  /// Copies the log into the database.
  ///
  /// - Parameter truncating: Whether to wait for readers and empty the log; otherwise what readers hold back stays in it.
  func checkpoint(truncating: Bool) throws(RepositoryError) {
    let mode = truncating ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
    let result = sqlite3_wal_checkpoint_v2(handle, "main", mode, nil, nil)
    if result != SQLITE_OK { throw error(result, while: .writing) }
    logPages.pointee = 0
  }

  /// Lets closing leave the files as they are.
  func keepLogOnClose() {
    if handle != nil { larder_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil) }
  }
}
