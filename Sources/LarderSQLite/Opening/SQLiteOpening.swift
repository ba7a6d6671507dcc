// Opening/ brings a store from its files to its first commit: it locks, reads and judges, and only then writes.
// Invariant: until recovery, nothing is written but the lock file. Called by SQLiteStore.

internal import Foundation
internal import Larder

/// The first step of opening: reads everything and judges it.
///
/// It goes `init`, then `next` until that gives `nil`. What has to be written waits for ``recover(_:)``; without it, `abandon` ends the opening.
///
/// Invariant: nothing is written, and no file is made but the lock's. Between the steps there is no connection, only the locks.
final class SQLiteOpening {
  let path: SQLitePath
  let row: SQLiteStoreRow
  let collections: [String]
  var report: OpenReport

  let fileSystem: any FileSystem
  /// The locks; `nil` for reading only.
  let locks: SQLiteLocks?
  /// What a store that is read only needs in their place.
  let readingLock: SQLiteFileLock?
  /// The log that an unclean end has left, if this process has to see to it.
  let log: SQLiteLog?
  let lockTimeout: Duration
  private let reading: Reading?
  /// What a read-only opening has read already.
  private var readAlready: [[StoredRecord]] = []
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant

  private struct Reading {
    let connection: SQLiteConnection
    let reader: SQLiteReader

    init(_ path: SQLitePath, _ mode: SQLiteConnection.Mode, checking isUnclean: Bool) throws(RepositoryError) {
      guard let connection = try SQLiteConnection(path: path.main, mode) else {
        throw RepositoryError(.dataMissing, "the file went away while it was opened", file: path.main)
      }
      // Closing would fold the log and remove it.
      connection.keepLogOnClose()
      if isUnclean, try connection.text("PRAGMA quick_check(1)") != "ok" {
        throw connection.damagedOrUnreadable("SQLite's quick check found damage")
      }
      reader = try SQLiteReader(connection)
      self.connection = connection
    }
  }

  // MARK: For writing

  /// Takes the locks, and checks everything that can be checked before reading records.
  init(_ file: URL, _ options: StoreOptions, _ fileSystem: any FileSystem) throws(RepositoryError) {
    start = clock.now
    self.fileSystem = fileSystem
    let path = try SQLitePath(file) { directory throws(RepositoryError) in try fileSystem.createDirectory(directory) }
    self.path = path
    try path.checkKinds()
    let locks = try SQLiteLocks(path, options, fileSystem)
    (lockTimeout, readingLock) = (options.lockTimeout, nil)
    path.giveToOwner(path.lock)
    do throws(RepositoryError) {
      let isNew = try Self.preflight(path, fileSystem)
      // Who finds others there leaves to them what they have done: creating, and judging the log.
      guard !isNew || locks.isAlone else { throw RepositoryError(.dataMissing, "the file went away while it was open", file: path.main) }
      try locks.takeFile()
      let log = isNew || !locks.isAlone ? nil : try Self.inspectLog(path, fileSystem)
      let reading = isNew ? nil : try Self.beginReading(path, log, isAlone: locks.isAlone)
      let row = reading?.reader.row ?? SQLiteStoreRow(id: UUID())
      if let log {
        try Self.judge(log, path, isBuffered: row.isBuffered, options.recovery)
        try Self.checkContinuity(path, row)
      }
      (self.row, self.log, self.reading, self.locks) = (row, log, reading, locks)
      collections = reading?.reader.collections ?? []
      report = OpenReport(
        storeID: row.id, commit: Revision(row.commit), isNew: isNew, replayedCommits: log?.transactions ?? 0,
        tombstoneHorizon: Revision(row.tombstonesSince))
      if let log, let offset = log.lostOffset {
        // Nothing in a log tells a last write that was torn from the rest of several that were cut off.
        report.cutTail = .init(file: path.log, offset: UInt64(offset), byteCount: log.lostCount, quarantineFile: "", isAmbiguous: true)
      } else if !isNew, locks.isAlone {
        report.cutTail = try Self.unreportedCut(path, fileSystem)
      }
    } catch {
      locks.release()
      throw error
    }
  }

  /// Looks at the file's header without changing anything; `true` when there is no store at all.
  private static func preflight(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> Bool {
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else {
      for other in [path.log, path.rollbackJournal] where !SQLitePath.isAbsent(other) {
        throw RepositoryError(.dataMissing, "the database is gone, its journal is there", file: other)
      }
      return true
    }
    let (bytes, size) = try connection.header()
    try SQLiteLayout.check(header: bytes, size: size, file: path.main)
    try connection.close()
    try path.checkRollbackJournal(fileSystem)
    return false
  }

  /// Looks at the write-ahead log that an unclean end has left; `nil` when there is none.
  ///
  /// It is synced first: decisions must not rest on bytes that a killed process left in the page cache.
  private static func inspectLog(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> SQLiteLog? {
    guard let file = try fileSystem.open(path.log, writable: true), try file.size() > 0 else { return nil }
    try file.sync()
    try fileSystem.syncDirectory(path.directory)
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return nil }
    let bytes = try connection.header().bytes
    try connection.close()
    let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
    guard pageSize == 1 || (pageSize >= 512 && pageSize.nonzeroBitCount == 1) else {
      throw RepositoryError(.corrupted, "the page size is damaged", file: path.main, offset: 16)
    }
    let log = try SQLiteLog(file, pageSize: pageSize == 1 ? 65_536 : pageSize)
    try file.close()
    return log
  }

  /// What an earlier open has cut that then failed, or was killed, so that nobody has heard of it.
  private static func unreportedCut(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> OpenReport.CutTail? {
    for name in try (fileSystem.entries(of: path.directory) ?? []).sorted() {
      guard let (quarantine, offset) = path.unreportedCut(name) else { continue }
      let size = try SQLitePath.status(of: SQLitePath.unreported(quarantine)).map { Int($0.st_size) } ?? 0
      return .init(
        file: path.log, offset: UInt64(offset), byteCount: max(0, size - offset), quarantineFile: quarantine, isAmbiguous: true)
    }
    return nil
  }

  /// Begins to read in the way that leaves no trace.
  private static func beginReading(_ path: SQLitePath, _ log: SQLiteLog?, isAlone: Bool) throws(RepositoryError) -> Reading {
    guard isAlone else { return try Reading(path, .readWrite, checking: false) }
    guard log != nil else { return try Reading(path, .immutable, checking: false) }
    do throws(RepositoryError) {
      return try Reading(path, .alone, checking: true)
    } catch {
      // A program that reads has a connection: then there is an index already.
      guard error.code == .locked else { throw error }
      return try Reading(path, .readWrite, checking: true)
    }
  }

  // MARK: Judging a log

  /// Refuses a log with damage that took acknowledged commits, or any damage where that is asked for.
  private static func judge(
    _ log: SQLiteLog, _ path: SQLitePath, isBuffered: Bool, _ recovery: StoreOptions.Recovery
  ) throws(RepositoryError) {
    // Unsynced transactions may reach the disk in any order, so only synced ones prove damage.
    if let offset = log.lostOffset, log.holdsLaterCommit && !isBuffered {
      throw RepositoryError(.corrupted, "the write-ahead log is damaged before a later commit", file: path.log, offset: UInt64(offset))
    }
    if recovery == .strict, let offset = log.lostOffset ?? log.unfinishedOffset {
      throw RepositoryError(.corrupted, "the write-ahead log does not end with a whole commit", file: path.log, offset: UInt64(offset))
    }
  }

  /// Refuses a log that does not go on from what the database holds, as the log of another copy of the store.
  ///
  /// What was folded is a commit of the log or an earlier one, so the database alone is never ahead of it.
  private static func checkContinuity(_ path: SQLitePath, _ row: SQLiteStoreRow) throws(RepositoryError) {
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return }
    let folded: SQLiteStoreRow
    do throws(RepositoryError) {
      folded = try SQLiteStoreRow(on: connection)
    } catch {
      return  // folding was cut short in the middle of it: the log has the whole of it
    }
    guard folded.id == row.id, folded.commit < row.commit || folded == row else {
      let found = "found commit \(row.commit) in it and commit \(folded.commit) in the database"
      throw RepositoryError(
        .corrupted, "the write-ahead log belongs to another copy of the store, or an earlier one: " + found, file: path.log)
    }
  }

  // MARK: For reading only

  /// Reads a store beside its writer, if there is one.
  ///
  /// Creates and changes nothing.
  init(readOnly file: URL, _ fileSystem: any FileSystem) throws(RepositoryError) {
    start = clock.now
    self.fileSystem = fileSystem
    path = try SQLitePath(file, makeDirectory: nil)
    try path.checkKinds()
    readingLock = try SQLiteFileLock.take(path.main, .reading)
    (locks, log, reading, lockTimeout) = (nil, nil, nil, .zero)
    let (reader, chunks) = try SQLiteBeside(path, fileSystem).readAll()
    (row, collections) = (reader.row, reader.collections)
    report = OpenReport(
      storeID: row.id, commit: Revision(row.commit), isNew: false, recordCount: reader.recordCount,
      tombstoneHorizon: Revision(row.tombstonesSince))
    readAlready = chunks.reversed()
  }

  // MARK: The steps

  /// The next records; `nil` after the last, when the connection is closed.
  func next() throws(RepositoryError) -> [StoredRecord]? {
    guard let reading else { return readAlready.popLast() }
    if let records = try reading.reader.next() { return records }
    report.recordCount = reading.reader.recordCount
    try reading.connection.close()
    return nil
  }

  /// Notes how long opening has taken by now.
  func noteDuration() { report.duration = clock.now - start }

  /// Gives everything back; the files stay as they were found.
  func abandon() {
    if let connection = reading?.connection, connection.handle != nil {
      do { try connection.close() } catch {}  // the refusal is what the caller must hear
    }
    locks?.release()
    readingLock?.release()
  }
}
