internal import Larder
internal import Synchronization

/// The state of a store that was suspended, by which its files are known again.
struct SQLiteSuspension {
  /// The row of `larder_store` after the last commit.
  let row: SQLiteStoreRow
  let identity: FileIdentity?
  /// Keeps a descriptor of the database open, so that the system gives its identity to no other file.
  let anchor: SQLiteFileLock?
}

extension SQLiteStore {
  /// The pages of the log up to which it is folded when the store is suspended: 1 MB, which takes some milliseconds.
  private static let foldedPages = 250

  /// Makes everything durable, and gives up the connection and the locks.
  func suspend() throws(RepositoryError) {
    wait.isEnded.store(false, ordering: .relaxed)
    guard case .writing(let writer, let locks) = phase else {
      // A reader holds nothing. A store that was not recovered has committed nothing, and is read anew.
      if case .reading = phase { return }
      return abandon()
    }
    phase = .closed
    do throws(RepositoryError) {
      let identity = writer.connection.openFiles.first?.identity
      let anchor = try SQLiteFileLock.lock(writer.connection.path, .unlocked)
      defer { phase = .suspended(SQLiteSuspension(row: writer.row, identity: identity, anchor: anchor)) }
      if writer.connection.logPageCount <= Self.foldedPages { return try end(writer, locks) }
      defer { leave(writer, locks) }
      try settle(writer)
    } catch {
      leave(writer, locks)
      throw error
    }
  }

  /// Ends the connection, leaves the log as it is, and releases the locks; the second call does nothing.
  private func leave(_ writer: SQLiteWriter, _ locks: SQLiteLocks) {
    writer.abandon()
    locks.release()
  }

  /// Makes every commit durable, with the row that tells of the newest where the disk has room for it.
  private func settle(_ writer: SQLiteWriter) throws(RepositoryError) {
    do throws(RepositoryError) { try writer.settleRow() } catch {
      guard error.code == .full || error.code == .locked else { throw error }
    }
    try writer.flush()
  }

  /// Takes the locks again, if the files tell that nothing is lost by going on; `false` when the store must be read anew.
  func resume() throws(RepositoryError) -> Bool {
    guard case .suspended(let suspension) = phase, let path else {
      if case .reading = phase { return true }
      return false
    }
    try path.checkKinds()
    let locks = try SQLiteLocks(path, options, fileSystem)
    do throws(RepositoryError) {
      path.giveToOwner(path.lock)
      guard suspension.identity != nil, try FileIdentity(at: path.main) == suspension.identity else { throw path.replaced }
      try path.checkRollbackJournal(fileSystem)
      try locks.lockDatabase()
      if let writer = try reconnect(suspension, path, locks) {
        writer.connection.wait = wait
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

  /// Connects to the database, unless only reading all of it would tell what others have done.
  private func reconnect(
    _ suspension: SQLiteSuspension, _ path: SQLitePath, _ locks: SQLiteLocks
  ) throws(RepositoryError) -> SQLiteWriter? {
    let hadLog = try path.hasLog(on: fileSystem)
    guard let connection = try SQLiteConnection(path: path.main, .readWrite) else { throw path.vanished }
    do throws(RepositoryError) {
      try SQLiteOpening.prepare(connection)
      let row = try SQLiteStoreRow(on: connection)
      guard row.id == suspension.row.id, row.commit >= suspension.row.commit else { throw path.replaced }
      if locks.isExclusive, row != suspension.row {
        // A process that wrote alone may have left commits that the row does not tell of, and a log that must be judged.
        guard locks.isShared, !hadLog, try !connection.hasRecords(after: row.commit) else {
          connection.keepLogOnClose()
          try connection.close()
          return nil
        }
      }
      let writer = try writer(on: connection, row, locks)
      if locks.isExclusive { try fileSystem.syncDirectory(path.directory) }
      try connection.rememberFiles()
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
