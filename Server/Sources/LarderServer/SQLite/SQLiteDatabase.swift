internal import CServerSQLite
internal import Foundation

// SQLite/ implements SQLConnection over a file. Invariant: a commit is synced (WAL, synchronous=FULL). Called by the store's workers.

/// Connection to a SQLite file that prepares each statement once.
final class SQLiteDatabase: SQLConnection {
  let dialect = SQLDialect(key: "TEXT", forUpdate: "")
  private(set) var isUsable = true
  private let database: OpaquePointer
  private var statements: [String: OpaquePointer] = [:]

  /// Application id in the header of a server's file: "LSrv".
  static let applicationID = 0x4C53_7276

  private init(_ database: OpaquePointer) { self.database = database }

  deinit {
    // A statement that is not finalized would keep the file open after `sqlite3_close_v2`.
    for statement in statements.values { sqlite3_finalize(statement) }
    _ = Self.closing.withLock { sqlite3_close_v2(database) }
  }

  /// Lock that is held while a connection closes.
  ///
  /// Connections that close at once would each count as a user of the database for the other, and SQLite would fold the log for neither.
  private static let closing = NSLock()

  /// Opens a database file, or creates it.
  ///
  /// Several processes may create it at once.
  ///
  /// - Throws: `.database`, or `.unusable` for a file of something else or of 0 bytes and for a path at which there can be no file.
  static func open(_ path: String, creates: Bool = true) throws(StoreError) -> SQLiteDatabase {
    do throws(ServerError) { try refuseRemains(path, creates: creates) } catch { throw .unusable(error) }
    if creates, !FileManager.default.fileExists(atPath: path) { try createFile(path) }
    return try connect(to: path, named: path, creates: false)
  }

  /// Makes an empty database beside its path, and gives it its name when it is complete.
  ///
  /// SQLite itself makes a file of 0 bytes first. Another process could take that for damage, and its connection fails at once with
  /// SQLITE_BUSY if both set the journal mode.
  private static func createFile(_ path: String) throws(StoreError) {
    let draft: DraftFile
    do throws(ServerError) { draft = try DraftFile(for: path) } catch { throw .unusable(error) }
    do throws(StoreError) {
      // The connection is released here, which closes it and folds its log into the draft.
      _ = try connect(to: draft.path, named: path, creates: true)
    } catch {
      draft.discard()
      throw error
    }
    do throws(ServerError) { try draft.publish(replacing: false) } catch {
      // Another process has made the file meanwhile, and its file is as good.
      guard FileManager.default.fileExists(atPath: path) else { throw .unusable(error) }
    }
  }

  /// Connects to a file.
  ///
  /// - Parameter name: The path that errors name, which is not that of a draft.
  private static func connect(to file: String, named name: String, creates: Bool) throws(StoreError) -> SQLiteDatabase {
    var handle: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | (creates ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let result = sqlite3_open_v2(file, &handle, flags, nil)
    guard let handle else { throw .database(code: "SQLite \(result)", message: "out of memory") }
    let database = SQLiteDatabase(handle)
    guard result == SQLITE_OK else {
      // With too many open files in the process, SQLite reports the same code for a path that is right.
      let isOfPath = result & 0xFF == SQLITE_CANTOPEN && ![EMFILE, ENFILE].contains(sqlite3_system_errno(handle))
      throw isOfPath ? .unusable(unopened(name, creates: creates)) : database.failure(result, while: "opening \(name)")
    }
    // 10 seconds, which the message for SQLITE_BUSY names.
    sqlite3_busy_timeout(handle, 10_000)
    do throws(StoreError) {
      try database.prepareFile(name)
    } catch {
      guard sqlite3_errcode(handle) & 0xFF == SQLITE_NOTADB else { throw error }
      throw .unusable(
        ServerError(
          expected: "a database of larder-server at \(name)", found: "a file of another kind", advice: "name another file with --store"))
    }
    return database
  }

  /// Throws for a file of 0 bytes and for a log without its file, which SQLite would take for a new database.
  private static func refuseRemains(_ path: String, creates: Bool) throws(ServerError) {
    // The logs first: another process may create the file in between, and the log of its first commit.
    let log = ["-wal", "-journal"].map { path + $0 }.first { Self.size(ofFile: $0) ?? 0 > 0 }
    let size = Self.size(ofFile: path)
    if size == 0 {
      throw ServerError(
        expected: "a database of larder-server at \(path)", found: "a file of 0 bytes",
        advice: "restore a backup, or remove the file if there never was a database in it")
    }
    if size == nil, creates, let log {
      throw ServerError(
        expected: "a database at \(path)", found: "only its log \(log)", advice: "put the file back, or move the log away for a new one")
    }
  }

  /// Returns the size of a regular file in bytes, or `nil` if the path leads to none.
  private static func size(ofFile path: String) -> Int64? {
    let attributes = FileManager.default.attributes(ofFileAt: path)
    guard attributes[.type] as? FileAttributeType == .typeRegular else { return nil }
    return (attributes[.size] as? NSNumber)?.int64Value
  }

  /// Returns the reason why SQLite cannot open a file, since SQLite has one result code for all reasons.
  private static func unopened(_ path: String, creates: Bool) -> ServerError {
    let folder = URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false)
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    if isFolder.boolValue { return ServerError(expected: "a file at \(path)", found: "a folder", advice: "name a file in it with --store") }
    if !FileManager.default.fileExists(atPath: folder) {
      return ServerError(expected: "the folder \(folder)", found: "none", advice: "make it, or name another file with --store")
    }
    if !exists, !creates {
      return ServerError(expected: "a database at \(path)", found: "none", advice: "name the file that serve was given with --store")
    }
    return ServerError(
      expected: "permission to read and write \(path) and its folder", found: "none", advice: "change the owner or the mode of both")
  }

  /// Checks that the file belongs to a server, then sets how SQLite writes it.
  private func prepareFile(_ path: String) throws(StoreError) {
    let mark = try row("PRAGMA application_id")?.integer(0) ?? 0
    if mark != Self.applicationID {
      let tables = try row("SELECT COUNT(*) FROM sqlite_schema")?.integer(0) ?? 0
      // A new file has neither a mark nor a table. Any other file without the mark belongs to another program.
      guard mark == 0, tables == 0 else {
        throw .unusable(
          ServerError(expected: "a database of larder-server at \(path)", found: "another one", advice: "name another file with --store"))
      }
      // Set before the journal mode: the mark is then in the file itself, even if a full disk keeps SQLite from folding its log.
      try execute("PRAGMA application_id=\(Self.applicationID)")
    }
    // On macOS, `fsync` alone leaves data in the cache of the drive, and `fullfsync` does not.
    for pragma in ["journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF", "fullfsync=ON"] {
      try execute("PRAGMA \(pragma)")
    }
  }

  func execute(_ sql: String, _ parameters: [SQLValue], row: (SQLRow) throws(StoreError) -> Bool) throws(StoreError) {
    let statement = try prepared(sql)
    defer {
      // A statement that is not reset keeps its read lock, and SQLite could not fold the log.
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    for (index, value) in parameters.enumerated() { try bind(value, at: Int32(index + 1), of: statement) }
    while true {
      let result = sqlite3_step(statement)
      if result == SQLITE_DONE { return }
      guard result == SQLITE_ROW else { throw failure(result, while: "executing a statement") }
      if try !row(read(statement)) { return }
    }
  }

  private func prepared(_ sql: String) throws(StoreError) -> OpaquePointer {
    if let statement = statements[sql] { return statement }
    var statement: OpaquePointer?
    let result = sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard result == SQLITE_OK, let statement else { throw failure(result, while: "preparing a statement") }
    // Bounds the memory of prepared statements, of which IN lists of many lengths make many. A dropped one is prepared when used again.
    if statements.count >= 100 {
      for old in statements.values { sqlite3_finalize(old) }
      statements = [:]
    }
    statements[sql] = statement
    return statement
  }

  private func bind(_ value: SQLValue, at index: Int32, of statement: OpaquePointer) throws(StoreError) {
    let result =
      switch value {
      case .null: sqlite3_bind_null(statement, index)
      case .integer(let number): sqlite3_bind_int64(statement, index, Int64(number))
      case .text(var text):
        text.withUTF8 { bytes in
          bytes.withMemoryRebound(to: CChar.self) { larder_server_bind_text(statement, index, $0.baseAddress, UInt64($0.count)) }
        }
      case .utf8(let data):
        data.withUnsafeBytes { bytes in
          bytes.withMemoryRebound(to: CChar.self) { larder_server_bind_text(statement, index, $0.baseAddress, UInt64($0.count)) }
        }
      }
    guard result == SQLITE_OK else { throw failure(result, while: "binding a value") }
  }

  private func read(_ statement: OpaquePointer) -> SQLRow {
    SQLRow(
      (0..<sqlite3_column_count(statement)).map { column in
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER: return .integer(Int(sqlite3_column_int64(statement, column)))
        case SQLITE_NULL: return .null
        default:
          guard let bytes = sqlite3_column_text(statement, column) else { return .text("") }
          return .utf8(Data(bytes: bytes, count: Int(sqlite3_column_bytes(statement, column))))
        }
      })
  }

  func begin(_ transaction: SQLTransaction) throws(StoreError) {
    // IMMEDIATE takes the write lock at once. A transaction that reads first and then writes could fail with SQLITE_BUSY.
    try execute(transaction == .write ? "BEGIN IMMEDIATE" : "BEGIN")
  }

  func commit() throws(StoreError) { try execute("COMMIT") }

  func rollBack() {
    // SQLite has rolled back some failed transactions by itself, and ROLLBACK would fail.
    if sqlite3_get_autocommit(database) != 0 { return }
    do throws(StoreError) { try execute("ROLLBACK") } catch { isUsable = false }
  }

  func copy(to path: String) throws(StoreError) {
    guard !FileManager.default.fileExists(atPath: path) else {
      throw .unusable(ServerError(expected: "no file at \(path)", found: "one", advice: "name another file"))
    }
    let draft: DraftFile
    do throws(ServerError) {
      draft = try DraftFile(for: path)
      // Made here for its precise error: SQLite only reports that it cannot open the file.
      try draft.write(Data(), permissions: 0o644)
    } catch { throw .unusable(error) }
    // VACUUM does not run within a transaction.
    rollBack()
    do throws(StoreError) { try execute("VACUUM INTO ?", [.text(draft.path)]) } catch {
      draft.discard()
      throw error
    }
    do throws(ServerError) { try draft.publish(replacing: false) } catch { throw .unusable(error) }
    // The worker commits the transaction that it has begun, so there must be one.
    try begin(.read)
  }

  func check() throws(StoreError) -> [String] { try rows("PRAGMA integrity_check(20)").map { $0.text(0) }.filter { $0 != "ok" } }

  /// Returns the failure for a result code.
  ///
  /// It holds no value, since SQLite's messages name only tables and columns.
  private func failure(_ code: Int32, while action: String) -> StoreError {
    // After a failed write or sync, only a new connection reads the true contents of the file again.
    if [SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_NOTADB].contains(code & 0xFF) { isUsable = false }
    let message = sqlite3_errmsg(database).map { String(cString: $0) } ?? "no message"
    return .database(code: "SQLite \(code)", message: Self.sentence(for: code, message) ?? "\(action): \(message)")
  }

  /// Returns a sentence with the expected state, the found state and the remedy for a result code of SQLite.
  ///
  /// `nil` for a code without advice, for which SQLite's own message is shown.
  private static func sentence(for code: Int32, _ message: String) -> String? {
    switch code & 0xFF {
    case SQLITE_FULL: "expected room on the disk, found none: free some space on it"
    case SQLITE_IOERR:
      "expected a disk that can be read and written, found '\(message)': check the disk and its free space, and start the server again"
    case SQLITE_CORRUPT, SQLITE_NOTADB: "expected a whole database, found '\(message)': run larder-server doctor, or restore a backup"
    case SQLITE_CANTOPEN:
      "expected files that can be opened, found '\(message)': raise the limit of open files, or change the mode of the folder"
    case SQLITE_READONLY, SQLITE_PERM:
      "expected permission to write, found '\(message)': change the owner or the mode of the file and its folder"
    case SQLITE_BUSY, SQLITE_LOCKED:
      "expected the file to be free within 10 seconds, found a program that writes it: end that program"
    default: nil
    }
  }
}
