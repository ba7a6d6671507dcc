internal import Foundation
internal import Larder

/// A store from its opening to its close: what may be called when, and what each call needs.
final class SQLiteStore {
  private enum Phase {
    case unopened
    case opening(SQLiteOpening)
    /// All was read, and nothing written yet.
    case opened(SQLiteOpening)
    /// All was read, and the full disk has no space for what comes before the first commit: each write tries again.
    case full(SQLiteOpening)
    case writing(SQLiteWriter, SQLiteLocks)
    case reading(SQLiteBeside, SQLiteFileLock?)
    case closed
  }

  private let file: URL
  private let fileSystem: any FileSystem
  private var phase = Phase.unopened
  private var options = StoreOptions()
  private var path: SQLitePath?

  init(_ file: URL, _ fileSystem: any FileSystem) {
    self.file = file
    self.fileSystem = fileSystem
  }

  // A store that is dropped without close() is left as by a crash: all that was acknowledged is in the log.
  deinit {
    switch phase {
    case .writing(let writer, let locks):
      writer.abandon()
      locks.release()
    case .opening(let opening), .opened(let opening), .full(let opening): opening.abandon()
    case .reading(_, let lock): lock?.release()
    case .unopened, .closed: break
    }
  }

  private var name: String { path?.main ?? file.path(percentEncoded: false) }

  // MARK: Opening

  func beginOpening(_ options: StoreOptions) throws(RepositoryError) {
    switch phase {
    case .unopened, .closed: break
    default: throw RepositoryError(.alreadyOpen, "this backend is open", file: name)
    }
    self.options = options
    let opening: SQLiteOpening
    switch options.access {
    case .exclusive, .shared: opening = try SQLiteOpening(file, options, fileSystem)
    case .readOnly: opening = try SQLiteOpening(readOnly: file, fileSystem)
    }
    path = opening.path
    phase = .opening(opening)
  }

  func nextRecords() throws(RepositoryError) -> [StoredRecord]? {
    guard case .opening(let opening) = phase else { return nil }
    return try opening.next()
  }

  func finishOpening() throws(RepositoryError) -> OpenReport {
    guard case .opening(let opening) = phase else { throw RepositoryError(.closed, file: name) }
    let beside = SQLiteBeside(opening.path, fileSystem)
    phase = opening.locks == nil ? .reading(beside, opening.readingLock) : .opened(opening)
    opening.noteDuration()
    return opening.report
  }

  /// Writes what comes before the first commit.
  ///
  /// A full disk does not keep a store shut that is there: it can be read, and each write tries again.
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    guard case .opened(let opening) = phase else { return report }
    opening.report = report
    do throws(RepositoryError) {
      try begin(opening)
    } catch {
      guard error.code == .full, !report.isNew else { throw error }
      phase = .full(opening)
    }
    opening.noteDuration()
    return opening.report
  }

  private func begin(_ opening: SQLiteOpening) throws(RepositoryError) {
    let (writer, locks) = try opening.recover()
    phase = .writing(writer, locks)
  }

  /// Gives up an opening that failed; the store may be tried again.
  func abandonOpening() {
    if case .opening(let opening) = phase { opening.abandon() }
    phase = .unopened
  }

  // MARK: Writing

  func write(_ batch: WriteBatch) throws(RepositoryError) { try writerOrRefusal().write(batch) }

  func writeOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try writerOrRefusal().writeOnFullDisk(batch, keeping: options.limits.tombstones)
  }

  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try writerOrRefusal().beginCommit(after: revision, durability)
  }

  func cancelCommit() {
    if case .writing(let writer, _) = phase { writer.cancelCommit() }
  }

  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    if case .reading(let beside, _) = phase { return try beside.commits(after: revision) }
    return try writer()?.foreignCommits(after: revision)
  }

  func flush() throws(RepositoryError) {
    // Nothing was written yet by a store that has not begun.
    if case .opened = phase { return }
    try writer()?.flush()
  }

  func checkpoint() throws(RepositoryError) {
    try beginIfDue()
    try writer()?.checkpoint(keeping: options.limits.tombstones)
  }

  /// Begins to write where the disk was full before, or where a backend around this one, written before opening had two steps, did not hand
  /// `recover` on.
  private func beginIfDue() throws(RepositoryError) {
    switch phase {
    case .full(let opening), .opened(let opening): try begin(opening)
    default: return
    }
  }

  /// The writer, for a commit.
  private func writerOrRefusal() throws(RepositoryError) -> SQLiteWriter {
    try beginIfDue()
    guard let writer = try writer() else { throw RepositoryError(.unsupported, "the store was opened for reading only", file: name) }
    return writer
  }

  /// The writer; `nil` for a store that can only be read.
  private func writer() throws(RepositoryError) -> SQLiteWriter? {
    switch phase {
    case .writing(let writer, _): return writer
    case .reading, .full: return nil
    case .unopened, .opening, .opened, .closed: throw RepositoryError(.closed, "the store is not open", file: name)
    }
  }

  // MARK: Checking and copying

  func verify() -> VerifyReport {
    let clock = ContinuousClock()
    let start = clock.now
    var report = VerifyReport()
    do throws(RepositoryError) {
      let reader: SQLiteReader
      if let writer = try writer() {
        reader = try SQLiteReader(writer.connection, stopsAtDamage: false)
        while try reader.next() != nil {}
        report.problems = try Self.integrityProblems(writer.connection)
      } else if let path {
        reader = try SQLiteBeside(path, fileSystem).readAll(stopsAtDamage: false).0
      } else {
        throw RepositoryError(.closed, "the store is not open", file: name)
      }
      report.commit = Revision(reader.row.commit)
      report.recordCount = reader.recordCount
      report.tombstoneCount = reader.tombstoneCount
      report.problems += reader.problems
    } catch {
      report.problems.append(error)
    }
    report.duration = clock.now - start
    return report
  }

  /// SQLite's own full check.
  ///
  /// Its lines may quote what is in the file, so only their number is told.
  private static func integrityProblems(_ connection: SQLiteConnection) throws(RepositoryError) -> [RepositoryError] {
    let statement = try connection.prepare("PRAGMA integrity_check(100)")
    var count = 0
    while try statement.step() { if try statement.text(0) != "ok" { count += 1 } }
    try statement.reset()
    return count == 0 ? [] : [connection.damaged("SQLite's integrity check found \(count) problems")]
  }

  /// Writes a compact copy, durably, under another name first.
  func backup(to url: URL) throws(RepositoryError) {
    let connection: SQLiteConnection
    let writer = try writer()
    if let poison = writer?.poison { throw RepositoryError(.poisoned, "an earlier sync failed", file: name, underlying: poison) }
    // A commit that has begun keeps its connection from copying. Another one sees what was committed before it.
    if let writer, !writer.connection.isInTransaction {
      connection = writer.connection
    } else {
      guard let path, let opened = try SQLiteConnection(path: path.main, .readOnly) else {
        throw RepositoryError(.dataMissing, "the file went away", file: name)
      }
      connection = opened
    }
    let fileSystem = fileSystem
    let target = try SQLitePath(url) { directory throws(RepositoryError) in try fileSystem.createDirectory(directory) }
    guard SQLitePath.isAbsent(target.main) else { throw RepositoryError(.alreadyExists, "there is a file at this path", file: target.main) }
    do {
      try SQLiteDraft.copy(to: target, fileSystem) { draft throws(RepositoryError) in
        try connection.withAttachment { () throws(RepositoryError) in
          let statement = try connection.prepare("VACUUM INTO ?1")
          try statement.bind(draft, at: 1)
          try statement.run()
        }
      }
    } catch {
      if error.code != .outcomeUnknown { throw error }
      throw RepositoryError(.inputOutput, "the copy could not be synced", file: target.main, underlying: error)
    }
  }

  // MARK: Closing

  /// Folds the log and ends the connection; only the database file stays.
  func close() throws(RepositoryError) {
    guard case .writing(let writer, let locks) = phase else { return abandon() }
    phase = .closed
    defer { locks.release() }
    // After a failed sync the log is left for the next open to judge.
    if writer.poison != nil { return writer.abandon() }
    if locks.isShared { return try closeShared(writer, locks) }
    do {
      try writer.checkpoint(keeping: options.limits.tombstones)
      try writer.close()
    } catch {
      writer.abandon()
      throw error
    }
  }

  /// Leaves the log to the others, or folds it if nobody else has the store open.
  ///
  /// The connection goes before it is found out whether there are others, so that the one who is last is the only one.
  private func closeShared(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    do {
      try writer.flush()
    } catch {
      writer.abandon()
      throw error
    }
    writer.abandon()
    guard locks.reclaim(), let connection = try SQLiteConnection(path: writer.connection.path, .readWrite) else { return }
    for pragma in SQLiteDraft.pragmas { try connection.execute("PRAGMA \(pragma)") }
    let collections = try SQLiteLayout.collections(on: connection)
    let last = try SQLiteWriter(connection, row: SQLiteStoreRow(on: connection), collections: collections)
    do {
      try last.checkpoint(keeping: options.limits.tombstones)
      try last.close()
    } catch {
      last.abandon()
      throw error
    }
  }

  /// Ends the use of a store to which nothing was committed: its files stay as they are.
  func abandon() {
    let ending = phase
    phase = .closed
    switch ending {
    case .opening(let opening), .opened(let opening), .full(let opening): opening.abandon()
    case .reading(_, let lock): lock?.release()
    case .writing(let writer, let locks):
      // Its log was brought into the database by the second step of opening: SQLite may remove it.
      do { try writer.close() } catch { writer.abandon() }
      locks.release()
    case .unopened, .closed: break
    }
  }

  // MARK: For tests

  /// Runs a statement on the store's connection, to bring about what cannot be brought about from outside.
  func execute(_ sql: String) throws(RepositoryError) { try writer()?.connection.execute(sql) }
}
