// Connection/ is the only folder of LarderSQLite that calls SQLite's C functions: connections, statements, result codes.
// Invariant: every failure is a RepositoryError that names the file. No content of a file can make SQLite do more than read and write rows.
// Called by every other folder of LarderSQLite.

internal import CSQLite
internal import Foundation
internal import Larder
internal import Synchronization

/// A connection to one SQLite database file, with its settings, its lock waits, and the state of its write-ahead log.
final class SQLiteConnection {
  enum Mode {
    /// Reads and writes the database, with SQLite's own locks.
    case readWrite
    /// Reads the database while other connections may write to it.
    case readOnly
    /// Reads the database file alone, without taking a lock or making a file, so another process must not write to it meanwhile.
    case immutable
    /// Reads the database and its write-ahead log under an exclusive lock, or fails with `.locked` if another connection has a lock.
    ///
    /// In the mode `.exclusive`, SQLite keeps the index of the write-ahead log in memory, so that no file is made or changed.
    case exclusive
    /// Reads the database and its write-ahead log without making a file, with an index of the log in this connection's memory.
    ///
    /// In the mode `.privateIndex`, the connection takes none of the locks in the `-shm` file. The caller must therefore check after the
    /// reading that no other process has written meanwhile.
    case privateIndex
  }

  let path: String
  private(set) var handle: OpaquePointer?
  /// Length of the write-ahead log in pages after the last commit, which SQLite's log hook writes.
  let logPages = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
  /// Deadline of the current wait for a lock, which SQLite's busy handler reads.
  var wait = SQLiteWait()
  /// Replacements for SQLite's file functions in the mode `.privateIndex`, or `nil` where SQLite uses its own functions.
  private var methods: UnsafeMutablePointer<sqlite3_io_methods>?
  /// Identities of the database, the write-ahead log and the log's index when the store was opened, for ``checkPresence()``.
  var openFiles: [(path: String, identity: FileIdentity)] = []
  /// A second descriptor of the write-ahead log, through which this module syncs the log, or `nil` if SQLite's sync reaches the medium.
  var ownLog = (any OpenFile)?.none
  /// State of the store's directory when all files were last found unchanged.
  ///
  /// While the directory's state stays equal, ``checkPresence()`` looks at no file.
  var checkedDirectory: SQLiteDirectoryState?

  /// Opens the database without reading it, or returns `nil` when there is no file at the path.
  init?(path: String, _ mode: Mode) throws(RepositoryError) {
    self.path = path
    logPages.initialize(to: 0)
    // NOMUTEX is set because the mutex of `SQLiteBackend` lets one caller in at a time. NOFOLLOW is set because a store refuses a symbolic
    // link as its file.
    var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_URI
    // The system grants an exclusive lock only to a descriptor that may write, so the mode `.exclusive` opens for writing too.
    flags |= mode == .readWrite || mode == .exclusive ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
    let result = sqlite3_open_v2(Self.uri(path, immutable: mode == .immutable), &handle, flags, nil)
    if result != SQLITE_OK {
      // SQLite returns the same code for a missing file and for a file that it could not open, so the existence of the file is checked
      // here.
      if result & 0xFF == SQLITE_CANTOPEN && SQLitePath.isAbsent(path) { return nil }
      throw error(result, while: .opening)
    }
    if flags & SQLITE_OPEN_READWRITE != 0 && sqlite3_db_readonly(handle, "main") == 1 {
      // SQLite opens a file for reading only if it could not open it for writing, even if the cause was a lack of file descriptors.
      let isAllowed = access(path, W_OK) == 0
      throw RepositoryError(
        isAllowed ? .inputOutput : .protectedDataUnavailable,
        isAllowed
          ? "SQLite could open the file for reading only, though its permissions allow writing: try again"
          : "expected permission to write the file, found none: change its permissions, or open it for reading only", file: path)
    }
    // Unsafe features of SQLite are switched off before the first statement, because that statement reads the schema, and a hostile file
    // may have a prepared schema.
    try harden()
    if mode == .privateIndex { try hideLogIndex() }
    if mode == .exclusive { try execute("PRAGMA locking_mode = EXCLUSIVE", while: .opening) }
    if mode == .readWrite { followLogLength() }
  }

  deinit {
    // A connection that is dropped without `close()` leaves its files as a crash does. The `deinit` of a connection runs no checkpoint,
    // because a checkpoint blocks its thread and `deinit` could not throw the checkpoint's error.
    keepLogOnClose()
    sqlite3_close_v2(handle)
    logPages.deallocate()
    methods?.deallocate()
  }

  // Replaces the functions with which SQLite would make the `-shm` file, so that reading a store makes no file.
  private func hideLogIndex() throws(RepositoryError) {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    self.methods = methods
    let result = larder_sqlite3_hide_log_index(handle, methods)
    if result != SQLITE_OK { throw error(result, while: .opening) }
    // Reading a store must leave its write-ahead log as it is, even if this connection is the last one, at whose end SQLite would run a
    // checkpoint.
    keepLogOnClose()
  }

  private static func uri(_ path: String, immutable: Bool) -> String {
    var uri = "file:"
    for byte in path.utf8 {
      // A path may hold "?", "#" or "%", which SQLite would read as syntax of the URI, so such bytes are percent-encoded.
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D...0x2F, 0x5F: uri.unicodeScalars.append(Unicode.Scalar(byte))
      default: uri += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return immutable ? uri + "?immutable=1" : uri
  }

  // MARK: Statements

  /// Runs an SQL text of this module once, without parameters.
  func execute(_ sql: String, while activity: SQLiteResult.Activity = .writing) throws(RepositoryError) {
    let statement = try prepare(sql)
    try statement.run(while: activity)
  }

  /// Prepares a statement that the caller keeps for reuse.
  func prepare(_ sql: String) throws(RepositoryError) -> SQLiteStatement {
    try SQLiteStatement(sql, on: self)
  }

  /// Returns the text in the first column of a query's first row, or `nil` when there is no row.
  func text(_ sql: String, while activity: SQLiteResult.Activity = .reading) throws(RepositoryError) -> String? {
    let statement = try prepare(sql)
    let text = try statement.step(while: activity) ? try statement.text(0) : nil
    // A statement that has returned a row and was not reset keeps its read transaction open, so the statement is reset before this function
    // returns.
    try statement.reset(while: activity)
    return text
  }

  /// Returns the integer in the first column of a query's first row, or `nil` when there is no row.
  func number(_ sql: String) throws(RepositoryError) -> Int64? { try prepare(sql).number() }

  /// Number of rows that the last INSERT, UPDATE or DELETE has changed.
  var changedRows: Int { Int(sqlite3_changes(handle)) }

  /// Whether a transaction is open.
  ///
  /// After some failures SQLite has rolled the transaction back by itself.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Returns the 100 bytes of the database file's header and the file's size, read from the file and not from SQLite's page cache.
  func header() throws(RepositoryError) -> (bytes: [UInt8], size: Int64) { try read(at: 0, count: 100) }

  /// Returns bytes of the database file, with zeros past its end, and the file's size, read below SQLite's page cache.
  func read(at offset: Int64, count: Int) throws(RepositoryError) -> (bytes: [UInt8], size: Int64) {
    var bytes = [UInt8](repeating: 0, count: count)
    var size: Int64 = 0
    let result = larder_sqlite3_read_file(handle, &bytes, Int32(count), offset, &size)
    let isShort = result == SQLITE_IOERR | 2 << 8  // _SHORT_READ
    if result != SQLITE_OK && !isShort { throw error(result, while: .opening) }
    // SQLite fills a short read with zeros. If the disk returned fewer bytes than the file has, a page would look like zeros, so a short
    // read before the end of the file throws an error.
    guard !isShort || offset + Int64(count) > size else {
      throw RepositoryError(
        .inputOutput, "expected \(count) bytes of a file of \(size), got fewer: try again, or check the disk", file: path,
        offset: UInt64(offset))
    }
    return (bytes, size)
  }

  /// Runs `body` while SQLite may attach one database, because `VACUUM` attaches its new file internally.
  func withAttachment(_ body: () throws(RepositoryError) -> Void) throws(RepositoryError) {
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 1)
    defer { sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0) }
    try body()
  }

  /// Closes the connection.
  ///
  /// All statements of the connection must be finalized before it is closed.
  func close() throws(RepositoryError) {
    let result = sqlite3_close(handle)
    if result != SQLITE_OK { throw error(result, while: .writing) }
    handle = nil
  }
}

extension SQLiteConnection {
  /// Milliseconds that a statement waits for a lock, except in ``waiting(_:_:)``, which has a timeout of its own.
  ///
  /// Exclusive stores exclude each other with their lock file, so only a program without Larder can hold SQLite's lock for long.
  static let busyTimeout: Int32 = 2_000

  /// Switches off the features of SQLite that a hostile or damaged file could use, before SQLite reads the file's schema.
  func harden() throws(RepositoryError) {
    let flags: [(Int32, Int32)] = [
      (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
      (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), (SQLITE_DBCONFIG_ENABLE_VIEW, 0), (SQLITE_DBCONFIG_DQS_DML, 0),
      // `VACUUM INTO` runs the CREATE statements of other programs' tables again, and these statements may have texts in double quotation
      // marks.
      (SQLITE_DBCONFIG_DQS_DDL, 1), (SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0),
    ]
    for (flag, value) in flags {
      let result = larder_sqlite3_db_config_flag(handle, flag, value, nil)
      if result != SQLITE_OK { throw error(result, while: .opening) }
    }
    // Virtual tables of other programs stay closed, because their modules could read other files or parse hostile contents.
    sqlite3_drop_modules(handle, nil)
    // SQLITE_LIMIT_LENGTH keeps SQLite's default, because a store must return records that were saved under a wider limit. The limits of
    // columns, expression depth, compound terms and function arguments keep their defaults too, because SQLite parses the tables, views and
    // triggers of other programs with the schema, and refuses the whole schema for one statement over a limit.
    let limits: [(Int32, Int32)] = [
      (SQLITE_LIMIT_SQL_LENGTH, 100_000), (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
      (SQLITE_LIMIT_VARIABLE_NUMBER, 16), (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    ]
    for (limit, value) in limits { sqlite3_limit(handle, limit, value) }
    sqlite3_busy_timeout(handle, Self.busyTimeout)
    // `cell_size_check` finds a damaged page when it is read. Without memory mapping, a failed read returns a code and raises no signal.
    let pragmas = [
      "cell_size_check = ON", "mmap_size = 0", "trusted_schema = OFF", "temp_store = MEMORY",
      // Constraints need no check by Larder, because other programs check those of their own tables. No table of the store's format has a
      // foreign key or a CHECK.
      "foreign_keys = OFF", "ignore_check_constraints = ON",
    ]
    for pragma in pragmas {
      try execute("PRAGMA \(pragma)", while: .opening)
    }
  }

  /// Applies the settings of a connection that writes.
  ///
  /// None of the settings that `prepareForWriting()` makes is stored in the file.
  func prepareForWriting() throws(RepositoryError) {
    // With `cache_spill = OFF` the changed pages of a transaction stay in memory until COMMIT, so that a failed transaction leaves no
    // frames in the write-ahead log.
    var pragmas = ["cache_spill = OFF", "cache_size = -8000", "secure_delete = FAST"]
    #if canImport(Darwin)
      pragmas += ["fullfsync = ON", "checkpoint_fullfsync = ON"]
    #endif
    // `journal_size_limit` is the number of bytes to which SQLite shortens a write-ahead log that begins anew. Some builds of SQLite have
    // another default for this limit, which would cut the log within a frame.
    let frameSize = SQLiteLogInspection.frameHeaderSize + Int(clamping: try number("PRAGMA page_size") ?? 4_096)
    pragmas.append("journal_size_limit = \(SQLiteLogInspection.headerSize + Self.checkpointPages * frameSize)")
    for pragma in pragmas { try execute("PRAGMA \(pragma)") }
  }
}

extension SQLiteConnection {
  /// Runs `body`, in which SQLite waits for a lock at most for `timeout`, in short sleeps on the calling thread.
  ///
  /// SQLite's own busy handler sleeps longer the longer it has waited, so newer waiters, which sleep for shorter times, get the lock first
  /// again and again. A commit takes some hundred microseconds, so one sleep lasts 100 to 1,000 µs, and up to 5,000 µs after about a
  /// second of waiting. The length of a sleep is random, so that several waiters do not wake at the same moments.
  func waiting<Result>(_ timeout: Duration, _ body: () throws(RepositoryError) -> Result) throws(RepositoryError) -> Result {
    let (seconds, attoseconds) = timeout.components
    let nanoseconds = min(max(seconds, 0), 1_000_000) * 1_000_000_000 + max(attoseconds, 0) / 1_000_000_000  // this sum fits in Int64
    wait.deadline.store(SQLiteConnection.uptime + nanoseconds, ordering: .relaxed)
    let wait = wait
    sqlite3_busy_handler(
      handle,
      { context, count in
        guard let context else { return 0 }
        let wait = Unmanaged<SQLiteWait>.fromOpaque(context).takeUnretainedValue()
        guard !wait.isOver else { return 0 }
        // If a wait has taken about a second or more, the process that holds the lock is slow, and longer sleeps add little to the wait.
        usleep(.random(in: 100...(count < 2_000 ? 1_000 : 5_000)))
        return 1
      }, Unmanaged.passUnretained(wait).toOpaque())
    defer {
      // `sqlite3_busy_timeout` also removes the busy handler that this function has installed. While the store is about to be suspended, no
      // later statement may wait.
      sqlite3_busy_timeout(handle, wait.isEnded.load(ordering: .relaxed) ? 0 : Self.busyTimeout)
      // SQLite holds the pointer to `wait` without a retain, so `wait` must live until the handler is removed.
      withExtendedLifetime(wait) {}
    }
    return try body()
  }

  /// Makes every later statement that meets a lock fail at once in place of waiting for it.
  func stopWaiting() { sqlite3_busy_timeout(handle, 0) }

  /// Nanoseconds of the monotonic clock, which does not move when the system's time is changed.
  fileprivate static var uptime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// The deadline of a wait for SQLite's write lock.
///
/// Another thread may end a wait for the write lock early, before the store is suspended.
final class SQLiteWait: Sendable {
  /// Time at which the wait ends, in nanoseconds of the monotonic clock.
  let deadline = Atomic<Int64>(0)
  /// True while no wait is allowed, because the store is about to be suspended.
  let isEnded = Atomic(false)

  var isOver: Bool {
    isEnded.load(ordering: .relaxed) || SQLiteConnection.uptime >= deadline.load(ordering: .relaxed)
  }
}
