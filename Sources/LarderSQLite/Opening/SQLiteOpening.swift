// Opening/ opens a store for its first commit: it locks the files, reads and checks them, and writes only after the checks.
// Invariant: until recovery, an opening writes no file but the lock file, and creates only missing directories.
// Called by SQLiteStore.

internal import Foundation
internal import Larder

/// The opening of a store in two steps: the first step reads and checks all files, the second step writes the changes of recovery.
///
/// For the first step, call `init`, and then `next()` until it returns `nil`. For the second step, call ``recover()``. Call `abandon()` to
/// end the opening without the second step.
///
/// Invariant: the first step writes no file but the lock file. Between the first and the second step the opening holds the locks and no
/// connection.
final class SQLiteOpening {
  let path: SQLitePath
  /// State of the store as found by reading all rows.
  ///
  /// Until all rows are read, `row` is the stored row of `larder_store`.
  private(set) var row: SQLiteStoreRow
  /// The row of `larder_store` as stored, which may belong to an earlier commit than the newest one.
  let storedRow: SQLiteStoreRow
  let collections: [String]
  var report: OpenReport

  let fileSystem: any FileSystem
  let disk: SQLiteDisk
  /// Locks of a store that is opened for writing, or `nil` for a read-only store.
  let locks: SQLiteLocks?
  /// Registration of a store that is open read-only and therefore takes no locks.
  ///
  /// While this registration exists, this process closes no descriptor of the database file, because closing a descriptor drops SQLite's
  /// POSIX locks on the file.
  let readingLock: SQLiteFileLock?
  /// The write-ahead log that a crash has left, if this process must recover it, otherwise `nil`.
  let log: SQLiteLogInspection?
  let lockTimeout: Duration
  private let reading: Reading?
  /// Summary of the collections, if the store is opened without its records.
  var summary: SQLiteSummary?
  /// Complete indexes in the database, which need the summary of the newest commit.
  var indexes = SQLiteIndexes()
  /// The records as of the commit of this opening, if other processes may commit to the store already.
  var base: SQLiteBase?
  /// Whether the store is opened without its records.
  let isPaged: Bool
  /// Records that a read-only opening has read in advance, in reverse order, because `next()` removes them from the end.
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
      // By default SQLite runs a checkpoint and removes the log when the only connection closes. The first step of an opening must write
      // nothing.
      connection.keepLogOnClose()
      // SQLite's quick check reads every page of the file, so it runs only after a crash.
      if isUnclean { try Self.check(connection) }
      scan = try SQLiteScan(connection, limits: limits)
      self.connection = connection
    }

    static func check(_ connection: SQLiteConnection) throws(RepositoryError) {
      if try connection.problemCount(.quick, limit: 1) > 0 {
        throw connection.damagedOrUnreadable("SQLite's quick check found damage: restore a backup")
      }
    }
  }

  // MARK: For writing

  /// Takes the store's locks, and makes every check that is possible before records are read.
  ///
  /// - Parameters:
  ///   - limits: The limits of records. If `limits` is `nil`, no record is refused for its size or depth.
  ///   - isPaged: True if the store is opened without its records, so that no check may read the whole file.
  init(
    _ file: URL, options: StoreOptions, limits: StoreOptions.Limits?, isPaged: Bool = false, in fileSystem: any FileSystem,
    on disk: SQLiteDisk
  ) throws(RepositoryError) {
    start = clock.now
    (self.fileSystem, self.disk, self.isPaged) = (fileSystem, disk, isPaged)
    let path = try SQLitePath(file) { directory throws(RepositoryError) in try fileSystem.createDirectory(directory) }
    self.path = path
    try path.checkKinds()
    let locks = try SQLiteLocks(path, options: options, in: fileSystem)
    (lockTimeout, readingLock) = (options.lockTimeout, nil)
    // If root has just created the lock file of another user's store, that user must be able to open it later.
    path.giveToOwner(path.lock)
    do throws(RepositoryError) {
      let isNew = try Self.preflight(path, fileSystem)
      // If other processes have the store open, these processes have created the database and checked its log. If the database is missing
      // although other processes have it open, it was removed, and must not be created anew.
      guard !isNew || locks.isExclusive else { throw path.vanished }
      // The database file is locked before the log is read. If the lock file was removed by hand, only the lock on the database file shows
      // that another process writes.
      try locks.lockDatabase()
      let log = isNew || !locks.isExclusive ? nil : try Self.inspectLog(path, fileSystem)
      // Until the base is made, no other process may commit, so that the base is of the commit that is read.
      let pause = isPaged && !locks.isExclusive ? try Self.pauseCommits(path, for: options.lockTimeout) : nil
      let reading = isNew ? nil : try Self.beginReading(path, log, isExclusive: locks.isExclusive, checks: !isPaged, limits)
      let row = reading?.scan.row ?? SQLiteStoreRow(id: UUID())
      if let pause {
        base = try SQLiteBase(path: path.main, commit: Revision(row.commit), indexes: [:], isShared: true)
        try pause.execute("ROLLBACK")
        try pause.close()
      }
      if let log { try Self.judge(log, path, isBuffered: row.isBuffered, options.recovery) }
      (self.row, storedRow) = (row, row)
      (self.log, self.reading, self.locks) = (log, reading, locks)
      collections = reading?.scan.collections ?? []
      report = OpenReport(
        storeID: row.id, commit: Revision(row.commit), isNew: isNew, replayedCommits: log?.transactions ?? 0,
        tombstoneHorizon: Revision(row.tombstonesSince))
      if let log, let offset = log.lostOffset {
        // A torn last write and the remains of several lost writes leave the same bytes, so the report calls the cut ambiguous.
        report.cutTail = .init(file: path.log, offset: UInt64(offset), byteCount: log.lostCount, quarantineFile: "", isAmbiguous: true)
      } else if !isNew, locks.isExclusive {
        // An earlier opening may have cut a log and failed before it could report the cut, so this opening reports that cut.
        report.cutTail = try Self.unreportedCuts(path, fileSystem).first
      }
    } catch {
      // If the initializer throws, no object exists that could release the locks later, so they are released here.
      locks.release()
      throw error
    }
  }

  /// Checks the header of the database without changing anything, and returns true when there is no store at all.
  private static func preflight(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> Bool {
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else {
      // A log or journal without its database means that a database with commits is missing. A new store in place of the missing database
      // would hide the loss.
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

  /// Takes SQLite's write lock of a store that other processes have open, until the returned connection is closed.
  private static func pauseCommits(_ path: SQLitePath, for timeout: Duration) throws(RepositoryError) -> SQLiteConnection {
    guard let connection = try SQLiteConnection(path: path.main, .readWrite) else { throw path.vanished }
    connection.keepLogOnClose()
    try connection.waiting(timeout) { () throws(RepositoryError) in try connection.execute("BEGIN IMMEDIATE") }
    return connection
  }

  /// Opens a connection in the mode that changes no file, and begins the scan of all records.
  private static func beginReading(
    _ path: SQLitePath, _ log: SQLiteLogInspection?, isExclusive: Bool, checks: Bool, _ limits: StoreOptions.Limits?
  ) throws(RepositoryError) -> Reading {
    guard isExclusive else { return try Reading(path, .readWrite, checking: false, limits) }
    guard log != nil else { return try Reading(path, .immutable, checking: false, limits) }
    do throws(RepositoryError) {
      return try Reading(path, .exclusive, checking: checks, limits)
    } catch {
      // The error `.locked` shows that another program has a connection for reading. A log that another program has open already has an
      // index file (`-shm`), so the mode `.readWrite` makes no new file.
      guard error.code == .locked else { throw error }
      return try Reading(path, .readWrite, checking: checks, limits)
    }
  }

  // MARK: For reading only

  /// Reads a store to which another process may be writing, and creates and changes no file.
  init(readOnly file: URL, _ limits: StoreOptions.Limits?, _ fileSystem: any FileSystem) throws(RepositoryError) {
    start = clock.now
    (self.fileSystem, disk, isPaged) = (fileSystem, .system, false)
    path = try SQLitePath(file, makeDirectory: nil)
    try path.checkKinds()
    readingLock = try SQLiteFileLock.lock(path.main, .unlocked)
    (locks, log, reading, lockTimeout) = (nil, nil, nil, .zero)
    let (scan, chunks) = try Self.readAll(path, in: fileSystem, limits: limits)
    (row, storedRow, collections) = (scan.row, scan.storedRow, scan.collections)
    report = OpenReport(
      storeID: row.id, commit: Revision(row.commit), isNew: false, recordCount: scan.recordCount,
      tombstoneHorizon: Revision(row.tombstonesSince))
    readAlready = chunks.reversed()
  }

  /// Reads every row, and throws `.corrupted` for a write-ahead log that belongs to another database.
  ///
  /// If the log belongs to another database, the function first reads the store a second time, because a backup may have replaced the
  /// database during the first reading.
  private static func readAll(
    _ path: SQLitePath, in fileSystem: any FileSystem, limits: StoreOptions.Limits?
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

  /// Returns the next records of the store, or closes the connection and returns `nil` after the last record.
  func next() throws(RepositoryError) -> [LoadedRecords]? {
    guard let reading else { return readAlready.popLast() }
    if let records = try reading.scan.next() { return records }
    row = reading.scan.row
    // The log is compared with the database after the last row was read, because only the reading of all rows finds the newest commit.
    if log != nil { try Self.checkContinuity(of: row, from: Self.foldedRow(path), path) }
    report.recordCount = reading.scan.recordCount
    report.commit = Revision(row.commit)
    try reading.connection.close()
    return nil
  }

  /// Reads the summary of the collections and all tombstones, in place of the records.
  ///
  /// If the summary is missing or not of the newest commit, every record is read once to make it.
  func summarize() throws(RepositoryError) -> [StoredRecord] {
    guard let reading else {
      summary = SQLiteSummary()
      return []
    }
    if try isRowCurrent(on: reading.connection),
      let found = try SQLiteSummary.found(on: reading.connection, of: storedRow, and: collections)
    {
      summary = found
      indexes = try SQLiteIndexes(on: reading.connection)
      if let damage = indexes.damage { report.damagedIndexes.append(damage) }
      let tombstones = try reading.scan.readTombstones()
      if log != nil { try Self.checkContinuity(of: row, from: Self.foldedRow(path), path) }
      report.recordCount = row.records
      try reading.connection.close()
      return tombstones
    }
    // The check that the opening has left out comes before the reading of all records.
    if log != nil { try Reading.check(reading.connection) }
    var (summary, tombstones) = (SQLiteSummary(), [StoredRecord]())
    while let records = try next() {
      for loaded in records {
        loaded.forEach { record in if let value = record.value { summary.add(record, value) } else { tombstones.append(record) } }
      }
    }
    self.summary = summary
    return tombstones
  }

  /// Whether the row of `larder_store` is of the newest commit.
  ///
  /// In a store without a log, it is. In a log, the row is of the newest commit if the last transaction has written the row's page.
  private func isRowCurrent(on connection: SQLiteConnection) throws(RepositoryError) -> Bool {
    guard let log else { return true }
    let page = try connection.number("SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = '\(SQLiteLayout.store)'")
    return page.map { log.lastPages.contains(UInt32(clamping: $0)) } ?? false
  }

  /// Sets the duration in the report to the time since the opening began.
  func noteDuration() { report.duration = clock.now - start }

  /// Closes the connection, releases the locks, and leaves the files as they were found.
  func abandon() {
    if let connection = reading?.connection, connection.handle != nil {
      do { try connection.close() } catch {}  // the caller needs the error of the opening, and not an error of closing the connection
    }
    base?.supersede()
    locks?.release()
    readingLock?.release()
  }
}
