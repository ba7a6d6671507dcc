internal import CSQLite
internal import Foundation
internal import Larder

/// Detection of files that were removed or replaced under an open connection.
extension SQLiteConnection {
  /// Stores the identities of the database, the write-ahead log and its index, once SQLite has opened them.
  /// - Throws: `.dataMissing`, or `.protectedDataUnavailable` for a log that the system does not let this process write.
  func rememberFiles() throws(RepositoryError) {
    // First: a log that SQLite has opened for reading alone refuses every later write.
    try checkLogIsWritable()
    openFiles = []
    for path in [path, path + "-wal", path + "-shm"] {
      guard let identity = try FileIdentity(at: path) else { throw missing(path) }
      openFiles.append((path, identity))
    }
  }

  /// Throws `.protectedDataUnavailable` for a write-ahead log that this process may not write.
  ///
  /// In this case SQLite has opened it for reading alone, and would refuse every write of this connection, also when the system allows them
  /// again.
  private func checkLogIsWritable() throws(RepositoryError) {
    let log = path + "-wal"
    let descriptor = open(log, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor < 0 else {
      // SQLite has no POSIX lock on the log that this could drop.
      _ = Foundation.close(descriptor)
      return
    }
    let number = errno
    // Any other failure is one of this check alone: SQLite has the log open.
    guard number == EACCES || number == EPERM || number == EROFS else { return }
    throw RepositoryError(
      "expected a write-ahead log that may be written, found one that the system protects: try again when it allows writing",
      call: "open", errorNumber: number, file: log)
  }

  /// Throws `.dataMissing` when the database or its write-ahead log was renamed, removed or replaced, since a write to it would be lost.
  ///
  /// Cost: one `lstat` while no name comes into the directory or goes from it.
  func checkPresence() throws(RepositoryError) {
    let directory = try SQLiteDirectoryState(of: path)
    if let directory, directory == checkedDirectory { return }
    // A check that throws must not leave the state of an earlier one behind.
    checkedDirectory = nil
    let hasMoved = try hasMoved()
    // SQLite follows a link that was put in the place of the file, and a new opening would refuse it.
    for (path, identity) in openFiles where try FileIdentity(at: path) != identity { throw missing(path) }
    // SQLite also reports a file as moved if it could not read its status. A second call distinguishes the two.
    if hasMoved, try self.hasMoved() { throw missing(path) }
    // A directory changed a moment ago may change again within the same time stamp.
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
