internal import CSQLite
internal import Foundation
internal import Larder

/// A prepared statement of SQLite, whose columns are read with type checks.
///
/// Values are passed to the statement only by binding. A bound text is never part of the SQL, and may contain NUL because its length is
/// passed too.
final class SQLiteStatement {
  private var handle: OpaquePointer?
  private let connection: SQLiteConnection

  /// Prepares a statement that its owner keeps and runs many times.
  init(_ sql: String, on connection: SQLiteConnection) throws(RepositoryError) {
    self.connection = connection
    let result = sqlite3_prepare_v3(connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
    if result != SQLITE_OK { throw connection.error(result, while: .reading) }
  }

  // `sqlite3_finalize` returns the failure of the last run again, which `step` or `reset` has already reported, so the result is ignored.
  deinit { sqlite3_finalize(handle) }

  /// Finalizes the statement, so that its connection can be closed.
  func finalize() throws(RepositoryError) {
    let result = sqlite3_finalize(handle)
    // SQLite frees the statement even when `sqlite3_finalize` returns a failure, and `deinit` must not free it a second time.
    handle = nil
    if result != SQLITE_OK { throw connection.error(result, while: .writing) }
  }

  // MARK: Binding, from 1

  func bind(_ number: Int64, at index: Int32) throws(RepositoryError) {
    try check(sqlite3_bind_int64(handle, index, number))
  }

  func bind(_ text: String, at index: Int32) throws(RepositoryError) { try bind(RecordKey(text), at: index) }
  func bind(_ key: RecordKey, at index: Int32) throws(RepositoryError) { try check(key.withBytes { bind($0, at: index) }) }
  func bind(_ data: Data, at index: Int32) throws(RepositoryError) { try check(data.withUnsafeBytes { bind($0, at: index) }) }

  private func bind(_ bytes: UnsafeRawBufferPointer, at index: Int32) -> Int32 {
    larder_sqlite3_bind_text(handle, index, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), sqlite3_uint64(bytes.count))
  }

  /// Binds bytes as a blob, which SQLite orders behind every text and number.
  func bindBlob(_ data: Data, at index: Int32) throws(RepositoryError) {
    try check(data.withUnsafeBytes { larder_sqlite3_bind_blob(handle, index, $0.baseAddress, sqlite3_uint64($0.count)) })
  }

  // MARK: Running

  /// Moves to the next row, or returns false after the last one.
  ///
  /// After the last row or a failure, `step` resets the statement, so that it can run again.
  func step(while activity: SQLiteResult.Activity = .reading) throws(RepositoryError) -> Bool {
    let result = sqlite3_step(handle)
    if result == SQLITE_ROW { return true }
    // The statement is reset after the error is made, because resetting it overwrites SQLite's error number and text.
    defer { sqlite3_reset(handle) }
    if result == SQLITE_DONE { return false }
    throw connection.error(result, while: activity)
  }

  /// Resets a statement that has not reached its last row, so that it can run again.
  func reset(while activity: SQLiteResult.Activity = .reading) throws(RepositoryError) {
    let result = sqlite3_reset(handle)
    if result != SQLITE_OK { throw connection.error(result, while: activity) }
  }

  /// Runs the statement to its end and ignores its rows.
  func run(while activity: SQLiteResult.Activity = .writing) throws(RepositoryError) {
    while try step(while: activity) {}
  }

  /// Runs the statement and returns the integer in the first column of its first row, or `nil` when there is no row.
  func number() throws(RepositoryError) -> Int64? {
    let number = try step() ? try integer(0) : nil
    // A statement that has returned a row and was not reset keeps its read transaction open, so `number()` resets the statement before it
    // returns.
    try reset()
    return number
  }

  // MARK: Columns, from 0

  /// Returns an integer column, or throws `.corrupted` for a column of another type.
  func integer(_ column: Int32) throws(RepositoryError) -> Int64 {
    guard sqlite3_column_type(handle, column) == SQLITE_INTEGER else {
      throw connection.damaged("expected an integer in column \(column) of a row, found another type")
    }
    return sqlite3_column_int64(handle, column)
  }

  /// Returns the bytes of a text column, valid until the next step, or throws `.corrupted` for a column of another type.
  ///
  /// `sqlite3_column_blob` returns text as it is stored, where `sqlite3_column_text` would copy it to append a NUL.
  func bytes(_ column: Int32) throws(RepositoryError) -> UnsafeRawBufferPointer {
    guard sqlite3_column_type(handle, column) == SQLITE_TEXT else {
      throw connection.damaged("expected text in column \(column) of a row, found another type")
    }
    return try storedBytes(column)
  }

  /// Returns the bytes of a blob column, valid until the next step, or throws `.corrupted` for a column of another type.
  func blob(_ column: Int32) throws(RepositoryError) -> UnsafeRawBufferPointer {
    guard sqlite3_column_type(handle, column) == SQLITE_BLOB else {
      throw connection.damaged("expected a blob in column \(column) of a row, found another type")
    }
    return try storedBytes(column)
  }

  private func storedBytes(_ column: Int32) throws(RepositoryError) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, column)
    let count = Int(sqlite3_column_bytes(handle, column))
    // SQLite returns a null address for an empty text, and also when it has no memory. A null address with a count above 0 means that
    // SQLite has run out of memory.
    if start == nil && count > 0 { throw connection.error(SQLITE_NOMEM, while: .reading) }
    return UnsafeRawBufferPointer(start: start, count: count)
  }

  /// Returns a text column, or throws `.corrupted` for bytes that are not UTF-8.
  func text(_ column: Int32) throws(RepositoryError) -> String {
    guard let text = String(validating: try bytes(column), as: UTF8.self) else {
      throw connection.damaged("expected UTF-8 in column \(column) of a row, found other bytes")
    }
    return text
  }

  private func check(_ result: Int32) throws(RepositoryError) {
    if result != SQLITE_OK { throw connection.error(result, while: .writing) }
  }

  /// Columns of the current row without type checks, valid as long as the statement exists.
  var row: SQLiteColumns { SQLiteColumns(handle: handle) }
}

/// The columns of a row, read without type checks by a reader whose checksums detect a column of a wrong type.
struct SQLiteColumns {
  fileprivate let handle: OpaquePointer?

  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  func isBlob(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_BLOB }

  /// Returns the bytes of a column, valid until the next step.
  func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, column)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
  }
}
