internal import CSQLite
internal import Foundation
internal import Larder

/// The translation of SQLite's result codes into the errors of a store.
///
/// The text is SQLite's fixed one for the code: `sqlite3_errmsg` could quote what is in the file.
enum SQLiteResult {
  /// The activity during which a call failed; it decides the meaning of the failure.
  enum Activity: String {
    case opening, reading, writing, syncing, copying
    /// The step of COMMIT: what reached the disk before an I/O error is not known.
    case committing
  }

  /// The code of a write that failed.
  static let failedWrite = SQLITE_IOERR | 3 << 8

  /// Returns the error for a result code, which must be a failure.
  static func error(_ code: Int32, while activity: Activity, file: String, errorNumber: Int32 = 0) -> RepositoryError {
    let text = sqlite3_errstr(code).map { String(cString: $0) } ?? "unknown"
    return RepositoryError(
      self.code(code, while: activity, errorNumber), "SQLite failed while \(activity.rawValue): \(text) (\(code))", file: file,
      underlying: errorNumber == 0 ? nil : SystemCallError(call: "SQLite", errorNumber: errorNumber))
  }

  private static func code(_ code: Int32, while activity: Activity, _ errorNumber: Int32) -> RepositoryError.Code {
    if activity == .opening && errorNumber == EISDIR { return .unsupported }
    switch code {
    case SQLITE_IOERR | 4 << 8, SQLITE_IOERR | 5 << 8:  // _FSYNC and _DIR_FSYNC, whatever was going on
      return .outcomeUnknown
    case SQLITE_IOERR | 33 << 8:  // _CORRUPTFS, which is a read that ended in EIO
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
    // _AUTH, which Apple's SQLite gives while the device is locked, does not say whether a write was refused or a sync. COMMIT has both.
    case SQLITE_IOERR where code == SQLITE_IOERR | 28 << 8, SQLITE_AUTH:
      return endsInSync ? .outcomeUnknown : .protectedDataUnavailable
    case SQLITE_IOERR:
      if isFull(errorNumber) { return .full }
      // COMMIT ends with its last write or with a sync. After a refused write the log lacks the frame that ends the transaction, and SQLite
      // ignores the frames before it. After any other failure the number may be that of an earlier call, as it is after a short read
      // and for lack of memory (_SHORT_READ, _NOMEM).
      let isUnsure = activity == .committing && code != failedWrite || activity == .syncing
      if isProtected(errorNumber), !isUnsure, ![2 << 8, 12 << 8].contains(code & ~0xFF) { return .protectedDataUnavailable }
      return endsInSync ? .outcomeUnknown : .inputOutput
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: return .locked
    // Of a copy, it says that its new file cannot be looked at.
    case SQLITE_ERROR where activity == .copying: return .inputOutput
    // SQLITE_ERROR says that a statement does not fit the tables: ours fit every file of this format.
    case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT, SQLITE_ERROR, SQLITE_EMPTY: return .corrupted
    case SQLITE_CANTOPEN where isFull(errorNumber): return .full
    case SQLITE_CANTOPEN: return isProtected(errorNumber) ? .protectedDataUnavailable : .inputOutput
    case SQLITE_PERM, SQLITE_READONLY: return .protectedDataUnavailable
    case SQLITE_TOOBIG: return .tooLarge
    // A violated NOT NULL or CHECK is not a duplicate: only the repository's unique indexes say `.uniqueViolation`.
    case SQLITE_CONSTRAINT, SQLITE_MISMATCH: return .unsupported
    default: return .inputOutput
    }
  }

  /// Whether the system refused for lack of space: a log or its index that cannot be made says so as an I/O error.
  private static func isFull(_ errorNumber: Int32) -> Bool { [ENOSPC, EDQUOT, EFBIG].contains(errorNumber) }

  /// Whether the system refused for lack of permission, as it does while a device with protected files is locked.
  private static func isProtected(_ errorNumber: Int32) -> Bool { errorNumber == EACCES || errorNumber == EPERM }
}
