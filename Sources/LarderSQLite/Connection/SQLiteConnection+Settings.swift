internal import CSQLite
internal import Larder

extension SQLiteConnection {
  /// The milliseconds that a statement waits for a lock, unless it runs inside ``waiting(_:_:)``.
  ///
  /// Exclusive stores exclude each other with their lock file, so only a program without Larder can hold a lock for long.
  static let busyTimeout: Int32 = 2_000

  /// Switches off what a hostile or damaged file could use, before anything of the file is read.
  func harden() throws(RepositoryError) {
    let flags: [(Int32, Int32)] = [
      (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
      (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), (SQLITE_DBCONFIG_ENABLE_VIEW, 0), (SQLITE_DBCONFIG_DQS_DML, 0),
      // A copy repeats the statements of other programs, which may have texts in double quotation marks.
      (SQLITE_DBCONFIG_DQS_DDL, 1), (SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0),
    ]
    for (flag, value) in flags {
      let result = larder_sqlite3_db_config_flag(handle, flag, value, nil)
      if result != SQLITE_OK { throw error(result, while: .opening) }
    }
    // Virtual tables of other programs stay closed: a module could read other files, or parse hostile contents.
    sqlite3_drop_modules(handle, nil)
    // The length of a value stays SQLite's own limit: a store must show records that were saved under a wider one. So do columns, depth,
    // terms and arguments: SQLite parses the tables, views and triggers of other programs with the schema, and refuses all of it for one.
    let limits: [(Int32, Int32)] = [
      (SQLITE_LIMIT_SQL_LENGTH, 100_000), (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
      (SQLITE_LIMIT_VARIABLE_NUMBER, 16), (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    ]
    for (limit, value) in limits { sqlite3_limit(handle, limit, value) }
    sqlite3_busy_timeout(handle, Self.busyTimeout)
    let pragmas = [
      "cell_size_check = ON", "mmap_size = 0", "trusted_schema = OFF", "temp_store = MEMORY",
      // Constraints of other programs' tables are theirs to check. No table of the format has a key of another table, or a CHECK.
      "foreign_keys = OFF", "ignore_check_constraints = ON",
    ]
    for pragma in pragmas {
      try execute("PRAGMA \(pragma)", while: .opening)
    }
  }

  /// Applies the settings of a connection that writes; they are not kept in the file.
  func prepareForWriting() throws(RepositoryError) {
    // A batch stays in memory until COMMIT, so that a batch that fails leaves nothing in the log.
    var pragmas = ["cache_spill = OFF", "cache_size = -8000", "secure_delete = FAST"]
    #if canImport(Darwin)
      pragmas += ["fullfsync = ON", "checkpoint_fullfsync = ON"]
    #endif
    // SQLite shortens a log that begins anew to this many bytes. Some builds have a limit of their own, within a frame.
    let frameSize = SQLiteLogInspection.frameHeaderSize + Int(clamping: try number("PRAGMA page_size") ?? 4_096)
    pragmas.append("journal_size_limit = \(SQLiteLogInspection.headerSize + Self.checkpointPages * frameSize)")
    for pragma in pragmas { try execute("PRAGMA \(pragma)") }
  }
}
