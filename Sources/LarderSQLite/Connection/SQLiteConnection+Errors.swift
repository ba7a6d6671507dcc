internal import CSQLite
internal import Foundation
internal import Larder

extension SQLiteConnection {
  /// Returns the error for a result code, which must be a failure.
  func error(_ result: Int32, while activity: SQLiteResult.Activity) -> RepositoryError {
    if result & 0xFF == SQLITE_CORRUPT, let failure = readFailure ?? untrustedSchema { return failure }
    if result & 0xFF == SQLITE_ERROR, activity == .copying, let failure = untrustedSchema ?? unknownSchema { return failure }
    return SQLiteResult.error(result, while: activity, file: path, errorNumber: errorNumber(of: result, activity))
  }

  /// Returns the system's number for a failure; 0 where it has none.
  private func errorNumber(of result: Int32, _ activity: SQLiteResult.Activity) -> Int32 {
    if activity == .committing, result == SQLiteResult.failedWrite { return larder_sqlite3_log_errno(handle) }
    return [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_FULL].contains(result & 0xFF) ? sqlite3_system_errno(handle) : 0
  }

  /// The disk's failure that SQLite takes for damage, if there was one: a read that ended in EIO.
  private var readFailure: RepositoryError? {
    let number = larder_sqlite3_last_errno(handle)
    guard number == EIO || number == ENXIO else { return nil }
    return RepositoryError(
      .inputOutput, "the disk failed during a read, which is no proof of damage: try again, or check the disk", file: path,
      underlying: SystemCallError(call: "read", errorNumber: number))
  }

  /// The refusal of a schema that SQLite reads in trusted files only, if the last call ended with it.
  ///
  /// SQLite has no code for it. Its text names the object, and is not repeated. A copy makes the tables anew, and its text has no object.
  /// A connection that only reads passes over a CHECK.
  private var untrustedSchema: RepositoryError? {
    let text = errorText
    guard text.hasPrefix("unsafe use of ") || text.hasPrefix("malformed database schema") && text.contains(" - unsafe use of ") else {
      return nil
    }
    return RepositoryError(
      .unsupported,
      "expected indexes, columns and CHECK constraints that need no trust in the file, found one over a function such as json_extract or "
        + "json_valid: drop it with the program that made it, or copy the records, read-only, to a new store (`Store.copy(to:)`, "
        + "`larder convert`)", file: path)
  }

  /// The refusal of a copy of tables that only another program can make, if the last call ended with it.
  private var unknownSchema: RepositoryError? {
    let text = errorText
    guard ["no such collation sequence: ", "no such function: ", "unknown function: "].contains(where: text.contains) else { return nil }
    return RepositoryError(
      .unsupported,
      "expected tables that SQLite copies by itself, found one of another program with a collation or function of its own: copy the "
        + "database with that program, or the records to a new store (`Store.copy(to:)`, `larder convert`)", file: path)
  }

  private var errorText: String { sqlite3_errmsg(handle).map { String(cString: $0) } ?? "" }

  /// Returns the error for damage that SQLite itself found, or the disk's failure that looks like it.
  func damagedOrUnreadable(_ text: String) -> RepositoryError { readFailure ?? damaged(text) }

  /// Returns the error for damage in the file.
  func damaged(_ text: String, keyHash: String? = nil) -> RepositoryError {
    RepositoryError(.corrupted, text, file: path, keyHash: keyHash)
  }
}

extension RepositoryError {
  /// Makes the error for a system call that failed.
  init(_ text: String, call: String, errorNumber: Int32, file: String) {
    let code: Code = errorNumber == EACCES || errorNumber == EPERM ? .protectedDataUnavailable : .inputOutput
    self.init(code, text, file: file, underlying: SystemCallError(call: call, errorNumber: errorNumber))
  }
}
