internal import Foundation
internal import Larder

/// The second step of opening a store: recovery, which writes to the files and makes them ready for the first commit.
extension SQLiteOpening {
  /// Creates a new store, or copies the write-ahead log that was found into the database, and returns the writer.
  ///
  /// The caller may repeat the call of `recover()` after a failure.
  func recover() throws(RepositoryError) -> (SQLiteWriter, SQLiteLocks) {
    guard let locks else { throw path.readOnlyRefusal }
    if locks.isExclusive {
      report.removedTemporaryFiles += try SQLiteDraft.removeLeftovers(of: path, fileSystem)
      if report.isNew, SQLitePath.isAbsent(path.main) { try SQLiteDraft.create(path, row: row, in: fileSystem) }
      // A new store had no database file that the first step of opening could lock, so the new database file is locked now.
      try locks.lockDatabase()
      // The torn end of the log is copied before SQLite opens the log, because SQLite overwrites the part that it ignores.
      try quarantineLog()
    }
    try path.checkRollbackJournal(fileSystem)
    let hadLog = !SQLitePath.isAbsent(path.log)
    // The process that created the store may have been killed before it synced the directory. SQLite creates the log next, and a power cut
    // that loses the name of the database but not that of the log would leave a log without a database.
    if locks.isExclusive, !hadLog { try fileSystem.syncDirectory(path.directory) }
    guard let connection = try SQLiteConnection(path: path.main, .readWrite) else {
      throw path.vanished
    }
    do throws(RepositoryError) {
      let writer = try begin(connection, locks)
      // After this point the opening cannot fail, so the quarantine file (the copy of the torn log) gets its lasting name. After a failed
      // opening the quarantine file keeps its temporary name, and the next opening reports the cut.
      if let cut = report.cutTail {
        report.cutTail?.settleQuarantine(from: SQLitePath.unreported(cut.quarantineFile), in: fileSystem)
        settleEarlierCuts()
      }
      return (writer, locks)
    } catch {
      // If there was no log before the opening, SQLite may remove its own empty log when the connection is closed. A log that an earlier
      // process has left must stay, because it may hold commits.
      if hadLog || !locks.isExclusive { connection.keepLogOnClose() }
      do { try connection.close() } catch {}  // the caller needs the first error and not the error of `close`
      throw error
    }
  }

  private func begin(_ connection: SQLiteConnection, _ locks: SQLiteLocks) throws(RepositoryError) -> SQLiteWriter {
    try Self.prepare(connection)
    if locks.isExclusive {
      // SQLite creates the log file, and does not report if its sync of the directory fails. The directory is synced here again, which
      // throws an error if the log's name could not be made durable.
      try fileSystem.syncDirectory(path.directory)
      let writer = try SQLiteWriter(connection, row: row, collections: collections, disk: disk)
      (writer.summary, writer.indexes) = (summary, indexes)
      // `rememberFiles` opens the second descriptor of the log before the checkpoint, because the checkpoint needs this descriptor to sync
      // the emptied log.
      try Self.rememberFiles(of: connection, on: disk, in: fileSystem)
      try foldLog(writer)
      if !locks.isShared { return writer }
      // Processes that share a store read only the row of `larder_store` to find the newest commit, so the row must be up to date.
      try writer.storeRow()
      try writer.finalizeStatements()
    }
    // Comparing the existing indexes by revision would read every record.
    try SQLiteSharing.createIndexes(for: collections, on: connection, waiting: lockTimeout, comparesOthers: !isPaged)
    let sharing = SQLiteSharing(connection, lockTimeout)
    let writer = try SQLiteWriter(connection, row: row, collections: collections, sharing: sharing, disk: disk)
    writer.summary = summary
    if !locks.isExclusive { try Self.rememberFiles(of: connection, on: disk, in: fileSystem) }
    // As soon as the locks are shared, other processes may commit.
    if isPaged, locks.isExclusive {
      base = try SQLiteBase(path: path.main, commit: Revision(row.commit), indexes: [:], isShared: true)
    }
    // The locks become shared as the last action, because from then on other processes may write to the store.
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

  /// Stores the identities of a writing connection's files for later checks.
  ///
  /// `rememberFiles` also opens a second descriptor of the write-ahead log on systems where SQLite's sync may not reach the medium.
  static func rememberFiles(
    of connection: SQLiteConnection, on disk: SQLiteDisk, in fileSystem: any FileSystem
  ) throws(RepositoryError) {
    try connection.rememberFiles()
    if disk.needsOwnSync { try connection.openOwnLog(fileSystem) }
  }

  /// Renames the quarantine files of earlier, interrupted recoveries to their lasting names.
  ///
  /// An open report can hold only one cut of a torn log. Without the renaming, a later opening that finds no torn log would report the cuts
  /// of earlier recoveries.
  private func settleEarlierCuts() {
    do throws(RepositoryError) {
      for var cut in try Self.unreportedCuts(path, fileSystem) {
        let unreported = SQLitePath.unreported(cut.quarantineFile)
        // If the renaming of the reported quarantine file failed, the report contains the file's temporary name, which must then stay
        // valid.
        if unreported != report.cutTail?.quarantineFile { cut.settleQuarantine(from: unreported, in: fileSystem) }
      }
    } catch {}  // the next opening reports a cut whose file was not renamed
  }

  /// Checks that no other program has changed the store since it was read, and copies the store's write-ahead log into the database.
  ///
  /// After a failed sync, the page cache marks bytes of the log as written that are not on the disk, so no later sync writes them. If the
  /// power fails during a checkpoint, the checkpoint is repeated from the log, so the whole log must be on the disk. Every byte of the log
  /// is therefore written again before the checkpoint.
  /// - Throws: `.locked` when another program has changed the store since it was read.
  private func foldLog(_ writer: SQLiteWriter) throws(RepositoryError) {
    let connection = writer.connection
    // True for a log whose header was torn when a process was killed, and whose pages are all in the database. For such a log, the first
    // step of opening has found nothing to recover.
    let isHeaderTorn = if log == nil { try path.hasLog(on: fileSystem) } else { false }
    // The write transaction keeps other programs from writing to the log while it is checked and written again.
    if log != nil || isHeaderTorn { try connection.execute("BEGIN IMMEDIATE") }
    var isUnchanged = try SQLiteStoreRow(on: connection) == storedRow
    // The row of `larder_store` may be equal although another program has committed, because a commit need not write the row. A commit of
    // another process is in the log, and has left a record with a revision above the newest revision that this opening has read.
    // If the first step used the stored counts, the newest commit has written the row.
    if isUnchanged, summary?.isDue != false, try path.hasLog(on: fileSystem) { isUnchanged = try !connection.hasRecords(after: row.commit) }
    guard isUnchanged else { throw changed }
    if log != nil || isHeaderTorn {
      if isHeaderTorn { try emptyFoldedLog(connection) } else { try renewLog() }
      try connection.execute("ROLLBACK")
    }
    do throws(RepositoryError) {
      try writer.storeRow()
      try writer.storeSummary()
      guard log != nil else { return }
      try SQLiteDiskSpace(of: connection, on: disk).checkFold()
      try connection.checkpoint(.truncating)
      // Without this sync of the emptied log, a power cut could bring its old contents back, together with the torn end that was cut off.
      try connection.syncLog()
    } catch {
      // If a reader of another program blocks the checkpoint or the disk is full, the error is ignored. The log is whole on the disk, and
      // later commits may follow in it.
      guard error.code == .locked || error.code == .full else { throw error }
    }
  }

  /// Writes every byte of the write-ahead log over itself, cuts the part that was quarantined, and syncs the log.
  ///
  /// If the following checkpoint is impossible, later commits are appended to the same log. No frames of the torn end may stand behind
  /// later commits, so the torn end is cut off.
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
      // The log is copied in pieces of 1 MiB, because a long log may not fit in memory.
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

  /// Empties a write-ahead log whose header was torn when a process was killed, and whose pages are all in the database.
  ///
  /// No other program may write to the log during this call. The log is emptied because SQLite makes the salts of the next generation from
  /// the header, even from half a header. Salts made from half a header could equal the salts of frames left in the log. If the salts of
  /// the next generation looked older than those of the frames left in the log, these frames would look like the torn end of the next
  /// generation.
  /// - Throws: `.locked` when another program has begun a log since the first step of the opening.
  private func emptyFoldedLog(_ connection: SQLiteConnection) throws(RepositoryError) {
    guard let source = try fileSystem.open(path.log, writable: false), try Self.inspect(source, path) == nil,
      let file = try fileSystem.open(path.log, writable: true)
    else { throw changed }
    // The database is synced before the log is cut to zero bytes, because the database's pages may be only in the page cache, so that their
    // only copy on the disk is in the log.
    try connection.syncDatabase()
    try file.cut(to: 0)
    try file.sync()
    try file.close()
  }

  /// Copies a torn write-ahead log to a quarantine file, before SQLite overwrites the part of the log that it ignores.
  private func quarantineLog() throws(RepositoryError) {
    guard let offset = log?.lostOffset, let file = try fileSystem.open(path.log, writable: false) else { return }
    // The name of the quarantine file depends only on the store's commit and the offset of the damage. If the process is killed during this
    // function, the next opening writes the same copy again.
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
      do { try fileSystem.remove(temporary) } catch {}  // an incomplete copy is of no use and takes space on a disk that may be full
      throw error
    }
    path.giveToOwner(SQLitePath.unreported(copyPath))
    // The name of the quarantine file must be durable before recovery cuts the log, because a power cut could otherwise take the only copy
    // of the cut bytes.
    try fileSystem.syncDirectory(path.directory)
    report.cutTail?.quarantineFile = copyPath
  }
}
