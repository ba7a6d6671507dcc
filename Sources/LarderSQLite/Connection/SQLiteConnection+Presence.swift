internal import CSQLite
internal import Foundation
internal import Larder

/// Detection of files that were removed or replaced under an open connection.
extension SQLiteConnection {
  /// Remembers which files the database, the log and its index are, once SQLite has opened them.
  /// - Throws: `.dataMissing`; `.protectedDataUnavailable` for a log that the system does not let this process write.
  func rememberFiles() throws(RepositoryError) {
    try checkLogIsWritable()
    openFiles = []
    for path in [path, path + "-wal", path + "-shm"] {
      guard let identity = try FileIdentity(at: path) else { throw missing(path) }
      openFiles.append((path, identity))
    }
  }

  /// Refuses a log that the system protects.
  ///
  /// SQLite has opened it for reading alone then, and would refuse every write of this connection, also when the system allows them again.
  private func checkLogIsWritable() throws(RepositoryError) {
    let log = path + "-wal"
    let descriptor = open(log, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor < 0 else {
      // SQLite has no POSIX lock on the log that this could drop.
      _ = Foundation.close(descriptor)
      return
    }
    let number = errno
    guard number == EACCES || number == EPERM || number == EROFS else { return }
    throw RepositoryError(
      "expected a write-ahead log that may be written, found one that the system protects: try again when it allows writing",
      call: "open", errorNumber: number, file: log)
  }

  /// Throws `.dataMissing` when the file or its log was renamed, removed or replaced: what is written to it would be lost.
  ///
  /// Cost: one `lstat` while no name comes into the directory or goes from it.
  func checkPresence() throws(RepositoryError) {
    let directory = try SQLiteDirectoryState(of: path)
    if let directory, directory == checkedDirectory { return }
    checkedDirectory = nil
    let hasMoved = try hasMoved()
    // SQLite follows a link that was put in the place of the file; opening does not.
    for (path, identity) in openFiles where try FileIdentity(at: path) != identity { throw missing(path) }
    // It takes a status that it could not read for a file that is gone: one that is in its place is asked for again.
    if hasMoved, try self.hasMoved() { throw missing(path) }
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
