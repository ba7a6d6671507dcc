internal import Foundation
internal import Larder

/// The opening of a store, in steps: `begin`, then `next` until it gives `nil`, then `finish`; or `abandon` after a failure of any of them.
///
/// Invariant: until `finish`, nothing is written to a database that exists, and nothing that is refused is changed at all.
final class SQLiteOpening {
  let path: SQLitePath
  let row: SQLiteStoreRow
  let collections: [String]
  private(set) var report: OpenReport

  private let fileSystem: any FileSystem
  private let lock: (any HeldLock)?
  private let connection: SQLiteConnection?
  private let reader: SQLiteReader?
  /// What a read-only opening has read already.
  private var readAlready: [[StoredRecord]] = []
  private let log: SQLiteLog?
  /// Whether a log was there before, which a refusal must leave there.
  private let keepsLog: Bool
  private let lockTimeout: Duration
  private let clock = ContinuousClock()
  private let start: ContinuousClock.Instant

  // MARK: For writing

  /// Takes the lock, creates the store if there is none, and checks everything that can be checked before reading records.
  init(_ file: URL, _ options: StoreOptions, _ fileSystem: any FileSystem) throws(RepositoryError) {
    start = clock.now
    self.fileSystem = fileSystem
    let path = try SQLitePath(file) { directory throws(RepositoryError) in try fileSystem.createDirectory(directory) }
    self.path = path
    let shared = options.access == .shared ? try fileSystem.lockShared(path.lock, waiting: options.lockTimeout) : nil
    let lock: any HeldLock = if let shared { shared } else { try fileSystem.lock(path.lock) }
    lockTimeout = options.lockTimeout
    // Who finds others there leaves to them what they have done: creating, and judging the log.
    let isAlone = shared?.isAlone ?? true
    var isLocked = true
    defer { if !isLocked { lock.release() } }
    do throws(RepositoryError) {
      let removed = isAlone ? try SQLiteDraft.removeLeftovers(of: path, fileSystem) : []
      let isNew = try Self.preflight(path, fileSystem)
      if isNew && isAlone { try SQLiteDraft.create(path, fileSystem) }
      let log = isNew || !isAlone ? nil : try Self.inspectLog(path, fileSystem)
      guard let connection = try SQLiteConnection(path: path.main, .readWrite) else {
        throw RepositoryError(.dataMissing, "the file went away while it was opened", file: path.main)
      }
      do throws(RepositoryError) {
        if log != nil { try Self.quickCheck(connection) }
        let reader = try SQLiteReader(connection)
        try Self.judge(log, path, isBuffered: reader.row.isBuffered, options.recovery)
        self.reader = reader
      } catch {
        Self.leave(connection, keepingLog: log != nil || !isAlone)
        throw error
      }
      keepsLog = log != nil || !isAlone
      (self.log, self.connection, self.lock) = (log, connection, lock)
      (row, collections) = (reader?.row ?? SQLiteStoreRow(id: UUID()), reader?.collections ?? [])
      report = OpenReport(
        storeID: row.id, commit: Revision(row.commit), isNew: isNew, removedTemporaryFiles: removed,
        tombstoneHorizon: Revision(row.tombstonesSince))
      report.replayedCommits = log?.transactions ?? 0
    } catch {
      isLocked = false
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

  private static func quickCheck(_ connection: SQLiteConnection) throws(RepositoryError) {
    guard try connection.text("PRAGMA quick_check(1)") == "ok" else { throw connection.damaged("SQLite's quick check found damage") }
  }

  /// Refuses a log with damage that took acknowledged commits, or any damage where that is asked for.
  private static func judge(
    _ log: SQLiteLog?, _ path: SQLitePath, isBuffered: Bool, _ recovery: StoreOptions.Recovery
  ) throws(RepositoryError) {
    guard let log, let offset = log.lostOffset else { return }
    // Unsynced transactions may reach the disk in any order, so only synced ones prove damage.
    if log.holdsLaterCommit && !isBuffered {
      throw RepositoryError(.corrupted, "the write-ahead log is damaged before a later commit", file: path.log, offset: UInt64(offset))
    }
    if recovery == .strict {
      throw RepositoryError(.corrupted, "the write-ahead log does not end with a whole commit", file: path.log, offset: UInt64(offset))
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
    (lock, connection, reader, log) = (nil, nil, nil, nil)
    (keepsLog, lockTimeout) = (false, .zero)
    let (reader, chunks) = try SQLiteBeside(path, fileSystem).readAll()
    (row, collections) = (reader.row, reader.collections)
    report = OpenReport(
      storeID: row.id, commit: Revision(row.commit), isNew: false, recordCount: reader.recordCount,
      tombstoneHorizon: Revision(row.tombstonesSince))
    readAlready = chunks.reversed()
  }

  // MARK: The steps

  /// The next records.
  func next() throws(RepositoryError) -> [StoredRecord]? {
    guard let reader else { return readAlready.popLast() }
    return try reader.next()
  }

  /// Ends an opening whose records were all read; for writing, returns what the store goes on with.
  func finish() throws(RepositoryError) -> (SQLiteWriter, any HeldLock)? {
    defer { report.duration = clock.now - start }
    guard let reader, let connection, let lock else { return nil }
    report.recordCount = reader.recordCount
    if let log { try keepAside(log) }
    guard try connection.text("PRAGMA journal_mode = WAL", while: .writing) == "wal" else {
      throw RepositoryError(.unsupported, "this file system has no shared memory for SQLite's write-ahead log", file: path.main)
    }
    for pragma in SQLiteDraft.pragmas { try connection.execute("PRAGMA \(pragma)") }
    let shared = lock as? any HeldSharedLock
    if shared != nil { try SQLiteSharing.createIndexes(for: collections, on: connection, waiting: lockTimeout) }
    let sharing = shared == nil ? nil : SQLiteSharing(connection, lockTimeout)
    let writer = try SQLiteWriter(connection, row: row, collections: collections, sharing: sharing)
    // What the log still holds beyond its last commit must not be found a second time.
    if report.cutTail != nil { try foldAway(connection) }
    try shared?.share()
    return (writer, lock)
  }

  /// Folds a log whose tail was reported.
  ///
  /// On a full disk it stays, is reported again by the next open, and costs nothing else.
  private func foldAway(_ connection: SQLiteConnection) throws(RepositoryError) {
    do {
      try connection.checkpoint(truncating: true)
    } catch {
      if error.code != .full { throw error }
    }
  }

  /// Whether the store was found with a write-ahead log, as an unclean end leaves it.
  var foundLog: Bool { log != nil }

  /// Gives everything back; the files stay as they were found.
  func abandon() {
    if let connection { Self.leave(connection, keepingLog: keepsLog) }
    lock?.release()
  }

  /// Closes a connection to a file that is refused.
  ///
  /// Where there was no log, SQLite removes the empty one that it made for reading.
  private static func leave(_ connection: SQLiteConnection, keepingLog: Bool) {
    if keepingLog { connection.keepLogOnClose() }
    // Nothing was written; the refusal is what the caller must hear.
    do { try connection.close() } catch {}
  }

  /// Reports a log that is not whole, having copied it before SQLite overwrites it.
  ///
  /// A full disk must not keep a store shut because of a write that was never finished; where something acknowledged may be among the
  /// bytes, it does.
  private func keepAside(_ log: SQLiteLog) throws(RepositoryError) {
    guard let offset = log.lostOffset, let file = try fileSystem.open(path.log, writable: false) else { return }
    var kept = ""
    do throws(RepositoryError) {
      kept = try copyAside(file, lostOffset: offset)
    } catch {
      guard error.code == .full, log.endsShort else { throw error }
      try fileSystem.remove(path.quarantine(commit: row.commit, offset: offset) + "-tmp")
    }
    report.cutTail = .init(
      file: path.log, offset: UInt64(offset), byteCount: log.lostCount, quarantineFile: kept, isAmbiguous: !log.endsShort)
  }

  /// Copies the log.
  /// - Returns: The path of the copy.
  private func copyAside(_ file: any OpenFile, lostOffset offset: Int) throws(RepositoryError) -> String {
    // An open that was cut short here makes the same copy again.
    let copyPath = path.quarantine(commit: row.commit, offset: offset)
    let temporary = copyPath + "-tmp"
    try fileSystem.remove(temporary)
    let copy = try fileSystem.create(temporary)
    let size = try file.size()
    var position = 0
    while position < size {
      let bytes = try file.read(at: position, count: 1 << 20)
      if bytes.isEmpty { break }
      var failure: RepositoryError?
      bytes.withUnsafeBytes { buffer in
        do throws(RepositoryError) { try copy.write(buffer, at: position) } catch { failure = error }
      }
      if let failure { throw failure }
      position += bytes.count
    }
    try copy.sync()
    try copy.close()
    try fileSystem.rename(temporary, to: copyPath)
    try fileSystem.syncDirectory(path.directory)
    return copyPath
  }
}
