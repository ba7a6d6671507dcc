internal import Foundation
internal import Larder
internal import Synchronization

/// The state of a suspended store.
///
/// When the store resumes, its files are compared with this state.
struct SQLiteSuspension {
  /// The row of `larder_store` at the suspension, or `nil` if the stored row is older than the last commit, as on a full disk.
  let row: SQLiteStoreRow?
  let storeID: UUID
  let identity: FileIdentity?
  /// Whether the suspension left a write-ahead log, because the log was long or other processes use it.
  let leavesLog: Bool
  /// Summary of the collections, if the writer has kept it up to date.
  let summary: SQLiteSummary?
  /// Indexes in the database, and the number that changes with each table that is created or dropped.
  let indexes: SQLiteIndexes
  let schemaVersion: Int64?
  /// Keeps a descriptor of the database open, because the system could give the identity of a deleted file to a new file.
  let anchor: SQLiteFileLock?
}

extension SQLiteStore {
  /// Largest number of pages of a write-ahead log that a suspension copies into the database: 1 MB, which takes some milliseconds.
  private static let foldedPages = 250

  /// Makes all commits durable, and gives up the connection and the locks.
  func suspend() throws(RepositoryError) {
    // Waits for locks are allowed again even if the suspension fails, because a later phase of the store must be able to wait.
    defer { wait.isEnded.store(false, ordering: .relaxed) }
    switch phase {
    case .writing(let writer, let locks): try suspend(writer, locks)
    // A store opened for reading holds no lock between its calls, so there is nothing to release.
    case .reading, .suspended: break
    // A store whose recovery is still due has committed nothing. The suspension of a store whose recovery is still due closes the store,
    // which must then be opened anew.
    case .unopened, .opening, .opened, .closed: abandon()
    }
  }

  private func suspend(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    let path = writer.connection.path
    // A reader in another process may hold its lock for seconds, and a suspension must not wait for that lock.
    wait.isEnded.store(true, ordering: .relaxed)
    writer.connection.stopWaiting()
    bases.suspend(at: writer.row.commit)
    var failure: RepositoryError?
    var anchor: SQLiteFileLock?
    var schemaVersion: Int64?
    do throws(RepositoryError) {
      // The anchor, which keeps a descriptor of the database open, is registered before the locks are released, because the release of the
      // last store closes all descriptors of the file.
      anchor = try SQLiteFileLock.lock(path, .unlocked)
      // A checkpoint after a commit does not throw its failed sync, but records it in the writer. `checkUse()` throws the recorded error,
      // so that the suspension does not report success.
      try writer.checkUse()
      schemaVersion = try writer.connection.number("PRAGMA schema_version")
      if writer.connection.logPageCount <= Self.foldedPages { try end(writer, locks) } else { try settle(writer) }
    } catch {
      failure = error
    }
    // The locks are released even after a failure, because iOS ends a suspended process that holds a lock on a file in a shared container.
    writer.abandon()
    locks.release()
    let isSettled = writer.storedRow == writer.row
    phase = .suspended(
      SQLiteSuspension(
        row: isSettled ? writer.row : nil, storeID: writer.row.id, identity: writer.connection.openFiles.first?.identity,
        leavesLog: !SQLitePath.isAbsent(path + "-wal"), summary: writer.summary, indexes: writer.indexes,
        schemaVersion: schemaVersion, anchor: anchor))
    if let failure { throw failure }
  }

  /// Makes every commit durable, and writes the row of `larder_store` if the disk has room for it.
  private func settle(_ writer: SQLiteWriter) throws(RepositoryError) {
    do throws(RepositoryError) { try writer.settleRow() } catch {
      guard error.code == .full || error.code == .locked else { throw error }
    }
    try writer.flush()
  }

  /// Takes the locks again after a suspension, or returns false when the store must be opened anew.
  func resume() throws(RepositoryError) -> Bool {
    guard case .suspended(let suspension) = phase, let path else {
      if case .reading = phase { return true }
      return false
    }
    try path.checkKinds()
    let locks = try SQLiteLocks(path, options: options, in: fileSystem)
    do throws(RepositoryError) {
      path.giveToOwner(path.lock)
      let identity = try FileIdentity(at: path.main)
      guard let identity else { throw path.vanished }
      // The records in memory are those of the file that was suspended, so the store must not resume on another file.
      guard identity == suspension.identity else { throw path.replaced }
      try path.checkRollbackJournal(fileSystem)
      try locks.lockDatabase()
      if let writer = try reconnect(suspension, at: path, holding: locks) {
        writer.bases = bases
        phase = .writing(writer, locks)
        bases.resume(keeping: writer.indexes.complete)
      } else {
        bases.supersedeAll()
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
    _ suspension: SQLiteSuspension, at path: SQLitePath, holding locks: SQLiteLocks
  ) throws(RepositoryError) -> SQLiteWriter? {
    let log = try fileSystem.status(of: path.log)
    guard let connection = try SQLiteConnection(path: path.main, .readWrite) else { throw path.vanished }
    connection.wait = wait
    do throws(RepositoryError) {
      try SQLiteOpening.prepare(connection)
      let row = try SQLiteStoreRow(on: connection)
      guard row.id == suspension.storeID, row.commit >= suspension.row?.commit ?? 0 else { throw path.replaced }
      if locks.isExclusive, row != suspension.row || log != nil && !suspension.leavesLog {
        // If the row of `larder_store` or the log has changed, another process has used the store during the suspension. An exclusive
        // writer may have left commits that are newer than the row, and a killed writer may have left a log that must be checked for lost
        // commits.
        guard locks.isShared, log == nil, try !connection.hasRecords(after: row.commit) else {
          connection.keepLogOnClose()
          try connection.close()
          return nil
        }
      }
      let writer = try writer(on: connection, row, locks)
      if let summary = suspension.summary, locks.isShared {
        writer.summary =
          row == suspension.row ? summary : try SQLiteSummary.found(on: connection, of: row, and: Array(writer.collections))
      } else if suspension.summary != nil {
        writer.summary = suspension.summary
        // Another process may have built or dropped an index without a commit. A build creates a table, which changes the schema. A drop
        // deletes a row.
        var isUnchanged = try connection.number("PRAGMA schema_version") == suspension.schemaVersion
        if isUnchanged { isUnchanged = try suspension.indexes.areThoseOfRows(on: connection) }
        writer.indexes = isUnchanged ? suspension.indexes : try SQLiteIndexes(on: connection)
      }
      // The first commit to an empty write-ahead log must write the row of `larder_store`. An existing log already holds commits, so its
      // length must not count as 0.
      if let log { connection.noteLogLength(bytes: log.size) }
      if locks.isExclusive { try fileSystem.syncDirectory(path.directory) }
      try SQLiteOpening.rememberFiles(of: connection, on: disk, in: fileSystem)
      try locks.share()
      return writer
    } catch {
      connection.keepLogOnClose()
      do { try connection.close() } catch {}  // the caller needs the first error and not that of `close`
      throw error
    }
  }

  private func writer(
    on connection: SQLiteConnection, _ row: SQLiteStoreRow, _ locks: SQLiteLocks
  ) throws(RepositoryError) -> SQLiteWriter {
    let collections = try SQLiteLayout.collections(on: connection)
    guard locks.isShared else { return try SQLiteWriter(connection, row: row, collections: collections, disk: disk) }
    // The existing indexes are not compared, because that scans every table, and resuming must be quick.
    try SQLiteSharing.createIndexes(for: collections, on: connection, waiting: options.lockTimeout, comparesOthers: false)
    let sharing = SQLiteSharing(connection, options.lockTimeout)
    return try SQLiteWriter(connection, row: row, collections: collections, sharing: sharing, disk: disk)
  }
}
