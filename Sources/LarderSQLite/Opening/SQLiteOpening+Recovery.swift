internal import Foundation
internal import Larder

/// The second step of opening: writes what has to be written before the first commit.
extension SQLiteOpening {
  /// Creates a new store, or brings the log that was found into the database, and begins to write; may be tried again when it failed.
  func recover() throws(RepositoryError) -> (SQLiteWriter, SQLiteLocks) {
    guard let locks else { throw RepositoryError(.unsupported, "the store was opened for reading only", file: path.main) }
    if locks.isAlone {
      report.removedTemporaryFiles += try SQLiteDraft.removeLeftovers(of: path, fileSystem)
      if report.isNew, SQLitePath.isAbsent(path.main) { try SQLiteDraft.create(path, row, fileSystem) }
      try locks.takeFile()
      try keepAside()
    }
    try path.checkRollbackJournal(fileSystem)
    guard let connection = try SQLiteConnection(path: path.main, .readWrite) else {
      throw RepositoryError(.dataMissing, "the file went away while it was opened", file: path.main)
    }
    do throws(RepositoryError) {
      let writer = try begin(connection, locks)
      noteReported()
      return (writer, locks)
    } catch {
      // Where there was no log, SQLite removes the empty one that it made.
      if log != nil || !locks.isAlone { connection.keepLogOnClose() }
      do { try connection.close() } catch {}  // the first failure is what the caller must hear
      throw error
    }
  }

  private func begin(_ connection: SQLiteConnection, _ locks: SQLiteLocks) throws(RepositoryError) -> SQLiteWriter {
    guard try connection.text("PRAGMA journal_mode = WAL", while: .writing) == "wal" else {
      throw RepositoryError(.unsupported, "this file system has no shared memory for SQLite's write-ahead log", file: path.main)
    }
    for pragma in SQLiteDraft.pragmas { try connection.execute("PRAGMA \(pragma)") }
    if locks.isAlone { try foldLog(connection) }
    if locks.isShared { try SQLiteSharing.createIndexes(for: collections, on: connection, waiting: lockTimeout) }
    let sharing = locks.isShared ? SQLiteSharing(connection, lockTimeout) : nil
    let writer = try SQLiteWriter(connection, row: row, collections: collections, sharing: sharing)
    try connection.rememberFiles()
    try locks.share()
    return writer
  }

  /// Makes sure that the file is what was read, and that all of its log is on the disk and in the database.
  ///
  /// After a sync that failed, bytes of the log may be in the page cache only, which takes them for written: no later sync writes them. Folding
  /// alone would overwrite the database while the disk has no whole log to repeat it from. So every byte is written again first.
  /// - Throws: `.locked` when another program changes the store in this moment.
  private func foldLog(_ connection: SQLiteConnection) throws(RepositoryError) {
    // Nobody writes to the log while this transaction lasts.
    if log != nil { try connection.execute("BEGIN IMMEDIATE") }
    guard try SQLiteStoreRow(on: connection) == row else {
      throw RepositoryError(.locked, "another program changed the store while it was opened", file: path.main)
    }
    guard log != nil else { return }
    try renewLog()
    try connection.execute("ROLLBACK")
    do throws(RepositoryError) {
      try SQLiteSpace(connection).checkFold(of: path.main)
      try connection.checkpoint(truncating: true)
    } catch {
      // A program that reads, or a full disk: the log is whole on the disk, and commits may follow it.
      guard error.code == .locked || error.code == .full else { throw error }
    }
  }

  /// Writes every byte of the log over itself, and syncs them.
  private func renewLog() throws(RepositoryError) {
    guard let file = try fileSystem.open(path.log, writable: true) else {
      throw RepositoryError(.dataMissing, "the log is gone", file: path.log)
    }
    try Self.copy(file, to: file)
    try file.sync()
    try file.close()
  }

  private static func copy(_ file: any OpenFile, to target: any OpenFile) throws(RepositoryError) {
    let size = try file.size()
    var position = 0
    while position < size {
      let bytes = try file.read(at: position, count: min(1 << 20, size - position))
      if bytes.isEmpty { return }
      var failure: RepositoryError?
      bytes.withUnsafeBytes { buffer in
        do throws(RepositoryError) { try target.write(buffer, at: position) } catch { failure = error }
      }
      if let failure { throw failure }
      position += bytes.count
    }
  }

  /// Copies a log that is not whole, before SQLite overwrites what was cut from it.
  private func keepAside() throws(RepositoryError) {
    guard let offset = log?.lostOffset, let file = try fileSystem.open(path.log, writable: false)
    else { return }
    // An open that was cut short here makes the same copy again.
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
      do { try fileSystem.remove(temporary) } catch {}  // half a copy helps nobody, and the disk may be full
      throw error
    }
    path.giveToOwner(SQLitePath.unreported(copyPath))
    try fileSystem.syncDirectory(path.directory)
    report.cutTail?.quarantineFile = copyPath
  }

  /// Gives the copy of what was cut its lasting name, now that opening cannot fail any more: until then the next open reports the cut again.
  private func noteReported() {
    guard let cut = report.cutTail, !cut.quarantineFile.isEmpty else { return }
    let unreported = SQLitePath.unreported(cut.quarantineFile)
    guard !SQLitePath.isAbsent(unreported) else { return }
    // The log may have been torn at the same place before; those bytes are kept too.
    var (name, number) = (cut.quarantineFile, 2)
    while !SQLitePath.isAbsent(name), number < 1000 { (name, number) = ("\(cut.quarantineFile)-\(number)", number + 1) }
    do throws(RepositoryError) {
      try fileSystem.rename(unreported, to: name)
      report.cutTail?.quarantineFile = name
      try fileSystem.syncDirectory(path.directory)
    } catch {
      // The copy is kept; that the cut will be reported once more does no harm.
      if !SQLitePath.isAbsent(unreported) { report.cutTail?.quarantineFile = unreported }
    }
  }
}
