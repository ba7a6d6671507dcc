internal import Foundation
internal import Larder
internal import Synchronization

/// A store from its opening to its close: the calls that each phase allows, and their parts.
final class SQLiteStore {
  enum Phase {
    case unopened
    case opening(SQLiteOpening)
    /// All was read, and nothing written yet; on a full disk that has no space for recovery, each write tries again.
    case opened(SQLiteOpening)
    case writing(SQLiteWriter, SQLiteLocks)
    case reading(SQLiteReadOnlyReader, SQLiteFileLock?)
    /// Written before, and without a lock now.
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

  // A store that is dropped without close() is left as by a crash: all that was acknowledged is in the log.
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
    guard case .opening(let opening) = phase else { return nil }
    return try opening.next()
  }

  func finishOpening() throws(RepositoryError) -> OpenReport {
    guard case .opening(let opening) = phase else { throw notOpen }
    let reader = SQLiteReadOnlyReader(opening.path, fileSystem)
    phase = opening.locks == nil ? .reading(reader, opening.readingLock) : .opened(opening)
    opening.noteDuration()
    return opening.report
  }

  /// Writes what recovery needs before the first commit.
  ///
  /// On a full disk an existing store still opens: it can be read, and each write tries again.
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    guard case .opened(let opening) = phase else { return report }
    opening.report = report
    do throws(RepositoryError) {
      try beginWriting(opening)
    } catch {
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

  /// Ends an opening that failed; the store may be opened again.
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
    if case .writing(let writer, _) = phase { writer.row.tombstones / 2 > options.limits.tombstones + 500 } else { false }
  }

  func checkpoint() throws(RepositoryError) {
    try beginWritingIfDue()
    try writer()?.checkpoint(keeping: options.limits.tombstones)
  }

  /// Recovers the store where the disk was full before, or where a backend around this one does not pass `recover` on.
  private func beginWritingIfDue() throws(RepositoryError) {
    if case .opened(let opening) = phase { try beginWriting(opening) }
  }

  /// Returns the writer; refuses a store that can only be read.
  private func writerForCommit() throws(RepositoryError) -> SQLiteWriter {
    try beginWritingIfDue()
    guard let writer = try writer() else { throw path?.readOnlyRefusal ?? notOpen }
    return writer
  }

  /// Returns the writer; `nil` for a store that can only be read, or was not recovered yet.
  func writer() throws(RepositoryError) -> SQLiteWriter? {
    switch phase {
    case .writing(let writer, _): return writer
    case .reading, .opened: return nil
    case .unopened, .opening, .suspended, .closed: throw notOpen
    }
  }
}

extension SQLiteStore {
  /// Folds the log and ends the connection; only the database file stays.
  func close() throws(RepositoryError) {
    guard case .writing(let writer, let locks) = phase else { return abandon() }
    phase = .closed
    try end(writer, locks)
  }

  /// Folds the log unless another process uses it, ends the connection, and releases the locks.
  func end(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    defer { locks.release() }
    // After a failed sync the log is left for the next open to judge.
    if writer.poison != nil { return writer.abandon() }
    if locks.isShared { return try closeShared(writer, locks) }
    try fold(writer)
  }

  /// Leaves the log to other processes, or folds it if no other process has the store open.
  ///
  /// The connection is closed before the locks tell which, so that the last process has the only connection.
  private func closeShared(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    do {
      defer { writer.abandon() }
      try writer.flush()
    }
    guard locks.reclaim(), let connection = try SQLiteConnection(path: writer.connection.path, .readWrite) else { return }
    connection.wait = wait
    if wait.isEnded.load(ordering: .relaxed) { connection.stopWaiting() }
    try connection.prepareForWriting()
    let collections = try SQLiteLayout.collections(on: connection)
    let writer = try SQLiteWriter(connection, row: SQLiteStoreRow(on: connection), collections: collections, disk: disk)
    if disk.needsOwnSync { try connection.openOwnLog(fileSystem) }
    try fold(writer)
  }

  /// Folds the log and ends the connection; after a failure the files stay as they are.
  private func fold(_ writer: SQLiteWriter) throws(RepositoryError) {
    do {
      try writer.checkpoint(keeping: options.limits.tombstones)
      try writer.close()
    } catch {
      writer.abandon()
      throw error
    }
  }

  /// Ends the use of a store to which nothing was committed: its files stay as they are.
  func abandon() {
    // The log was folded by recovery: SQLite may remove it.
    end { writer in do { try writer.close() } catch { writer.abandon() } }
  }

  /// Ends whatever phase it is, the use of a writer as the body does, and releases the locks.
  func end(_ endWriter: (SQLiteWriter) -> Void) {
    let ending = phase
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
  /// Checks everything, and reports each problem.
  func verify() -> VerifyReport {
    let clock = ContinuousClock()
    let start = clock.now
    var report = VerifyReport()
    do throws(RepositoryError) {
      let scan: SQLiteScan
      if let writer = try writer() {
        scan = try SQLiteScan(writer.connection, stopsAtDamage: false)
        while try scan.next() != nil {}
        if writer.sharing == nil, scan.row != writer.row, scan.problems.isEmpty {
          report.problems.append(writer.connection.damaged("expected the records of commit \(writer.row.commit), found others"))
        }
        report.problems += try scan.problems + Self.integrityProblems(writer.connection)
      } else if let path {
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

  /// Runs SQLite's own full check.
  static func integrityProblems(_ connection: SQLiteConnection) throws(RepositoryError) -> [RepositoryError] {
    let count = try connection.problemCount(.full, limit: 100)
    return count == 0 ? [] : [connection.damaged("SQLite's integrity check found \(count) problems: restore a backup")]
  }

  /// Writes a compact copy, durably, under another name first.
  func backup(to url: URL) throws(RepositoryError) {
    let writer = try writer()
    try writer?.checkUse()
    // So that the copy has the whole digest; on a full disk, or while another program writes, it has half of it.
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

  /// Returns the writer's connection, or a new one while a commit has begun: it sees the state before that commit.
  private func connectionForCopying(_ writer: SQLiteWriter?) throws(RepositoryError) -> SQLiteConnection {
    if let writer, !writer.connection.isInTransaction { return writer.connection }
    guard let path else { throw notOpen }
    guard let connection = try SQLiteConnection(path: path.main, .readOnly) else { throw path.vanished }
    return connection
  }
}
