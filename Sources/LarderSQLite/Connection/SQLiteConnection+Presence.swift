internal import CSQLite
internal import Larder

/// Detection of files that were removed or replaced under an open connection.
extension SQLiteConnection {
  /// Remembers which files the database, the log and its index are, once SQLite has opened them.
  func rememberFiles() throws(RepositoryError) {
    openFiles = []
    for path in [path, path + "-wal", path + "-shm"] {
      guard let identity = try FileIdentity(at: path) else { throw missing(path) }
      openFiles.append((path, identity))
    }
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
