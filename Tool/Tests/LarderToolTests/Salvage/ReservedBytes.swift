import CSQLite
import Testing

/// A database that another program has rewritten with reserved bytes at the end of each page.
enum ReservedBytes {
  /// Rewrites a closed database with so many reserved bytes in each page.
  static func reserve(_ count: Int32, in path: String) throws {
    var handle: OpaquePointer?
    defer { sqlite3_close_v2(handle) }
    try #require(sqlite3_open(path, &handle) == SQLITE_OK)
    var count = count
    try #require(sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &count) == SQLITE_OK)
    // With a log, SQLite keeps the layout of the pages.
    for sql in ["PRAGMA journal_mode = DELETE", "VACUUM", "PRAGMA journal_mode = WAL"] {
      try #require(sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK)
    }
  }
}
