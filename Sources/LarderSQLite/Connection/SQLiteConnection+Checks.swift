internal import CSQLite
internal import Foundation
internal import Larder

/// Detection of files that were removed or replaced under an open connection.
extension SQLiteConnection {
  /// Stores the identities of the database, the write-ahead log and the log's index, once SQLite has opened these files.
  ///
  /// - Throws: `.dataMissing` if one of these files is gone. `.protectedDataUnavailable` for a write-ahead log that this process may not
  ///   write.
  func rememberFiles() throws(RepositoryError) {
    // The permission to write the log is checked first, because a connection that could open its log only for reading refuses every later
    // write.
    try checkLogIsWritable()
    openFiles = []
    for path in [path, path + "-wal", path + "-shm"] {
      guard let identity = try FileIdentity(at: path) else { throw missing(path) }
      openFiles.append((path, identity))
    }
  }

  /// Throws `.protectedDataUnavailable` for a write-ahead log that this process may not write.
  ///
  /// SQLite opens a log that it may not write for reading only. A connection with such a log refuses every write, even after the system
  /// allows writing to the log again.
  private func checkLogIsWritable() throws(RepositoryError) {
    let log = path + "-wal"
    let descriptor = open(log, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor < 0 else {
      // Closing this descriptor of the log drops no lock, because SQLite has no POSIX lock on the write-ahead log.
      _ = Foundation.close(descriptor)
      return
    }
    let number = errno
    // Any other error number, such as that of a lack of file descriptors, is ignored, because SQLite already has the write-ahead log open.
    guard number == EACCES || number == EPERM || number == EROFS else { return }
    throw RepositoryError(
      "expected a write-ahead log that may be written, found one that the system protects: try again when it allows writing",
      call: "open", errorNumber: number, file: log)
  }

  /// Throws `.dataMissing` when the database, its write-ahead log or the log's index was renamed, removed or replaced.
  ///
  /// A write to a renamed, removed or replaced file would be lost.
  ///
  /// Cost: one `lstat`, as long as no file is added to the directory or removed from it.
  func checkPresence() throws(RepositoryError) {
    let directory = try SQLiteDirectoryState(of: path)
    if let directory, directory == checkedDirectory { return }
    // If `checkPresence()` throws, its next call must look at every file again, so the stored state of the directory is cleared first.
    checkedDirectory = nil
    let hasMoved = try hasMoved()
    // Each path is checked here, because SQLite's own test follows a symbolic link in the place of the database, and the next opening of
    // the store would refuse such a link.
    for (path, identity) in openFiles where try FileIdentity(at: path) != identity { throw missing(path) }
    // SQLite also reports the database as moved if it failed once to read the file's status, so a second call of `hasMoved()` must confirm
    // the answer.
    if hasMoved, try self.hasMoved() { throw missing(path) }
    // A directory that changed within the last three seconds may change again with the same time stamp, so its state proves nothing.
    if let directory, directory.isSettled { checkedDirectory = directory }
  }

  private func hasMoved() throws(RepositoryError) -> Bool {
    var hasMoved: Int32 = 0
    let result = sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
    if result != SQLITE_OK { throw error(result, while: .writing) }
    return hasMoved != 0
  }

  private func missing(_ path: String) -> RepositoryError {
    RepositoryError(
      .dataMissing, "the file was removed or replaced while the store was open: close the store, and open it again", file: path)
  }
}

extension SQLiteConnection {
  /// An integrity check of SQLite, named after its pragma.
  enum IntegrityCheck: String {
    /// Checks the structure of all pages of the database file.
    case quick = "quick_check"
    /// Checks all pages of the database file, and compares the indexes with their tables.
    case full = "integrity_check"
  }

  /// Returns the number of problems that SQLite's integrity check finds, up to a limit.
  ///
  /// `problemCount` returns no text of the check, because SQLite's result lines may quote records of the file. A table of another program
  /// may need a collation or a function that only that program registers. If SQLite refuses to check the whole file because of a table of
  /// another program, `problemCount` checks each table of the store by a separate call of the pragma.
  func problemCount(_ check: IntegrityCheck, limit: Int) throws(RepositoryError) -> Int {
    do throws(RepositoryError) {
      return try problemCount("PRAGMA \(check.rawValue)(\(limit))")
    } catch {
      guard sqlite3_errcode(handle) & 0xFF == SQLITE_ERROR else { throw error }
    }
    var count = 0
    // SQLite reads an argument that begins with a digit as the limit of a check of the whole file. Collections whose name begins with a
    // digit are therefore left out of the checks of single tables. The scan of all records (`SQLiteScan`) still compares the checksums of
    // the rows of these collections.
    let named = try SQLiteLayout.collections(on: self).filter { name in name.utf8.first.map { !(0x30...0x39).contains($0) } ?? false }
    for table in [SQLiteLayout.store, SQLiteLayout.tombstones] + named {
      count += try problemCount("PRAGMA \(check.rawValue)(\(SQLiteLayout.quoted(table)))")
    }
    return count
  }

  /// Whether SQLite's quick check of the whole file finds no problem, and SQLite can check the whole file.
  func isSound() throws(RepositoryError) -> Bool {
    do throws(RepositoryError) { return try problemCount("PRAGMA quick_check(1)") == 0 } catch {
      // A table of another program may need a collation or a function that only that program registers.
      guard error.code == .corrupted || sqlite3_errcode(handle) & 0xFF == SQLITE_ERROR else { throw error }
      return false
    }
  }

  private func problemCount(_ pragma: String) throws(RepositoryError) -> Int {
    let statement = try prepare(pragma)
    var count = 0
    // For an undamaged file the check returns one row with the text "ok". Every other row of the check's result reports a problem.
    while try statement.step() { if try statement.text(0) != "ok" { count += 1 } }
    return count
  }
}
