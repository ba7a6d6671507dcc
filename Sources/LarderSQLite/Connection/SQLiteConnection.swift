// Connection/ is the only room that calls SQLite's C functions: connections, statements, result codes.
// Invariant: every failure is a RepositoryError that names the file, and nothing in a file can make SQLite do more than read and write
// rows. Called by every other room of LarderSQLite.

internal import CSQLite
internal import Foundation
internal import Larder

/// A connection to one database file.
final class SQLiteConnection {
  enum Mode {
    /// Reads and writes, with SQLite's own locks.
    case readWrite
    /// Reads while other connections may write.
    case readOnly
    /// Reads a file that is not written meanwhile; takes no lock and makes no file.
    case immutable
    /// Reads a file and its log under an exclusive lock; `.locked` when there is another connection.
    ///
    /// SQLite keeps the index of the log in memory then, so that no file is made or changed.
    case exclusive
    /// Reads a file and its log with an index of the log in this connection's memory; makes no file.
    ///
    /// Takes no part in the locks of the log's index, so the caller must make sure that nothing was written meanwhile.
    case privateIndex
  }

  let path: String
  private(set) var handle: OpaquePointer?
  /// The length of the write-ahead log in pages after the last commit; SQLite fills it in.
  let logPages = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
  /// The current wait for a lock; SQLite's busy handler reads it.
  var wait = SQLiteWait()
  /// The functions by which SQLite reaches the file, where they are not its own.
  private var methods: UnsafeMutablePointer<sqlite3_io_methods>?
  /// The database, the log and its index as they were when the store was opened.
  var openFiles: [(path: String, identity: FileIdentity)] = []
  /// The log through a descriptor of this program; `nil` where a sync of SQLite reaches the medium.
  var ownLog = (any OpenFile)?.none
  /// The state of the directory in which all files were last found unchanged.
  var checkedDirectory: SQLiteDirectoryState?

  /// Opens the file, without reading it; `nil` when there is none.
  init?(path: String, _ mode: Mode) throws(RepositoryError) {
    self.path = path
    logPages.initialize(to: 0)
    var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_URI
    // An exclusive lock needs a descriptor that may write.
    flags |= mode == .readWrite || mode == .exclusive ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY
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
        isAllowed
          ? "SQLite could open the file for reading only, though its permissions allow writing: try again"
          : "expected permission to write the file, found none: change its permissions, or open it for reading only", file: path)
    }
    try harden()
    if mode == .privateIndex { try hideLogIndex() }
    if mode == .exclusive { try execute("PRAGMA locking_mode = EXCLUSIVE", while: .opening) }
    if mode == .readWrite { followLogLength() }
  }

  deinit {
    // Without close(): as after a crash. No checkpoint here, because it blocks and its failure could not be reported.
    keepLogOnClose()
    sqlite3_close_v2(handle)
    logPages.deallocate()
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

  // MARK: Statements

  /// Runs a statement of this module's own text once.
  func execute(_ sql: String, while activity: SQLiteResult.Activity = .writing) throws(RepositoryError) {
    let statement = try prepare(sql)
    try statement.run(while: activity)
  }

  /// Prepares a statement that is kept for reuse.
  func prepare(_ sql: String) throws(RepositoryError) -> SQLiteStatement {
    try SQLiteStatement(sql, on: self)
  }

  /// Returns the text of the first row that a statement gives; `nil` when there is no row.
  func text(_ sql: String, while activity: SQLiteResult.Activity = .reading) throws(RepositoryError) -> String? {
    let statement = try prepare(sql)
    let text = try statement.step(while: activity) ? try statement.text(0) : nil
    try statement.reset(while: activity)
    return text
  }

  /// Returns the integer of the first row that a statement gives; `nil` when there is no row.
  func number(_ sql: String) throws(RepositoryError) -> Int64? { try prepare(sql).number() }

  /// Whether a transaction is open; SQLite ends one by itself after some failures.
  var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// Returns the first hundred bytes of the file and its size, read below the page cache.
  func header() throws(RepositoryError) -> (bytes: [UInt8], size: Int64) { try read(at: 0, count: 100) }

  /// Returns bytes of the file, zeros behind its end, and its size, read below the page cache.
  func read(at offset: Int64, count: Int) throws(RepositoryError) -> (bytes: [UInt8], size: Int64) {
    var bytes = [UInt8](repeating: 0, count: count)
    var size: Int64 = 0
    let result = larder_sqlite3_read_file(handle, &bytes, Int32(count), offset, &size)
    let isShort = result == SQLITE_IOERR | 2 << 8  // _SHORT_READ
    if result != SQLITE_OK && !isShort { throw error(result, while: .opening) }
    guard !isShort || offset + Int64(count) > size else {
      throw RepositoryError(
        .inputOutput, "expected \(count) bytes of a file of \(size), got fewer: try again, or check the disk", file: path,
        offset: UInt64(offset))
    }
    return (bytes, size)
  }

  /// Runs a body while the one attached database that `VACUUM` needs is allowed.
  func withAttachment(_ body: () throws(RepositoryError) -> Void) throws(RepositoryError) {
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 1)
    defer { sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0) }
    try body()
  }

  /// Ends the connection; every statement must be finalized.
  func close() throws(RepositoryError) {
    let result = sqlite3_close(handle)
    if result != SQLITE_OK { throw error(result, while: .writing) }
    handle = nil
  }
}
