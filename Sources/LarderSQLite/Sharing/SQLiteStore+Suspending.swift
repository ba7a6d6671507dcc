internal import Foundation
internal import Larder
internal import Synchronization

/// The state of a store that was suspended, by which its files are known again.
struct SQLiteSuspension {
  /// The row of `larder_store` as it was left; `nil` where the row is behind the last commit, as on a full disk.
  let row: SQLiteStoreRow?
  let storeID: UUID
  let identity: FileIdentity?
  /// Whether a log was left, because it was long or others use it.
  let leavesLog: Bool
  /// Keeps a descriptor of the database open, so that the system gives its identity to no other file.
  let anchor: SQLiteFileLock?
}

extension SQLiteStore {
  /// The pages of the log up to which it is folded when the store is suspended: 1 MB, which takes some milliseconds.
  private static let foldedPages = 250

  /// Makes everything durable, and gives up the connection and the locks.
  func suspend() throws(RepositoryError) {
    defer { wait.isEnded.store(false, ordering: .relaxed) }
    switch phase {
    case .writing(let writer, let locks): try suspend(writer, locks)
    // A reader holds nothing.
    case .reading, .suspended: break
    // A store that was not recovered has committed nothing, and is read anew.
    case .unopened, .opening, .opened, .closed: abandon()
    }
  }

  private func suspend(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    let path = writer.connection.path
    // A reader in another process may be busy for seconds.
    wait.isEnded.store(true, ordering: .relaxed)
    writer.connection.stopWaiting()
    var failure: RepositoryError?
    var anchor: SQLiteFileLock?
    do throws(RepositoryError) {
      anchor = try SQLiteFileLock.lock(path, .unlocked)
      // A failed sync of a fold in passing is known to the writer alone.
      try writer.checkUse()
      if writer.connection.logPageCount <= Self.foldedPages { try end(writer, locks) } else { try settle(writer) }
    } catch {
      failure = error
    }
    writer.abandon()
    locks.release()
    let isSettled = writer.storedRow == writer.row
    phase = .suspended(
      SQLiteSuspension(
        row: isSettled ? writer.row : nil, storeID: writer.row.id, identity: writer.connection.openFiles.first?.identity,
        leavesLog: !SQLitePath.isAbsent(path + "-wal"), anchor: anchor))
    if let failure { throw failure }
  }

  /// Makes every commit durable, with the row that tells of the newest where the disk has room for it.
  private func settle(_ writer: SQLiteWriter) throws(RepositoryError) {
    do throws(RepositoryError) { try writer.settleRow() } catch {
      guard error.code == .full || error.code == .locked else { throw error }
    }
    try writer.flush()
  }

  /// Takes the locks again; `false` when the store must be read anew.
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

  /// Connects to the database, unless only reading all of it would show what others have done.
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
        // A process that wrote alone may have left commits that the row does not tell of, and a log that must be judged.
        guard locks.isShared, log == nil, try !connection.hasRecords(after: row.commit) else {
          connection.keepLogOnClose()
          try connection.close()
          return nil
        }
      }
      let writer = try writer(on: connection, row, locks)
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
    try SQLiteSharing.createIndexes(for: collections, on: connection, waiting: options.lockTimeout, comparesOthers: false)
    let sharing = SQLiteSharing(connection, options.lockTimeout)
    return try SQLiteWriter(connection, row: row, collections: collections, sharing: sharing, disk: disk)
  }
}
