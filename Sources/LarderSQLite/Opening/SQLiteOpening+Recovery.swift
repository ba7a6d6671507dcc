internal import Foundation
internal import Larder

/// The second step of opening.
extension SQLiteOpening {
  /// Creates a new store, or folds the log that was found into the database, and returns the writer; may be repeated after a failure.
  func recover() throws(RepositoryError) -> (SQLiteWriter, SQLiteLocks) {
    guard let locks else { throw path.readOnlyRefusal }
    if locks.isExclusive {
      report.removedTemporaryFiles += try SQLiteDraft.removeLeftovers(of: path, fileSystem)
      if report.isNew, SQLitePath.isAbsent(path.main) { try SQLiteDraft.create(path, row, fileSystem) }
      try locks.lockDatabase()
      try quarantineLog()
    }
    try path.checkRollbackJournal(fileSystem)
    let hadLog = !SQLitePath.isAbsent(path.log)
    // The process that made the store may not have lived to sync its name, and SQLite makes the log's now: a power cut that takes the first
    // alone would leave a log without a database.
    if locks.isExclusive, !hadLog { try fileSystem.syncDirectory(path.directory) }
    guard let connection = try SQLiteConnection(path: path.main, .readWrite) else {
      throw path.vanished
    }
    do throws(RepositoryError) {
      let writer = try begin(connection, locks)
      // Opening cannot fail any more: until now, the next one would have reported the cut again.
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
      // SQLite does not say when the name of the log cannot be made durable.
      try fileSystem.syncDirectory(path.directory)
      let writer = try SQLiteWriter(connection, row: row, collections: collections, disk: disk)
      // Before the log is folded: emptying it is synced like a commit.
      try Self.rememberFiles(of: connection, on: disk, in: fileSystem)
      try foldLog(writer)
      if !locks.isShared { return writer }
      // Processes that share a store look at its row alone.
      try writer.storeRow()
      try writer.finalizeStatements()
    }
    try SQLiteSharing.createIndexes(for: collections, on: connection, waiting: lockTimeout)
    let sharing = SQLiteSharing(connection, lockTimeout)
    let writer = try SQLiteWriter(connection, row: row, collections: collections, sharing: sharing, disk: disk)
    if !locks.isExclusive { try Self.rememberFiles(of: connection, on: disk, in: fileSystem) }
    try locks.share()
    return writer
  }

  /// Has a connection write by way of the log.
  static func prepare(_ connection: SQLiteConnection) throws(RepositoryError) {
    guard try connection.text("PRAGMA journal_mode = WAL", while: .writing) == "wal" else {
      throw RepositoryError(
        .unsupported, "expected a file system with shared memory for SQLite's write-ahead log, found none: keep the store on a local disk",
        file: connection.path)
    }
    try connection.prepareForWriting()
  }

  /// Remembers the files of a connection that is about to write, and opens its log once more where SQLite's syncs may not be enough.
  static func rememberFiles(
    of connection: SQLiteConnection, on disk: SQLiteDisk, in fileSystem: any FileSystem
  ) throws(RepositoryError) {
    try connection.rememberFiles()
    if disk.needsOwnSync { try connection.openOwnLog(fileSystem) }
  }

  /// Gives the bytes that interrupted recoveries have cut their lasting names: a report has one cut, and a later opening that finds nothing
  /// torn would report them.
  private func settleEarlierCuts() {
    do throws(RepositoryError) {
      for var cut in try Self.unreportedCuts(path, fileSystem) {
        let unreported = SQLitePath.unreported(cut.quarantineFile)
        // One that could not be renamed is named so by the report.
        if unreported != report.cutTail?.quarantineFile { cut.settleQuarantine(from: unreported, in: fileSystem) }
      }
    } catch {}  // opening cannot fail any more; they are reported later
  }

  /// Checks that the file is the one that was read, and folds its log into the database.
  ///
  /// After a failed sync, bytes of the log may be in the page cache only, which takes them for written: no later sync writes them. Folding
  /// alone would overwrite the database while the disk has no whole log to repeat it from. So every byte is written again first.
  /// - Throws: `.locked` when another program has changed the store since it was read.
  private func foldLog(_ writer: SQLiteWriter) throws(RepositoryError) {
    let connection = writer.connection
    // One that was folded, and whose header a kill has cut short.
    let isHeaderTorn = if log == nil { try path.hasLog(on: fileSystem) } else { false }
    // The transaction keeps other programs from writing to the log.
    if log != nil || isHeaderTorn { try connection.execute("BEGIN IMMEDIATE") }
    var isUnchanged = try SQLiteStoreRow(on: connection) == storedRow
    // Without a log nothing was committed since; one that is there now is of another program.
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

  /// Writes every byte of the log over itself, without what SQLite ignores and was kept aside, and syncs them.
  ///
  /// Where the log cannot be folded now, later commits follow in it: frames that were cut must not stand behind them.
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

  /// Empties a log whose header a kill has cut short, and whose pages the database has; no other program may write to it meanwhile.
  ///
  /// SQLite makes the salts of the next generation from a header, also from half of one. They could be those of frames that are left in the
  /// log, or look older, and the frames like the torn end of that generation.
  /// - Throws: `.locked` when another program has begun a log since the first step.
  private func emptyFoldedLog(_ connection: SQLiteConnection) throws(RepositoryError) {
    guard let source = try fileSystem.open(path.log, writable: false), try Self.inspect(source, path) == nil,
      let file = try fileSystem.open(path.log, writable: true)
    else { throw changed }
    // The pages may be in the page cache alone.
    try connection.syncDatabase()
    try file.cut(to: 0)
    try file.sync()
    try file.close()
  }

  /// Copies a torn log, before SQLite overwrites the part that it ignores.
  private func quarantineLog() throws(RepositoryError) {
    guard let offset = log?.lostOffset, let file = try fileSystem.open(path.log, writable: false) else { return }
    // After an interruption here, the next open makes the same copy again.
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
    try fileSystem.syncDirectory(path.directory)
    report.cutTail?.quarantineFile = copyPath
  }
}
