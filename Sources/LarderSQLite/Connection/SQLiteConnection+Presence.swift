internal import CSQLite
internal import Foundation
internal import Larder

/// Detection of files that were removed or replaced under an open connection.
extension SQLiteConnection {
  /// Stores the identities of the database, the write-ahead log and its index, once SQLite has opened them.
  ///
  /// - Throws: `.dataMissing`, or `.protectedDataUnavailable` for a write-ahead log that the system does not let this process write.
  func rememberFiles() throws(RepositoryError) {
    // The log is checked first: if SQLite could open the log for reading only, SQLite refuses every later write of this connection.
    try checkLogIsWritable()
    openFiles = []
    for path in [path, path + "-wal", path + "-shm"] {
      guard let identity = try FileIdentity(at: path) else { throw missing(path) }
      openFiles.append((path, identity))
    }
  }

  /// Throws `.protectedDataUnavailable` for a write-ahead log that this process may not write.
  ///
  /// SQLite opens such a log for reading only. On a log opened for reading only, SQLite refuses every write of this connection, even after
  /// the system allows writing to the log again.
  private func checkLogIsWritable() throws(RepositoryError) {
    let log = path + "-wal"
    let descriptor = open(log, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor < 0 else {
      // Closing this descriptor drops no lock, because SQLite has no POSIX lock on the write-ahead log.
      _ = Foundation.close(descriptor)
      return
    }
    let number = errno
    // Any other error number, such as a lack of descriptors, concerns this check alone: SQLite already has the write-ahead log open.
    guard number == EACCES || number == EPERM || number == EROFS else { return }
    throw RepositoryError(
      "expected a write-ahead log that may be written, found one that the system protects: try again when it allows writing",
      call: "open", errorNumber: number, file: log)
  }

  /// Throws `.dataMissing` when the database or its write-ahead log was renamed, removed or replaced.
  ///
  /// A write to such a file would be lost.
  ///
  /// Cost: one `lstat`, as long as no file is added to the directory or removed from it.
  func checkPresence() throws(RepositoryError) {
    let directory = try SQLiteDirectoryState(of: path)
    if let directory, directory == checkedDirectory { return }
    // If this call throws, the next call must look at every file again, so the stored state of the directory is cleared first.
    checkedDirectory = nil
    let hasMoved = try hasMoved()
    // Each path is checked here, because SQLite's own test follows a symbolic link in the place of the database, and the next opening would
    // refuse such a link.
    for (path, identity) in openFiles where try FileIdentity(at: path) != identity { throw missing(path) }
    // SQLite also reports the database as moved if reading its status failed once, so a second call must confirm the answer.
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
