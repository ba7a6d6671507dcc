internal import CSQLite
internal import Larder

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// One connection to one database file, set up so that nothing in the file can make it do more than read and write rows.
final class SQLiteConnection {
  enum Mode {
    case readWrite
    /// Reads beside a writer.
    case readOnly
    /// Reads a file that nobody writes meanwhile, without locks and without making a file.
    case immutable
    /// Reads a file with its log, to which nobody else has a connection, nor gets one meanwhile: `.locked` when somebody has.
    ///
    /// SQLite keeps the index of the log in memory then, so that no file is made or changed.
    case alone
    /// Reads a file with its log, makes no file and takes no part in the locks of the log's index: who uses it must notice whether somebody has
    /// written meanwhile.
    case withoutTrace
  }

  let path: String
  private(set) var handle: OpaquePointer?
  /// The length of the write-ahead log in pages after the last commit; SQLite fills it in.
  private let logPages = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
  /// Until when others are waited for, as ``SQLiteWait`` counts; SQLite reads it.
  private let waitsUntil = UnsafeMutablePointer<Int64>.allocate(capacity: 1)
  /// How SQLite reaches the file, where that is not its own way.
  private var methods: UnsafeMutablePointer<sqlite3_io_methods>?
  /// The log and its index, as they were when the store was opened.
  private var besides: [(path: String, identity: SQLiteFileIdentity)] = []
  /// The directory as it was when all of them were last found in it.
  private var quiet: SQLiteDirectoryState?

  /// Opens the file; `nil` when there is none.
  ///
  /// Never creates one, and reads nothing of it yet.
  init?(path: String, _ mode: Mode) throws(RepositoryError) {
    self.path = path
    logPages.initialize(to: 0)
    waitsUntil.initialize(to: 0)
    var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_URI
    // The lock of one who is alone needs a descriptor that may write.
    flags |= mode == .readWrite || mode == .alone ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
    let result = sqlite3_open_v2(Self.uri(path, immutable: mode == .immutable), &handle, flags, nil)
    if result != SQLITE_OK {
      if result & 0xFF == SQLITE_CANTOPEN && SQLitePath.isAbsent(path) { return nil }
      throw error(result, while: .opening)
    }
    if flags & SQLITE_OPEN_READWRITE != 0 && sqlite3_db_readonly(handle, "main") == 1 {
      // SQLite opens for reading whatever it could not open for writing, also for lack of descriptors.
      let isAllowed = access(path, W_OK) == 0
      throw RepositoryError(
        isAllowed ? .inputOutput : .protectedDataUnavailable,
        isAllowed ? "the file could not be opened for writing" : "the file may not be written", file: path)
    }
    try defend()
    if mode == .withoutTrace { try hideLogIndex() }
    if mode == .alone { try execute("PRAGMA locking_mode = EXCLUSIVE", while: .opening) }
    if mode == .readWrite {
      // This replaces SQLite's automatic checkpoint, which would keep a failed sync to itself.
      sqlite3_wal_hook(
        handle,
        { context, _, _, pages in
          context?.storeBytes(of: pages, as: Int32.self)
          return SQLITE_OK
        }, logPages)
    }
  }

  deinit {
    // Without close(): as after a crash. No checkpoint here, because it blocks, and nobody would hear that it failed.
    keepLogOnClose()
    sqlite3_close_v2(handle)
    logPages.deallocate()
    waitsUntil.deallocate()
    methods?.deallocate()
  }

  private func hideLogIndex() throws(RepositoryError) {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    self.methods = methods
    let result = larder_sqlite3_hide_log_index(handle, methods)
    if result != SQLITE_OK { throw error(result, while: .opening) }
    keepLogOnClose()
  }

  private static func uri(_ path: String, immutable: Bool) -> String {
    var uri = "file:"
    for byte in path.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D...0x2F, 0x5F: uri.unicodeScalars.append(Unicode.Scalar(byte))
      default: uri += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return immutable ? uri + "?immutable=1" : uri
  }

  /// Takes away what a hostile or damaged file could use, before anything of it is read.
  private func defend() throws(RepositoryError) {
    let flags: [(Int32, Int32)] = [
      (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
      (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), (SQLITE_DBCONFIG_ENABLE_VIEW, 0), (SQLITE_DBCONFIG_DQS_DML, 0),
      (SQLITE_DBCONFIG_DQS_DDL, 0), (SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0),
    ]
    for (flag, value) in flags {
      let result = larder_sqlite3_db_config_flag(handle, flag, value, nil)
      if result != SQLITE_OK { throw error(result, while: .opening) }
    }
    // The length of a value stays SQLite's own limit: a store must show records that were saved under a wider one.
    let limits: [(Int32, Int32)] = [
      (SQLITE_LIMIT_SQL_LENGTH, 100_000), (SQLITE_LIMIT_COLUMN, 100), (SQLITE_LIMIT_EXPR_DEPTH, 20), (SQLITE_LIMIT_COMPOUND_SELECT, 3),
      (SQLITE_LIMIT_FUNCTION_ARG, 8), (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
      (SQLITE_LIMIT_VARIABLE_NUMBER, 16), (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    ]
    for (limit, value) in limits { sqlite3_limit(handle, limit, value) }
    // Only a foreign tool can hold a lock for long: exclusive stores exclude each other with their lock file.
    sqlite3_busy_timeout(handle, 2_000)
    for pragma in ["cell_size_check = ON", "mmap_size = 0", "trusted_schema = OFF", "temp_store = MEMORY"] {
      try execute("PRAGMA \(pragma)", while: .opening)
    }
  }

  /// Runs a body that waits for other writers at most so long, in short steps.
  ///
  /// SQLite's own handler sleeps longer the longer it has waited, so that who waits is overtaken by who comes.
  func waiting<Result>(_ timeout: Duration, _ body: () throws(RepositoryError) -> Result) throws(RepositoryError) -> Result {
    waitsUntil.pointee = SQLiteWait.now + SQLiteWait.nanoseconds(timeout)
    sqlite3_busy_handler(
      handle,
      { context, count in
        guard let deadline = context?.load(as: Int64.self), SQLiteWait.now < deadline else { return 0 }
        SQLiteWait.pause(after: count)
        return 1
      }, waitsUntil)
    defer { sqlite3_busy_timeout(handle, 2_000) }
    return try body()
  }

  /// Runs a statement of this module's own text once.
  func execute(_ sql: String, while activity: SQLiteResult.Activity = .writing) throws(RepositoryError) {
    let statement = try prepare(sql)
    try statement.run(while: activity)
  }

  func prepare(_ sql: String) throws(RepositoryError) -> SQLiteStatement {
    try SQLiteStatement(sql, on: self)
  }

  /// Runs a statement of this module's own text and returns the text of its first row.
  func text(_ sql: String, while activity: SQLiteResult.Activity = .reading) throws(RepositoryError) -> String? {
    let statement = try prepare(sql)
    let text = try statement.step(while: activity) ? try statement.text(0) : nil
    try statement.reset(while: activity)
    return text
  }

  /// Whether a transaction is open.
  ///
  /// SQLite ends one by itself after some failures.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// The first bytes of the file and its size, below the page cache.
  func header() throws(RepositoryError) -> (bytes: [UInt8], size: Int64) {
    var bytes = [UInt8](repeating: 0, count: 100)
    var size: Int64 = 0
    let result = larder_sqlite3_read_file(handle, &bytes, 100, 0, &size)
    if result != SQLITE_OK && result != SQLITE_IOERR | 2 << 8 { throw error(result, while: .opening) }  // _SHORT_READ
    return (bytes, size)
  }

  /// Remembers which files the log and its index are, once SQLite has opened them.
  func rememberFiles() throws(RepositoryError) {
    besides = []
    for path in [path + "-wal", path + "-shm"] {
      guard let identity = try SQLiteFileIdentity(at: path) else { throw missing(path) }
      besides.append((path, identity))
    }
  }

  private func missing(_ path: String) -> RepositoryError {
    RepositoryError(
      .dataMissing, "the file was removed or replaced while the store was open: close the store, and open it again", file: path)
  }

  /// Throws when the file or its log was renamed, removed or replaced, so that what is written to it would be lost.
  ///
  /// Costs one `lstat` while nothing comes into the directory or goes from it.
  func checkPresence() throws(RepositoryError) {
    let directory = try SQLiteDirectoryState(of: path)
    if let directory, directory == quiet { return }
    quiet = nil
    var hasMoved: Int32 = 0
    let result = sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
    if result != SQLITE_OK { throw error(result, while: .writing) }
    if hasMoved != 0 { throw RepositoryError(.dataMissing, "the file was removed or renamed while it was open", file: path) }
    for (path, identity) in besides where try SQLiteFileIdentity(at: path) != identity { throw missing(path) }
    if let directory, directory.isSettled { quiet = directory }
  }

  // MARK: The write-ahead log

  var logPageCount: Int { Int(logPages.pointee) }

  /// Makes the write-ahead log durable.
  func syncLog() throws(RepositoryError) {
    #if canImport(Darwin)
      let flags = SQLITE_SYNC_FULL
    #else
      let flags = SQLITE_SYNC_NORMAL
    #endif
    let result = larder_sqlite3_sync_log(handle, flags)
    if result != SQLITE_OK { throw error(result, while: .syncing) }
  }

  /// Copies the write-ahead log into the database; truncating waits for readers, otherwise what they hold back is left for later.
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

  /// Ends the connection; every statement must be gone.
  func close() throws(RepositoryError) {
    let result = sqlite3_close(handle)
    if result != SQLITE_OK { throw error(result, while: .writing) }
    handle = nil
  }

  /// Runs a body while the one attached database that `VACUUM` needs is allowed.
  func withAttachment(_ body: () throws(RepositoryError) -> Void) throws(RepositoryError) {
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 1)
    defer { sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0) }
    try body()
  }

  // MARK: Errors

  func error(_ result: Int32, while activity: SQLiteResult.Activity) -> RepositoryError {
    if result & 0xFF == SQLITE_CORRUPT, let failure = readFailure { return failure }
    let concernsSystem = [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_FULL].contains(result & 0xFF)
    return SQLiteResult.error(
      result, while: activity, file: path, errorNumber: concernsSystem ? sqlite3_system_errno(handle) : 0)
  }

  /// The failure of the disk that SQLite takes for damage, if there was one: a read that ended in EIO.
  private var readFailure: RepositoryError? {
    let number = larder_sqlite3_last_errno(handle)
    guard number == EIO || number == ENXIO else { return nil }
    return RepositoryError(
      .inputOutput, "the disk failed while it was read; this is no proof of damage", file: path,
      underlying: SystemCallError(call: "read", errorNumber: number))
  }

  /// The error for damage that SQLite itself found, unless the disk failed.
  func damagedOrUnreadable(_ what: String) -> RepositoryError { readFailure ?? damaged(what) }

  func damaged(_ what: String, keyHash: String? = nil) -> RepositoryError {
    RepositoryError(.corrupted, what, file: path, keyHash: keyHash)
  }
}
