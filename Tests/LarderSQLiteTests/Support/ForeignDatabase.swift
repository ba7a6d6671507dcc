import CSQLite
import Foundation
import Testing

/// The connection of another program.
final class ForeignDatabase {
  private var handle: OpaquePointer?

  init(_ url: URL) throws {
    try #require(sqlite3_open(url.path(percentEncoded: false), &handle) == SQLITE_OK)
  }

  deinit { sqlite3_close_v2(handle) }

  func run(_ sql: String) throws {
    let result = sqlite3_exec(handle, sql, nil, nil, nil)
    try #require(result == SQLITE_OK, "\(sql): \(result)")
  }

  func number(_ sql: String) throws -> Int64 {
    var statement: OpaquePointer?
    try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
    defer { sqlite3_finalize(statement) }
    try #require(sqlite3_step(statement) == SQLITE_ROW)
    return sqlite3_column_int64(statement, 0)
  }

  func text(_ sql: String, column: Int32) throws -> String {
    var statement: OpaquePointer?
    try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
    defer { sqlite3_finalize(statement) }
    try #require(sqlite3_step(statement) == SQLITE_ROW)
    return String(cString: sqlite3_column_text(statement, column))
  }

  /// Leaves the log as a crash would.
  func keepLog() { larder_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nil) }

  /// Gives the connection a collation and a function that no other program has.
  func addCollationAndFunction(named name: String) {
    sqlite3_create_collation(handle, name, SQLITE_UTF8, nil) { _, one, first, two, second in
      guard let first, let second else { return 0 }
      let order = memcmp(first, second, Int(min(one, two)))
      return order == 0 ? one - two : order
    }
    let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | 0x20_0000  // SQLITE_INNOCUOUS
    sqlite3_create_function(handle, name, 1, flags, nil, { context, _, _ in sqlite3_result_int(context, 1) }, nil, nil)
  }

  /// Allows changes of the schema's text.
  func allowSchemaChanges() { larder_sqlite3_db_config_flag(handle, SQLITE_DBCONFIG_DEFENSIVE, 0, nil) }
}
