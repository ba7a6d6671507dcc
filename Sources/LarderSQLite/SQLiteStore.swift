internal import Foundation
internal import Larder
internal import Synchronization

/// State machine of one store, from opening to closing: each phase holds its connection and locks, and allows its own calls.
final class SQLiteStore {
  enum Phase {
    case unopened
    case opening(SQLiteOpening)
    /// Every row was read, and nothing written yet.
    ///
    /// On a full disk without room for recovery, the phase lasts, and each write tries again.
    case opened(SQLiteOpening)
    case writing(SQLiteWriter, SQLiteLocks)
    case reading(SQLiteReadOnlyReader, SQLiteFileLock?)
    /// The store was open for writing, and holds no connection and no lock until it resumes.
    case suspended(SQLiteSuspension)
    case closed
  }

  let file: URL
  let fileSystem: any FileSystem
  let disk: SQLiteDisk
  let wait: SQLiteWait
  var phase = Phase.unopened
  var options = StoreOptions()
  var path: SQLitePath?

  init(_ file: URL, _ fileSystem: any FileSystem, _ disk: SQLiteDisk, _ wait: SQLiteWait) {
    (self.file, self.fileSystem, self.disk, self.wait) = (file, fileSystem, disk, wait)
  }

  // A store that is dropped without close() leaves its files as a crash does: every acknowledged commit is in the log.
  deinit { end { $0.abandon() } }

  var name: String { path?.main ?? file.path(percentEncoded: false) }

  var notOpen: RepositoryError { RepositoryError(.closed, "the store is not open: open it first", file: name) }

  // MARK: Opening

  func beginOpening(_ options: StoreOptions, _ limits: StoreOptions.Limits?) throws(RepositoryError) {
    switch phase {
    case .unopened, .closed: break
    default: throw RepositoryError(.alreadyOpen, "this backend is open already; close it first", file: name)
    }
    self.options = options
    // A suspension before this opening may have ended all waits for good.
    wait.isEnded.store(false, ordering: .relaxed)
    let opening: SQLiteOpening
    switch options.access {
    case .exclusive, .shared: opening = try SQLiteOpening(file, options, limits, fileSystem, disk)
    case .readOnly: opening = try SQLiteOpening(readOnly: file, limits, fileSystem)
    }
    path = opening.path
    phase = .opening(opening)
  }

  func nextRecords() throws(RepositoryError) -> [LoadedRecords]? {
    // Another thread may have closed the store between two steps of an opening.
    guard case .opening(let opening) = phase else { return nil }
    return try opening.next()
  }

  func finishOpening() throws(RepositoryError) -> OpenReport {
    guard case .opening(let opening) = phase else { throw notOpen }
    let reader = SQLiteReadOnlyReader(opening.path, fileSystem)
    // A read-only opening takes no locks, and there is no recovery to wait for.
    phase = opening.locks == nil ? .reading(reader, opening.readingLock) : .opened(opening)
    opening.noteDuration()
    return opening.report
  }

  /// Runs recovery, which makes the files ready for the first commit, and returns the completed report.
  ///
  /// On a full disk an existing store still opens: it can be read, and each write tries the recovery again.
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    guard case .opened(let opening) = phase else { return report }
    opening.report = report
    do throws(RepositoryError) {
      try beginWriting(opening)
    } catch {
      // A new store without a file has nothing to read. An existing one stays readable on a full disk.
      guard error.code == .full, !report.isNew else { throw error }
    }
    opening.noteDuration()
    return opening.report
  }

  private func beginWriting(_ opening: SQLiteOpening) throws(RepositoryError) {
    let (writer, locks) = try opening.recover()
    writer.connection.wait = wait
    phase = .writing(writer, locks)
  }

  /// Ends an opening that failed, so that the store may be opened again.
  func abandonOpening() {
    if case .opening(let opening) = phase { opening.abandon() }
    phase = .unopened
  }

  // MARK: Writing

  func write(_ batch: WriteBatch) throws(RepositoryError) { try writerForCommit().write(batch) }

  func writeOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try writerForCommit().writeOnFullDisk(batch, keeping: options.limits.tombstones)
  }

  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try writerForCommit().beginCommit(after: revision, durability)
  }

  func cancelCommit() {
    if case .writing(let writer, _) = phase { writer.cancelCommit() }
  }

  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    if case .reading(let reader, _) = phase { return try reader.commits(after: revision) }
    return try writer()?.foreignCommits(after: revision)
  }

  func flush() throws(RepositoryError) {
    // A store that was not recovered yet has written nothing.
    try writer()?.flush()
  }

  var wantsCheckpoint: Bool {
    // The margin of 1,000 keeps a small limit from asking for a checkpoint after every few deletions.
    if case .writing(let writer, _) = phase { writer.row.tombstones / 2 > options.limits.tombstones + 500 } else { false }
  }

  func checkpoint() throws(RepositoryError) {
    try beginWritingIfDue()
    try writer()?.checkpoint(keeping: options.limits.tombstones)
  }

  /// Runs the recovery that is still due, after a full disk or below a backend that does not pass `recover` on.
  private func beginWritingIfDue() throws(RepositoryError) {
    if case .opened(let opening) = phase { try beginWriting(opening) }
  }

  /// Returns the writer, or throws `.unsupported` for a store that was opened `.readOnly`.
  private func writerForCommit() throws(RepositoryError) -> SQLiteWriter {
    try beginWritingIfDue()
    guard let writer = try writer() else { throw path?.readOnlyRefusal ?? notOpen }
    return writer
  }

  /// Returns the writer, or `nil` for a store that is read-only or was not recovered yet.
  func writer() throws(RepositoryError) -> SQLiteWriter? {
    switch phase {
    case .writing(let writer, _): return writer
    case .reading, .opened: return nil
    case .unopened, .opening, .suspended, .closed: throw notOpen
    }
  }
}

extension SQLiteStore {
  /// Copies the write-ahead log into the database and ends the connection, after which only the database file stays.
  func close() throws(RepositoryError) {
    guard case .writing(let writer, let locks) = phase else { return abandon() }
    // Before anything throws: a second `close()` must do nothing.
    phase = .closed
    try end(writer, locks)
  }

  /// Copies the write-ahead log into the database unless another process uses it, ends the connection, and releases the locks.
  func end(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    defer { locks.release() }
    // After a failed sync the log is left for the next open to judge.
    if writer.poison != nil { return writer.abandon() }
    if locks.isShared { return try closeShared(writer, locks) }
    try fold(writer)
  }

  /// Leaves the write-ahead log to other processes, or copies it into the database if no other process has the store open.
  ///
  /// The connection is closed before the locks show whether there is another process, so that the last process has the only connection.
  private func closeShared(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    // An abandoned connection leaves the log as it is, for the processes that go on with it.
    do {
      defer { writer.abandon() }
      try writer.flush()
    }
    // If another process has the store open, the log stays for it.
    guard locks.reclaim(), let connection = try SQLiteConnection(path: writer.connection.path, .readWrite) else { return }
    connection.wait = wait
    // A suspension is under way, and must not wait for a reader.
    if wait.isEnded.load(ordering: .relaxed) { connection.stopWaiting() }
    try connection.prepareForWriting()
    let collections = try SQLiteLayout.collections(on: connection)
    // Other processes may have committed since this one read the row, so it is read anew.
    let writer = try SQLiteWriter(connection, row: SQLiteStoreRow(on: connection), collections: collections, disk: disk)
    if disk.needsOwnSync { try connection.openOwnLog(fileSystem) }
    try fold(writer)
  }

  /// Copies ("folds") the write-ahead log into the database and ends the connection.
  ///
  /// After a failure the files stay as they are.
  private func fold(_ writer: SQLiteWriter) throws(RepositoryError) {
    do {
      try writer.checkpoint(keeping: options.limits.tombstones)
      try writer.close()
    } catch {
      writer.abandon()
      throw error
    }
  }

  /// Ends the use of a store to which nothing was committed, and leaves its files as they are.
  func abandon() {
    // Recovery has copied the log into the database, so SQLite may remove it.
    end { writer in do { try writer.close() } catch { writer.abandon() } }
  }

  /// Ends the current phase and releases the locks.
  ///
  /// `endWriter` ends the writer of a store that is open for writing.
  func end(_ endWriter: (SQLiteWriter) -> Void) {
    let ending = phase
    // Ends the phase only once: a second call finds `.closed`.
    phase = .closed
    switch ending {
    case .opening(let opening), .opened(let opening): opening.abandon()
    case .reading(_, let lock): lock?.release()
    case .writing(let writer, let locks):
      endWriter(writer)
      locks.release()
    case .suspended(let suspension): suspension.anchor?.release()
    case .unopened, .closed: break
    }
  }
}

/// Verification and backup.
extension SQLiteStore {
  /// Compares every checksum and the digest of all rows, runs SQLite's `integrity_check`, and reports each problem.
  func verify() -> VerifyReport {
    let clock = ContinuousClock()
    let start = clock.now
    var report = VerifyReport()
    do throws(RepositoryError) {
      let scan: SQLiteScan
      if let writer = try writer() {
        scan = try SQLiteScan(writer.connection, stopsAtDamage: false)
        while try scan.next() != nil {}
        // In a shared store other processes may have committed since the writer read its row.
        if writer.sharing == nil, scan.row != writer.row, scan.problems.isEmpty {
          report.problems.append(writer.connection.damaged("expected the records of commit \(writer.row.commit), found others"))
        }
        report.problems += try scan.problems + Self.integrityProblems(writer.connection)
      } else if let path {
        // A read-only store keeps no connection, so that it never keeps a writer from removing its log.
        let found = try SQLiteReadOnlyReader(path, fileSystem).verify()
        scan = found.scan
        report.problems += found.problems
      } else {
        throw notOpen
      }
      report.commit = Revision(scan.row.commit)
      report.recordCount = scan.recordCount
      report.tombstoneCount = scan.tombstoneCount
    } catch {
      report.problems.append(error)
    }
    report.duration = clock.now - start
    return report
  }

  /// Runs SQLite's `integrity_check` and returns its findings as one error, or none.
  static func integrityProblems(_ connection: SQLiteConnection) throws(RepositoryError) -> [RepositoryError] {
    let count = try connection.problemCount(.full, limit: 100)
    return count == 0 ? [] : [connection.damaged("SQLite's integrity check found \(count) problems: restore a backup")]
  }

  /// Writes a durable, compact copy of the store under a temporary name and renames it.
  func backup(to url: URL) throws(RepositoryError) {
    let writer = try writer()
    try writer?.checkUse()
    // The row of `larder_store` may be behind the newest commit. Written now, it carries the whole digest of all rows into the copy. On a
    // full disk, or while another program writes, the copy carries half of the digest.
    do throws(RepositoryError) {
      try writer?.connection.waiting(.zero) { () throws(RepositoryError) in try writer?.storeRow() }
    } catch {
      guard [.full, .locked].contains(error.code) else { throw error }
    }
    let connection = try connectionForCopying(writer)
    let fileSystem = fileSystem
    let target = try SQLitePath(url) { directory throws(RepositoryError) in try fileSystem.createDirectory(directory) }
    try SQLiteDraft.copy(of: connection, to: target, fileSystem)
  }

  /// Returns the writer's connection, or a new one while a commit has begun.
  ///
  /// The new connection reads the state before that commit. `VACUUM INTO` fails inside a transaction.
  private func connectionForCopying(_ writer: SQLiteWriter?) throws(RepositoryError) -> SQLiteConnection {
    if let writer, !writer.connection.isInTransaction { return writer.connection }
    guard let path else { throw notOpen }
    guard let connection = try SQLiteConnection(path: path.main, .readOnly) else { throw path.vanished }
    return connection
  }
}
