internal import Larder
internal import Synchronization

extension SQLiteStore {
  /// Folds the log and ends the connection; only the database file stays.
  func close() throws(RepositoryError) {
    guard case .writing(let writer, let locks) = phase else { return abandon() }
    phase = .closed
    try end(writer, locks)
  }

  /// Folds the log unless another process uses it, ends the connection, and releases the locks.
  func end(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    defer { locks.release() }
    // After a failed sync the log is left for the next open to judge.
    if writer.poison != nil { return writer.abandon() }
    if locks.isShared { return try closeShared(writer, locks) }
    try fold(writer)
  }

  /// Leaves the log to other processes, or folds it if no other process has the store open.
  ///
  /// The connection is closed before the locks tell which, so that the last process has the only connection.
  private func closeShared(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    do {
      defer { writer.abandon() }
      try writer.flush()
    }
    guard locks.reclaim(), let connection = try SQLiteConnection(path: writer.connection.path, .readWrite) else { return }
    connection.wait = wait
    if wait.isEnded.load(ordering: .relaxed) { connection.stopWaiting() }
    try connection.prepareForWriting()
    let collections = try SQLiteLayout.collections(on: connection)
    let writer = try SQLiteWriter(connection, row: SQLiteStoreRow(on: connection), collections: collections, disk: disk)
    if disk.needsOwnSync { try connection.openOwnLog(fileSystem) }
    try fold(writer)
  }

  /// Folds the log and ends the connection; after a failure the files stay as they are.
  private func fold(_ writer: SQLiteWriter) throws(RepositoryError) {
    do {
      try writer.checkpoint(keeping: options.limits.tombstones)
      try writer.close()
    } catch {
      writer.abandon()
      throw error
    }
  }

  /// Ends the use of a store to which nothing was committed: its files stay as they are.
  func abandon() {
    // The log was folded by recovery: SQLite may remove it.
    end { writer in do { try writer.close() } catch { writer.abandon() } }
  }

  /// Ends whatever phase it is, the use of a writer as the body does, and releases the locks.
  func end(_ endWriter: (SQLiteWriter) -> Void) {
    let ending = phase
    phase = .closed
    switch ending {
    case .opening(let opening), .opened(let opening): opening.abandon()
    case .reading(_, let lock): lock?.release()
    case .writing(let writer, let locks):
      endWriter(writer)
      locks.release()
    case .suspended(let suspension): suspension.anchor?.release()
    case .unopened, .closed: break
    }
  }
}
