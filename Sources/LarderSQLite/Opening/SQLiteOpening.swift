// Opening/ brings a store from its files to its first commit: it locks, reads and judges, and only then writes.
// Invariant: until recovery, nothing is written but the lock file. Called by SQLiteStore.

internal import Foundation
internal import Larder

/// The opening of a store in two steps: the first reads and judges everything, the second writes what recovery needs.
///
/// The first step is `init`, then `next()` until it returns `nil`. The second is ``recover()``; without it, `abandon()` ends the opening.
///
/// Invariant: the first step writes nothing, and makes no file but the lock's. Between the steps there is no connection, only the locks.
final class SQLiteOpening {
  let path: SQLitePath
  /// The state of the store; until all is read, as its row has it.
  private(set) var row: SQLiteStoreRow
  /// The row as `larder_store` has it.
  let storedRow: SQLiteStoreRow
  let collections: [String]
  var report: OpenReport

  let fileSystem: any FileSystem
  let disk: SQLiteDisk
  /// The locks; `nil` for a read-only store.
  let locks: SQLiteLocks?
  /// The registration of a read-only store, in place of locks.
  let readingLock: SQLiteFileLock?
  /// The log that an unclean end has left, if this process must recover it.
  let log: SQLiteLogInspection?
  let lockTimeout: Duration
  private let reading: Reading?
  /// The records that a read-only opening has read already, in reverse order.
  private var readAlready: [[LoadedRecords]] = []
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant

  private struct Reading {
    let connection: SQLiteConnection
    let scan: SQLiteScan

    init(_ path: SQLitePath, _ mode: SQLiteConnection.Mode, checking isUnclean: Bool, _ limits: StoreOptions.Limits?)
      throws(RepositoryError)
    {
      guard let connection = try SQLiteConnection(path: path.main, mode) else {
        throw path.vanished
      }
      // Closing would fold the log and remove it.
      connection.keepLogOnClose()
      if isUnclean, try connection.problemCount(.quick, limit: 1) > 0 {
        throw connection.damagedOrUnreadable("SQLite's quick check found damage: restore a backup")
      }
      scan = try SQLiteScan(connection, limits: limits)
      self.connection = connection
    }
  }

  // MARK: For writing

  /// Takes the locks, and checks everything that can be checked before reading records.
  /// - Parameter limits: What records must keep; without it, none is refused.
  init(
    _ file: URL, _ options: StoreOptions, _ limits: StoreOptions.Limits?, _ fileSystem: any FileSystem, _ disk: SQLiteDisk
  ) throws(RepositoryError) {
    start = clock.now
    (self.fileSystem, self.disk) = (fileSystem, disk)
    let path = try SQLitePath(file) { directory throws(RepositoryError) in try fileSystem.createDirectory(directory) }
    self.path = path
    try path.checkKinds()
    let locks = try SQLiteLocks(path, options, fileSystem)
    (lockTimeout, readingLock) = (options.lockTimeout, nil)
    path.giveToOwner(path.lock)
    do throws(RepositoryError) {
      let isNew = try Self.preflight(path, fileSystem)
      // Processes that have the store open have created it and judged its log.
      guard !isNew || locks.isExclusive else { throw path.vanished }
      try locks.lockDatabase()
      let log = isNew || !locks.isExclusive ? nil : try Self.inspectLog(path, fileSystem)
      let reading = isNew ? nil : try Self.beginReading(path, log, isExclusive: locks.isExclusive, limits)
      let row = reading?.scan.row ?? SQLiteStoreRow(id: UUID())
      if let log { try Self.judge(log, path, isBuffered: row.isBuffered, options.recovery) }
      (self.row, storedRow) = (row, row)
      (self.log, self.reading, self.locks) = (log, reading, locks)
      collections = reading?.scan.collections ?? []
      report = OpenReport(
        storeID: row.id, commit: Revision(row.commit), isNew: isNew, replayedCommits: log?.transactions ?? 0,
        tombstoneHorizon: Revision(row.tombstonesSince))
      if let log, let offset = log.lostOffset {
        // Nothing in a log distinguishes a torn last write from the rest of several writes that were cut off.
        report.cutTail = .init(file: path.log, offset: UInt64(offset), byteCount: log.lostCount, quarantineFile: "", isAmbiguous: true)
      } else if !isNew, locks.isExclusive {
        report.cutTail = try Self.unreportedCuts(path, fileSystem).first
      }
    } catch {
      locks.release()
      throw error
    }
  }

  /// Checks the file's header without changing anything; returns `true` when there is no store at all.
  private static func preflight(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> Bool {
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else {
      for other in [path.log, path.rollbackJournal] where !SQLitePath.isAbsent(other) {
        throw RepositoryError(
          .dataMissing, "the database is missing, but its journal exists: bring the database back, or move the journal away", file: other)
      }
      return true
    }
    let (bytes, size) = try connection.header()
    try SQLiteLayout.check(header: bytes, size: size, file: path.main)
    try SQLiteLayout.checkWriting(header: bytes, file: path.main)
    try connection.close()
    try path.checkRollbackJournal(fileSystem)
    return false
  }

  /// Begins to read in the way that changes no file.
  private static func beginReading(
    _ path: SQLitePath, _ log: SQLiteLogInspection?, isExclusive: Bool, _ limits: StoreOptions.Limits?
  ) throws(RepositoryError) -> Reading {
    guard isExclusive else { return try Reading(path, .readWrite, checking: false, limits) }
    guard log != nil else { return try Reading(path, .immutable, checking: false, limits) }
    do throws(RepositoryError) {
      return try Reading(path, .exclusive, checking: true, limits)
    } catch {
      // Another program has a connection for reading, so the log has an index already.
      guard error.code == .locked else { throw error }
      return try Reading(path, .readWrite, checking: true, limits)
    }
  }

  // MARK: For reading only

  /// Reads a store that another process may be writing; creates and changes nothing.
  init(readOnly file: URL, _ limits: StoreOptions.Limits?, _ fileSystem: any FileSystem) throws(RepositoryError) {
    start = clock.now
    (self.fileSystem, disk) = (fileSystem, .system)
    path = try SQLitePath(file, makeDirectory: nil)
    try path.checkKinds()
    readingLock = try SQLiteFileLock.lock(path.main, .unlocked)
    (locks, log, reading, lockTimeout) = (nil, nil, nil, .zero)
    let (scan, chunks) = try Self.readAll(path, fileSystem, limits)
    (row, storedRow, collections) = (scan.row, scan.storedRow, scan.collections)
    report = OpenReport(
      storeID: row.id, commit: Revision(row.commit), isNew: false, recordCount: scan.recordCount,
      tombstoneHorizon: Revision(row.tombstonesSince))
    readAlready = chunks.reversed()
  }

  /// Reads everything, and refuses a log that is not the database's; twice, where a backup may have taken the database's place meanwhile.
  private static func readAll(
    _ path: SQLitePath, _ fileSystem: any FileSystem, _ limits: StoreOptions.Limits?
  ) throws(RepositoryError) -> (scan: SQLiteScan, chunks: [[LoadedRecords]]) {
    var isLast = false
    while true {
      let folded = try foldedRow(path)
      let (scan, chunks) = try SQLiteReadOnlyReader(path, fileSystem).readAll(limits: limits)
      do throws(RepositoryError) {
        try checkContinuity(of: scan.row, from: folded, path)
        return (scan, chunks)
      } catch {
        if isLast { throw error }
        isLast = true
      }
    }
  }

  // MARK: The steps

  /// Returns the next records; `nil` after the last, when the connection is closed.
  func next() throws(RepositoryError) -> [LoadedRecords]? {
    guard let reading else { return readAlready.popLast() }
    if let records = try reading.scan.next() { return records }
    row = reading.scan.row
    if log != nil { try Self.checkContinuity(of: row, from: Self.foldedRow(path), path) }
    report.recordCount = reading.scan.recordCount
    report.commit = Revision(row.commit)
    try reading.connection.close()
    return nil
  }

  /// Notes the duration of opening so far.
  func noteDuration() { report.duration = clock.now - start }

  /// Closes the connection and releases the locks; the files stay as they were found.
  func abandon() {
    if let connection = reading?.connection, connection.handle != nil {
      do { try connection.close() } catch {}  // the refusal is what the caller must hear
    }
    locks?.release()
    readingLock?.release()
  }
}
