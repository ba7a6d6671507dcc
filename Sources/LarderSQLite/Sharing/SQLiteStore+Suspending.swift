internal import Foundation
internal import Larder
internal import Synchronization

/// The state of a suspended store, with which its files are compared when it resumes.
struct SQLiteSuspension {
  /// The row of `larder_store` when the store was suspended, or `nil` where it is behind the last commit, as on a full disk.
  let row: SQLiteStoreRow?
  let storeID: UUID
  let identity: FileIdentity?
  /// Whether a write-ahead log was left, because it was long or other processes use it.
  let leavesLog: Bool
  /// Keeps a descriptor of the database open, so that the system gives its identity to no other file.
  let anchor: SQLiteFileLock?
}

extension SQLiteStore {
  /// Largest number of pages of a write-ahead log that is copied into the database at suspension: 1 MB, which takes some milliseconds.
  private static let foldedPages = 250

  /// Makes all commits durable, and gives up the connection and the locks.
  func suspend() throws(RepositoryError) {
    // Also when it throws: a later phase must be able to wait again.
    defer { wait.isEnded.store(false, ordering: .relaxed) }
    switch phase {
    case .writing(let writer, let locks): try suspend(writer, locks)
    // A reader holds no lock.
    case .reading, .suspended: break
    // A store that was not recovered has committed nothing, and is read anew.
    case .unopened, .opening, .opened, .closed: abandon()
    }
  }

  private func suspend(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    let path = writer.connection.path
    // A reader in another process may be busy for seconds, and a suspension must not wait for it.
    wait.isEnded.store(true, ordering: .relaxed)
    writer.connection.stopWaiting()
    var failure: RepositoryError?
    var anchor: SQLiteFileLock?
    do throws(RepositoryError) {
      // Before the locks are released: without it, their descriptor would be closed.
      anchor = try SQLiteFileLock.lock(path, .unlocked)
      // Only the writer has recorded the failed sync of an earlier checkpoint.
      try writer.checkUse()
      if writer.connection.logPageCount <= Self.foldedPages { try end(writer, locks) } else { try settle(writer) }
    } catch {
      failure = error
    }
    // Also after a failure: iOS ends a suspended process that holds a lock on a file in a shared container.
    writer.abandon()
    locks.release()
    let isSettled = writer.storedRow == writer.row
    phase = .suspended(
      SQLiteSuspension(
        row: isSettled ? writer.row : nil, storeID: writer.row.id, identity: writer.connection.openFiles.first?.identity,
        leavesLog: !SQLitePath.isAbsent(path + "-wal"), anchor: anchor))
    if let failure { throw failure }
  }

  /// Makes every commit durable, and writes the store's row where the disk has room for it.
  private func settle(_ writer: SQLiteWriter) throws(RepositoryError) {
    do throws(RepositoryError) { try writer.settleRow() } catch {
      guard error.code == .full || error.code == .locked else { throw error }
    }
    try writer.flush()
  }

  /// Takes the locks again, or returns false when the store must be read anew.
  func resume() throws(RepositoryError) -> Bool {
    guard case .suspended(let suspension) = phase, let path else {
      if case .reading = phase { return true }
      return false
    }
    try path.checkKinds()
    let locks = try SQLiteLocks(path, options, fileSystem)
    do throws(RepositoryError) {
      path.giveToOwner(path.lock)
      let identity = try FileIdentity(at: path.main)
      guard let identity else { throw path.vanished }
      // The records in memory are those of that file alone.
      guard identity == suspension.identity else { throw path.replaced }
      try path.checkRollbackJournal(fileSystem)
      try locks.lockDatabase()
      if let writer = try reconnect(suspension, path, locks) {
        phase = .writing(writer, locks)
      } else {
        locks.release()
        phase = .closed
      }
    } catch {
      locks.release()
      throw error
    }
    suspension.anchor?.release()
    if case .writing = phase { return true }
    return false
  }

  /// Connects to the database, or returns `nil` if only reading all rows would reveal the commits of other processes.
  private func reconnect(
    _ suspension: SQLiteSuspension, _ path: SQLitePath, _ locks: SQLiteLocks
  ) throws(RepositoryError) -> SQLiteWriter? {
    let log = try fileSystem.status(of: path.log)
    guard let connection = try SQLiteConnection(path: path.main, .readWrite) else { throw path.vanished }
    connection.wait = wait
    do throws(RepositoryError) {
      try SQLiteOpening.prepare(connection)
      let row = try SQLiteStoreRow(on: connection)
      guard row.id == suspension.storeID, row.commit >= suspension.row?.commit ?? 0 else { throw path.replaced }
      if locks.isExclusive, row != suspension.row || log != nil && !suspension.leavesLog {
        // A process that wrote alone may have left commits that the row is behind, and a log that must be judged.
        guard locks.isShared, log == nil, try !connection.hasRecords(after: row.commit) else {
          connection.keepLogOnClose()
          try connection.close()
          return nil
        }
      }
      let writer = try writer(on: connection, row, locks)
      // The first commit to a log must write the store's row, and this log has begun already.
      if let log { connection.noteLogLength(bytes: log.size) }
      if locks.isExclusive { try fileSystem.syncDirectory(path.directory) }
      try SQLiteOpening.rememberFiles(of: connection, on: disk, in: fileSystem)
      try locks.share()
      return writer
    } catch {
      connection.keepLogOnClose()
      do { try connection.close() } catch {}  // the first failure is the one to report
      throw error
    }
  }

  private func writer(
    on connection: SQLiteConnection, _ row: SQLiteStoreRow, _ locks: SQLiteLocks
  ) throws(RepositoryError) -> SQLiteWriter {
    let collections = try SQLiteLayout.collections(on: connection)
    guard locks.isShared else { return try SQLiteWriter(connection, row: row, collections: collections, disk: disk) }
    // Comparing the indexes would scan every table, and resuming must be quick.
    try SQLiteSharing.createIndexes(for: collections, on: connection, waiting: options.lockTimeout, comparesOthers: false)
    let sharing = SQLiteSharing(connection, options.lockTimeout)
    return try SQLiteWriter(connection, row: row, collections: collections, sharing: sharing, disk: disk)
  }
}
