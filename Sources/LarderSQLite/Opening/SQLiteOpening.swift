// Opening/ brings a store from its files to its first commit: it locks, reads and judges, and only then writes.
// Invariant: until recovery, nothing is written but the lock file.
// Called by SQLiteStore.

internal import Foundation
internal import Larder

/// The opening of a store in two steps: the first reads and judges all files, the second writes as recovery needs.
///
/// The first step is `init`, then `next()` until it returns `nil`. The second is ``recover()``. Call `abandon()` to end the opening without
/// it.
///
/// Invariant: the first step writes nothing, and makes no file but the lock's. Between the steps there is no connection, only the locks.
final class SQLiteOpening {
  let path: SQLitePath
  /// State of the store as found by reading all rows, and before that the stored row of `larder_store`.
  private(set) var row: SQLiteStoreRow
  /// The row of `larder_store` as stored, which may be of an earlier commit.
  let storedRow: SQLiteStoreRow
  let collections: [String]
  var report: OpenReport

  let fileSystem: any FileSystem
  let disk: SQLiteDisk
  /// Locks of a store that is opened for writing, or `nil` for a read-only store.
  let locks: SQLiteLocks?
  /// Registration of a read-only store, in place of locks.
  ///
  /// While it lasts, this process closes no descriptor of the file, since that would drop SQLite's locks.
  let readingLock: SQLiteFileLock?
  /// Write-ahead log that a crash has left, if this process must recover it.
  let log: SQLiteLogInspection?
  let lockTimeout: Duration
  private let reading: Reading?
  /// Records that a read-only opening has read in advance, in reverse order.
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
      // Closing the only connection would run a checkpoint and remove the log, in the step that writes nothing.
      connection.keepLogOnClose()
      // Only after a crash, since the check reads every page of the file.
      if isUnclean, try connection.problemCount(.quick, limit: 1) > 0 {
        throw connection.damagedOrUnreadable("SQLite's quick check found damage: restore a backup")
      }
      scan = try SQLiteScan(connection, limits: limits)
      self.connection = connection
    }
  }

  // MARK: For writing

  /// Takes the locks, and checks everything that can be checked before records are read.
  /// - Parameter limits: The limits of records. Without them no record is refused.
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
    // Root may have made the lock file of another user's store.
    path.giveToOwner(path.lock)
    do throws(RepositoryError) {
      let isNew = try Self.preflight(path, fileSystem)
      // The processes that have the store open have created it and judged its log.
      guard !isNew || locks.isExclusive else { throw path.vanished }
      // Before the log is read: the lock file may have been removed by hand, and another process may be writing.
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
        // An earlier opening that failed has cut a log without reporting it.
        report.cutTail = try Self.unreportedCuts(path, fileSystem).first
      }
    } catch {
      // The initializer throws, so nothing else would release them before the next opening.
      locks.release()
      throw error
    }
  }

  /// Checks the file's header without changing anything, and returns true when there is no store at all.
  private static func preflight(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> Bool {
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else {
      // A new store would hide that a database with commits is missing.
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

  /// Opens a connection in the mode that changes no file, and begins the scan.
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

  /// Reads a store that another process may be writing, and creates and changes no file.
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

  /// Reads every row, and throws `.corrupted` for a write-ahead log that belongs to another database.
  ///
  /// Reads a second time after that error, because a backup may have taken the database's place during the first.
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

  /// Returns the next records, or closes the connection and returns `nil` after the last.
  func next() throws(RepositoryError) -> [LoadedRecords]? {
    guard let reading else { return readAlready.popLast() }
    if let records = try reading.scan.next() { return records }
    row = reading.scan.row
    // Only now: the newest commit of the log is found by reading all rows.
    if log != nil { try Self.checkContinuity(of: row, from: Self.foldedRow(path), path) }
    report.recordCount = reading.scan.recordCount
    report.commit = Revision(row.commit)
    try reading.connection.close()
    return nil
  }

  /// Sets the report's duration to the time since the opening began.
  func noteDuration() { report.duration = clock.now - start }

  /// Closes the connection and releases the locks, and leaves the files as they were found.
  func abandon() {
    if let connection = reading?.connection, connection.handle != nil {
      do { try connection.close() } catch {}  // the caller needs the refusal, and not a failure of closing
    }
    locks?.release()
    readingLock?.release()
  }
}
