internal import CSQLite
internal import Foundation
internal import Larder

/// The translation of SQLite's result codes into the errors of a store.
///
/// The message of an error contains SQLite's fixed text for the code (`sqlite3_errstr`), because `sqlite3_errmsg` could quote the contents
/// of the file.
enum SQLiteResult {
  /// The activity during which a call of SQLite failed.
  ///
  /// The meaning of a result code of SQLite can depend on the activity.
  enum Activity: String {
    case opening, reading, writing, syncing, copying
    /// The COMMIT statement of a transaction is running.
    ///
    /// After an I/O error in COMMIT, it is unknown whether the transaction is on the disk.
    case committing
  }

  /// SQLite's result code for a write that failed (`SQLITE_IOERR_WRITE`).
  static let failedWrite = SQLITE_IOERR | 3 << 8

  /// Returns the store's error for one of SQLite's result codes, which must be a failure.
  static func error(_ code: Int32, while activity: Activity, file: String, errorNumber: Int32 = 0) -> RepositoryError {
    let text = sqlite3_errstr(code).map { String(cString: $0) } ?? "unknown"
    return RepositoryError(
      self.code(code, while: activity, errorNumber), "SQLite failed while \(activity.rawValue): \(text) (\(code))", file: file,
      underlying: errorNumber == 0 ? nil : SystemCallError(call: "SQLite", errorNumber: errorNumber))
  }

  private static func code(_ code: Int32, while activity: Activity, _ errorNumber: Int32) -> RepositoryError.Code {
    // A directory in the place of the database file is an unsupported path, and not a failure of the disk.
    if activity == .opening && errorNumber == EISDIR { return .unsupported }
    switch code {
    case SQLITE_IOERR | 4 << 8, SQLITE_IOERR | 5 << 8:  // _FSYNC and _DIR_FSYNC: a failed sync during any activity
      return .outcomeUnknown
    case SQLITE_IOERR | 33 << 8:  // _CORRUPTFS: a read that ended in EIO
      return .inputOutput
    case SQLITE_READONLY | 4 << 8:  // _DBMOVED
      return .dataMissing
    case SQLITE_CANTOPEN | 2 << 8, SQLITE_CANTOPEN | 6 << 8:  // _ISDIR and _SYMLINK
      return .unsupported
    default: break
    }
    let endsInSync = activity == .committing || activity == .syncing
    switch code & 0xFF {
    case SQLITE_FULL: return .full
    // Apple's SQLite returns _AUTH while the device is locked, both for a refused write and for a refused sync. COMMIT makes writes and a
    // sync, so its outcome is unknown after the code _AUTH.
    case SQLITE_IOERR where code == SQLITE_IOERR | 28 << 8, SQLITE_AUTH:
      return endsInSync ? .outcomeUnknown : .protectedDataUnavailable
    case SQLITE_IOERR:
      if isFull(errorNumber) { return .full }
      // COMMIT ends with its last write to the log or with a sync. If the last write of COMMIT to the log was refused, the log lacks the
      // frame that ends the transaction, and SQLite ignores the frames before it. After any other failure the error number may be left from
      // an earlier call, as after a short read or a lack of memory (_SHORT_READ, _NOMEM). An error number from an earlier call does not
      // prove that the system refused permission.
      let isUnsure = activity == .committing && code != failedWrite || activity == .syncing
      if isProtected(errorNumber), !isUnsure, ![2 << 8, 12 << 8].contains(code & ~0xFF) { return .protectedDataUnavailable }
      return endsInSync ? .outcomeUnknown : .inputOutput
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: return .locked
    // During `VACUUM INTO`, SQLITE_ERROR means that SQLite could not open or read the new file of the copy.
    case SQLITE_ERROR where activity == .copying: return .inputOutput
    // SQLITE_ERROR means that a statement does not fit the tables. The statements of this module fit every undamaged file of this format.
    case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR, SQLITE_EMPTY: return .corrupted
    case SQLITE_CANTOPEN where isFull(errorNumber): return .full
    case SQLITE_CANTOPEN: return isProtected(errorNumber) ? .protectedDataUnavailable : .inputOutput
    case SQLITE_PERM, SQLITE_READONLY: return .protectedDataUnavailable
    case SQLITE_TOOBIG: return .tooLarge
    // A row that violates NOT NULL or CHECK is not a duplicate, and `.uniqueViolation` is only for the unique indexes of a repository.
    case SQLITE_CONSTRAINT, SQLITE_MISMATCH: return .unsupported
    default: return .inputOutput
    }
  }

  /// Whether the system refused a call for lack of space.
  ///
  /// SQLite reports a lack of space for the write-ahead log or its index as an I/O error.
  private static func isFull(_ errorNumber: Int32) -> Bool { [ENOSPC, EDQUOT, EFBIG].contains(errorNumber) }

  /// Whether the system refused a call for lack of permission, as it does for protected files while the device is locked.
  private static func isProtected(_ errorNumber: Int32) -> Bool { errorNumber == EACCES || errorNumber == EPERM }
}

extension SQLiteConnection {
  /// Returns the error for a result code, or a more precise error if the connection's state shows the cause.
  func error(_ result: Int32, while activity: SQLiteResult.Activity) -> RepositoryError {
    if result & 0xFF == SQLITE_CORRUPT, let failure = readFailure ?? untrustedSchema { return failure }
    if result & 0xFF == SQLITE_ERROR, activity == .copying, let failure = untrustedSchema ?? unknownSchema { return failure }
    return SQLiteResult.error(result, while: activity, file: path, errorNumber: errorNumber(of: result, activity))
  }

  /// Returns the system's error number (`errno`) for a failure of SQLite, or 0 if the failure has none.
  private func errorNumber(of result: Int32, _ activity: SQLiteResult.Activity) -> Int32 {
    // COMMIT leaves `sqlite3_system_errno` unchanged after a failed write, so the number is read from the write-ahead log's file.
    if activity == .committing, result == SQLiteResult.failedWrite { return larder_sqlite3_log_errno(handle) }
    return [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_FULL].contains(result & 0xFF) ? sqlite3_system_errno(handle) : 0
  }

  /// The error for a read that ended in EIO or ENXIO, which SQLite reports as damage, or `nil` if the last call failed for another reason.
  private var readFailure: RepositoryError? {
    let number = larder_sqlite3_last_errno(handle)
    guard number == EIO || number == ENXIO else { return nil }
    return RepositoryError(
      .inputOutput, "the disk failed during a read, which is no proof of damage: try again, or check the disk", file: path,
      underlying: SystemCallError(call: "read", errorNumber: number))
  }

  /// The error for a schema that SQLite accepts only in trusted files, or `nil` if the last call failed for another reason.
  ///
  /// SQLite has no result code for an untrusted schema, so its error text is compared. The text names an index, column or table of the
  /// file, so the returned error does not repeat SQLite's text. During a copy SQLite creates the tables of the copy, and an error text from
  /// their creation names no object. On a connection that only reads, SQLite does not refuse a CHECK constraint.
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

  /// The error for a copy of tables that need another program's collation or function, or `nil` if the call failed for another reason.
  private var unknownSchema: RepositoryError? {
    let text = errorText
    guard ["no such collation sequence: ", "no such function: ", "unknown function: "].contains(where: text.contains) else { return nil }
    return RepositoryError(
      .unsupported,
      "expected tables that SQLite copies by itself, found one of another program with a collation or function of its own: copy the "
        + "database with that program, or the records to a new store (`Store.copy(to:)`, `larder convert`)", file: path)
  }

  private var errorText: String { sqlite3_errmsg(handle).map { String(cString: $0) } ?? "" }

  /// Returns the error for damage that SQLite reports: the error of a failed read if a read has failed, otherwise `.corrupted`.
  func damagedOrUnreadable(_ text: String) -> RepositoryError { readFailure ?? damaged(text) }

  /// Returns a `.corrupted` error for damage in the file.
  func damaged(_ text: String, keyHash: String? = nil) -> RepositoryError {
    RepositoryError(.corrupted, text, file: path, keyHash: keyHash)
  }

  /// Returns a `.corrupted` error for damage that an opening has found in indexes.
  func damagedIndexes(_ expected: String, _ found: String, _ cause: RepositoryError? = nil) -> RepositoryError {
    RepositoryError(
      .corrupted, "expected \(expected), found \(found): the records are whole, and queries build the indexes anew", file: path,
      underlying: cause)
  }

  /// Returns a `.corrupted` error for damage in an index, which holds nothing that the records do not hold.
  func damagedIndex(_ index: StoredIndexID, _ expected: String, _ found: String, _ cause: RepositoryError? = nil) -> RepositoryError {
    RepositoryError(
      .corrupted,
      "expected \(expected) in the index \(index.name) of \(index.collection), found \(found): a query that reads "
        + "it builds the index anew", file: path, underlying: cause)
  }
}

extension RepositoryError {
  /// Creates the error for a system call that failed.
  init(_ text: String, call: String, errorNumber: Int32, file: String) {
    let code: Code = errorNumber == EACCES || errorNumber == EPERM ? .protectedDataUnavailable : .inputOutput
    self.init(code, text, file: file, underlying: SystemCallError(call: call, errorNumber: errorNumber))
  }
}
