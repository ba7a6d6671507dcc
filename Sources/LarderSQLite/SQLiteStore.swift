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
