internal import Foundation
internal import Larder

/// The second step of opening: recovery, which writes.
extension SQLiteOpening {
  /// Creates a new store, or copies the write-ahead log that was found into the database, and returns the writer.
  ///
  /// May be repeated after a failure.
  func recover() throws(RepositoryError) -> (SQLiteWriter, SQLiteLocks) {
    guard let locks else { throw path.readOnlyRefusal }
    if locks.isExclusive {
      report.removedTemporaryFiles += try SQLiteDraft.removeLeftovers(of: path, fileSystem)
      if report.isNew, SQLitePath.isAbsent(path.main) { try SQLiteDraft.create(path, row, fileSystem) }
      // A new store had no database to lock in the first step.
      try locks.lockDatabase()
      // Before SQLite opens the log: it overwrites the part that it ignores.
      try quarantineLog()
    }
    try path.checkRollbackJournal(fileSystem)
    let hadLog = !SQLitePath.isAbsent(path.log)
    // The process that made the store may not have lived to sync its name, and SQLite makes the log's name now. A power cut that takes the
    // first alone would leave a log without a database.
    if locks.isExclusive, !hadLog { try fileSystem.syncDirectory(path.directory) }
    guard let connection = try SQLiteConnection(path: path.main, .readWrite) else {
      throw path.vanished
    }
    do throws(RepositoryError) {
      let writer = try begin(connection, locks)
      // Opening cannot fail any more. Until now, the next opening would have reported the cut again.
      if let cut = report.cutTail {
        report.cutTail?.settleQuarantine(from: SQLitePath.unreported(cut.quarantineFile), in: fileSystem)
        settleEarlierCuts()
      }
      return (writer, locks)
    } catch {
      // Where there was no log, SQLite removes the empty one that it made.
      if hadLog || !locks.isExclusive { connection.keepLogOnClose() }
      do { try connection.close() } catch {}  // the first failure is the one to report
      throw error
    }
  }

  private func begin(_ connection: SQLiteConnection, _ locks: SQLiteLocks) throws(RepositoryError) -> SQLiteWriter {
    try Self.prepare(connection)
    if locks.isExclusive {
      // SQLite reports no failure to make the name of the log durable.
      try fileSystem.syncDirectory(path.directory)
      let writer = try SQLiteWriter(connection, row: row, collections: collections, disk: disk)
      // Before the checkpoint: emptying the log is synced like a commit.
      try Self.rememberFiles(of: connection, on: disk, in: fileSystem)
      try foldLog(writer)
      if !locks.isShared { return writer }
      // Processes that share a store read only its row to find the newest commit.
      try writer.storeRow()
      try writer.finalizeStatements()
    }
    try SQLiteSharing.createIndexes(for: collections, on: connection, waiting: lockTimeout)
    let sharing = SQLiteSharing(connection, lockTimeout)
    let writer = try SQLiteWriter(connection, row: row, collections: collections, sharing: sharing, disk: disk)
    if !locks.isExclusive { try Self.rememberFiles(of: connection, on: disk, in: fileSystem) }
    // Last: other processes may write from here on.
    try locks.share()
    return writer
  }

  /// Applies the settings of a writing connection, and makes SQLite use a write-ahead log.
  static func prepare(_ connection: SQLiteConnection) throws(RepositoryError) {
    guard try connection.text("PRAGMA journal_mode = WAL", while: .writing) == "wal" else {
      throw RepositoryError(
        .unsupported, "expected a file system with shared memory for SQLite's write-ahead log, found none: keep the store on a local disk",
        file: connection.path)
    }
    try connection.prepareForWriting()
  }

  /// Stores the identities of a writing connection's files, and opens its write-ahead log again where SQLite's syncs may not reach the
  /// medium.
  static func rememberFiles(
    of connection: SQLiteConnection, on disk: SQLiteDisk, in fileSystem: any FileSystem
  ) throws(RepositoryError) {
    try connection.rememberFiles()
    if disk.needsOwnSync { try connection.openOwnLog(fileSystem) }
  }

  /// Renames the quarantine files of interrupted recoveries to their lasting names.
  ///
  /// A report has one cut, and a later opening that finds nothing torn would report the others.
  private func settleEarlierCuts() {
    do throws(RepositoryError) {
      for var cut in try Self.unreportedCuts(path, fileSystem) {
        let unreported = SQLitePath.unreported(cut.quarantineFile)
        // A file that could not be renamed keeps this name, and the report has it.
        if unreported != report.cutTail?.quarantineFile { cut.settleQuarantine(from: unreported, in: fileSystem) }
      }
    } catch {}  // opening cannot fail any more, and the next one reports them
  }

  /// Checks that the store is the one that was read, and copies its write-ahead log into the database.
  ///
  /// After a failed sync, bytes of the log may be in the page cache only, which takes them for written: no later sync writes them. A
  /// checkpoint alone would overwrite the database while the disk has no whole log to repeat it from. So every byte is written again first.
  /// - Throws: `.locked` when another program has changed the store since it was read.
  private func foldLog(_ writer: SQLiteWriter) throws(RepositoryError) {
    let connection = writer.connection
    // True for a log that has nothing to recover and whose header a kill has cut short.
    let isHeaderTorn = if log == nil { try path.hasLog(on: fileSystem) } else { false }
    // The transaction keeps other programs from writing to the log.
    if log != nil || isHeaderTorn { try connection.execute("BEGIN IMMEDIATE") }
    var isUnchanged = try SQLiteStoreRow(on: connection) == storedRow
    // Without a log nothing was committed since the first step. A log that is there now is of another program.
    if isUnchanged, try path.hasLog(on: fileSystem) { isUnchanged = try !connection.hasRecords(after: row.commit) }
    guard isUnchanged else { throw changed }
    if log != nil || isHeaderTorn {
      if isHeaderTorn { try emptyFoldedLog(connection) } else { try renewLog() }
      try connection.execute("ROLLBACK")
    }
    do throws(RepositoryError) {
      try writer.storeRow()
      guard log != nil else { return }
      try SQLiteDiskSpace(of: connection, on: disk).checkFold()
      try connection.checkpoint(.truncating)
      // A power cut would bring the log back, with the torn end that was cut from it.
      try connection.syncLog()
    } catch {
      // Another program reads, or the disk is full: the log is whole on the disk, and commits may follow it.
      guard error.code == .locked || error.code == .full else { throw error }
    }
  }

  /// Writes every byte of the write-ahead log over itself, cuts the part that was quarantined, and syncs the log.
  ///
  /// If no checkpoint is possible now, later commits follow in the same log, and frames that were cut must not stand behind them.
  private func renewLog() throws(RepositoryError) {
    guard let file = try fileSystem.open(path.log, writable: true) else {
      throw RepositoryError(.dataMissing, "the log was removed while it was recovered: open the store again", file: path.log)
    }
    try Self.copy(file, to: file)
    if let offset = log?.lostOffset { try file.cut(to: offset) }
    try file.sync()
    try file.close()
  }

  private static func copy(_ file: any OpenFile, to target: any OpenFile) throws(RepositoryError) {
    let size = try file.size()
    var position = 0
    while position < size {
      // In pieces of 1 MiB, so that a long log does not have to fit in memory.
      let bytes = try file.read(at: position, count: min(1 << 20, size - position))
      guard !bytes.isEmpty else {
        throw RepositoryError(
          .inputOutput, "expected \(size - position) more bytes of the write-ahead log, the disk gave none: check the disk, and try again",
          file: file.path, offset: UInt64(position))
      }
      var failure: RepositoryError?
      bytes.withUnsafeBytes { buffer in
        do throws(RepositoryError) { try target.write(buffer, at: position) } catch { failure = error }
      }
      if let failure { throw failure }
      position += bytes.count
    }
  }

  private var changed: RepositoryError {
    RepositoryError(.locked, "another program changed the store while it was opened: try again", file: path.main)
  }

  /// Empties a write-ahead log whose header a kill has cut short, and whose pages are all in the database.
  ///
  /// No other program may write to it meanwhile. SQLite makes the salts of the next generation from a header, also from half of one. They
  /// could be those of frames that are left in the log, or look older, and the frames like the torn end of that generation.
  /// - Throws: `.locked` when another program has begun a log since the first step.
  private func emptyFoldedLog(_ connection: SQLiteConnection) throws(RepositoryError) {
    guard let source = try fileSystem.open(path.log, writable: false), try Self.inspect(source, path) == nil,
      let file = try fileSystem.open(path.log, writable: true)
    else { throw changed }
    // The database's pages may be in the page cache alone, and the log is their only copy on the disk.
    try connection.syncDatabase()
    try file.cut(to: 0)
    try file.sync()
    try file.close()
  }

  /// Copies a torn write-ahead log to a quarantine file, before SQLite overwrites the part that it ignores.
  private func quarantineLog() throws(RepositoryError) {
    guard let offset = log?.lostOffset, let file = try fileSystem.open(path.log, writable: false) else { return }
    // After an interruption here, the next opening makes the same copy again.
    let copyPath = path.quarantine(commit: row.commit, offset: offset)
    let temporary = copyPath + "-tmp"
    try fileSystem.remove(temporary)
    do throws(RepositoryError) {
      let copy = try fileSystem.create(temporary)
      try Self.copy(file, to: copy)
      try copy.sync()
      try copy.close()
      try fileSystem.rename(temporary, to: SQLitePath.unreported(copyPath))
    } catch {
      do { try fileSystem.remove(temporary) } catch {}  // half a copy is of no use, and the disk may be full
      throw error
    }
    path.giveToOwner(SQLitePath.unreported(copyPath))
    // The copy must be durable before recovery cuts the log.
    try fileSystem.syncDirectory(path.directory)
    report.cutTail?.quarantineFile = copyPath
  }
}
