import CSQLite
import Foundation
import Synchronization

/// SQLite as its documentation shows it: one table, a transaction for each step.
final class SQLitePeer: Subject {
  /// The connection, as the bits of its address, since it is used by one caller at a time.
  private let connection: Mutex<UInt>

  init(_ directory: URL, pragmas: String?) throws {
    var opened: OpaquePointer?
    let result = sqlite3_open(directory.appendingPathComponent("peer.sqlite").path, &opened)
    connection = Mutex(UInt(bitPattern: opened))
    guard result == SQLITE_OK else { throw Failure("sqlite3_open: \(result)") }
    if let pragmas { try execute(pragmas) }
    try execute("CREATE TABLE IF NOT EXISTS entries (id TEXT PRIMARY KEY, text TEXT NOT NULL)")
  }

  private func withConnection<R: Sendable>(_ body: @Sendable (OpaquePointer) throws -> R) throws -> R {
    try connection.withLock { address in
      guard let pointer = OpaquePointer(bitPattern: address) else { throw Failure("the connection is closed") }
      return try body(pointer)
    }
  }

  private func execute(_ statements: String) throws {
    try withConnection { connection in
      let result = sqlite3_exec(connection, statements, nil, nil, nil)
      if result != SQLITE_OK { throw Failure("\(String(cString: sqlite3_errmsg(connection))): \(statements.prefix(80))") }
    }
  }

  /// Returns the rows of a statement, each with its first two columns.
  private func rows(_ statement: String) throws -> [(String, String)] {
    try withConnection { connection in
      var prepared: OpaquePointer?
      guard sqlite3_prepare_v2(connection, statement, -1, &prepared, nil) == SQLITE_OK else {
        throw Failure(String(cString: sqlite3_errmsg(connection)))
      }
      defer { sqlite3_finalize(prepared) }
      var rows: [(String, String)] = []
      var result = sqlite3_step(prepared)
      while result == SQLITE_ROW {
        let texts = (0..<2).map { column in sqlite3_column_text(prepared, column).map { String(cString: $0) } ?? "" }
        rows.append((texts[0], texts[1]))
        result = sqlite3_step(prepared)
      }
      guard result == SQLITE_DONE else { throw Failure(String(cString: sqlite3_errmsg(connection))) }
      return rows
    }
  }

  func write(_ step: Step) async throws {
    if step.changes.isEmpty { return try execute("PRAGMA wal_checkpoint(TRUNCATE)") }
    let statements = step.changes.map { id, text in
      text.map { "INSERT OR REPLACE INTO entries VALUES ('\(id)', '\($0)')" } ?? "DELETE FROM entries WHERE id = '\(id)'"
    }
    try execute("BEGIN; " + statements.joined(separator: "; ") + "; COMMIT")
  }

  func contents() async throws -> Contents {
    let problems = try rows("PRAGMA integrity_check").map(\.0)
    if problems != ["ok"] { throw Failure("integrity_check: \(problems.prefix(3))") }
    return Contents(uniqueKeysWithValues: try rows("SELECT id, text FROM entries"))
  }

  func close() async throws {
    connection.withLock { address in
      sqlite3_close_v2(OpaquePointer(bitPattern: address))
      address = 0
    }
  }
}
