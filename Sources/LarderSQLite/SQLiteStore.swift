internal import Foundation
internal import Larder
internal import Synchronization

/// State machine of one store in an SQLite database, from opening to closing.
///
/// Each phase holds only the connection and the locks that it needs. Most calls that do not fit the phase throw an error, such as
/// `.closed`.
final class SQLiteStore {
  enum Phase {
    case unopened
    case opening(SQLiteOpening)
    /// The opening has read every row of the store, and has not written to it yet.
    ///
    /// If a full disk has no room for recovery, the store stays in the phase `.opened`, and each write tries the recovery again.
    case opened(SQLiteOpening)
    case writing(SQLiteWriter, SQLiteLocks)
    case reading(SQLiteReadOnlyReader, SQLiteFileLock?)
    /// The store was suspended while it was open for writing.
    ///
    /// A suspended store holds no connection and no lock until it resumes.
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
  /// Bases that were made since the store was opened.
  let bases = SQLiteBases()
  /// The base of a shared store as of its opening, until the first call of ``keepBase()`` or the first look for later commits.
  private var openedBase: SQLiteBase?

  init(_ file: URL, in fileSystem: any FileSystem, on disk: SQLiteDisk, wait: SQLiteWait) {
    (self.file, self.fileSystem, self.disk, self.wait) = (file, fileSystem, disk, wait)
  }

  // A store that is dropped without `close()` leaves its files as a crash does: every acknowledged commit is in the write-ahead log.
  deinit { end { $0.abandon() } }

  var name: String { path?.main ?? file.path(percentEncoded: false) }

  var notOpen: RepositoryError { RepositoryError(.closed, "the store is not open: open it first", file: name) }

  // MARK: Opening

  func beginOpening(_ options: StoreOptions, _ limits: StoreOptions.Limits?, isPaged: Bool = false) throws(RepositoryError) {
    switch phase {
    case .unopened, .closed: break
    default: throw RepositoryError(.alreadyOpen, "this backend is open already; close it first", file: name)
    }
    self.options = options
    // A suspension before this opening may have forbidden every wait for a lock, so the opening allows waits again.
    wait.isEnded.store(false, ordering: .relaxed)
    let opening: SQLiteOpening
    switch options.access {
    case .exclusive, .shared:
      opening = try SQLiteOpening(file, options: options, limits: limits, isPaged: isPaged, in: fileSystem, on: disk)
    case .readOnly: opening = try SQLiteOpening(readOnly: file, limits, fileSystem)
    }
    path = opening.path
    phase = .opening(opening)
  }

  /// Reads the summary of the collections and the tombstones, in place of the records.
  func summarize() throws(RepositoryError) -> (collections: [CollectionSummary], tombstones: [StoredRecord]) {
    guard case .opening(let opening) = phase else { throw notOpen }
    let tombstones = try opening.summarize()
    return (opening.summary?.collections ?? [], tombstones)
  }

  func nextRecords() throws(RepositoryError) -> [LoadedRecords]? {
    // If another thread has closed the store between two calls of this function, there are no further records.
    guard case .opening(let opening) = phase else { return nil }
    return try opening.next()
  }

  func finishOpening() throws(RepositoryError) -> OpenReport {
    guard case .opening(let opening) = phase else { throw notOpen }
    let reader = SQLiteReadOnlyReader(opening.path, fileSystem)
    // A read-only opening takes no locks and has no recovery, so the store is ready for reading at once.
    phase = opening.locks == nil ? .reading(reader, opening.readingLock) : .opened(opening)
    opening.noteDuration()
    return opening.report
  }

  /// Runs recovery, which makes the files ready for the first commit, and returns the completed report.
  ///
  /// On a full disk an existing store still opens for reading, and each write tries the recovery again.
  func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    guard case .opened(let opening) = phase else { return report }
    opening.report = report
    do throws(RepositoryError) {
      try beginWriting(opening)
    } catch {
      // A new store without a file has no records to read, so its opening fails. An existing store stays readable on a full disk.
      guard error.code == .full, !report.isNew else { throw error }
    }
    opening.noteDuration()
    return opening.report
  }

  private func beginWriting(_ opening: SQLiteOpening) throws(RepositoryError) {
    let (writer, locks) = try opening.recover()
    writer.connection.wait = wait
    writer.bases = bases
    phase = .writing(writer, locks)
    openedBase = opening.base.take()
    if let openedBase { bases.add(openedBase, at: try writer.logLength()) }
  }

  /// Returns the records as of the newest commit.
  ///
  /// In a shared store, the first call returns the records as of the opening, unless commits of other processes were read before.
  /// - Throws: `.unsupported` for a store that is open `.readOnly`.
  func keepBase() throws(RepositoryError) -> SQLiteBase {
    try beginWritingIfDue()
    guard let writer = try writer() else { throw SQLiteStore.pagesForWriters(name) }
    try writer.checkUse()
    if let base = openedBase.take() { return base }
    let isShared = writer.sharing != nil
    let pausesCommits = isShared && !writer.connection.isInTransaction
    if pausesCommits { try writer.beginTransaction(options.durability) }
    defer { if pausesCommits { writer.rollBack() } }
    let (path, commit) = (writer.connection.path, Revision(writer.row.commit))
    let base = try SQLiteBase(path: path, commit: commit, indexes: isShared ? [:] : writer.indexes.complete, isShared: isShared)
    bases.add(base, at: try writer.logLength())
    return base
  }

  /// Returns the error for a store that is open `.readOnly`.
  static func pagesForWriters(_ file: String) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected `.exclusive` or `.shared` access to leave records in a SQLite database, found `.readOnly`; open it with `residency: .full`",
      file: file)
  }

  /// Size of the database and its write-ahead log, or `nil` if it cannot be read.
  var valueSizeBound: ByteCount? {
    let path = file.path(percentEncoded: false)
    do throws(RepositoryError) {
      let sizes = try [path, path + "-wal"].map { path throws(RepositoryError) in
        Int(clamping: try SQLitePath.status(of: path)?.st_size ?? 0)
      }
      return .bytes(sizes[0] + sizes[1])
    } catch {
      return nil
    }
  }

  /// Whether the write-ahead log is so long that the bases in use should be replaced by one of the newest commit.
  var wantsNewerBase: Bool {
    guard case .writing(let writer, _) = phase else { return false }
    do throws(RepositoryError) { return bases.wantNewer(at: try writer.logLength()) } catch {
      return false  // the next commit reports a log whose size cannot be read
    }
  }

  /// Whether a commit could begin now without a wait for another process.
  var canKeepBase: Bool { if case .writing(let writer, _) = phase { writer.canBeginCommit } else { false } }

  /// Ends an opening that failed, so that the store may be opened again.
  func abandonOpening() {
    if case .opening(let opening) = phase { opening.abandon() }
    phase = .unopened
  }

  // MARK: Writing

  /// Returns the writer for a change of an index.
  func indexWriter() throws(RepositoryError) -> SQLiteWriter { try writerForCommit() }

  /// The indexes of an exclusive store that was opened without its records, or `nil` for another one.
  var indexes: SQLiteIndexes? {
    guard options.access == .exclusive else { return nil }
    switch phase {
    case .opening(let opening), .opened(let opening): return opening.summary.map { _ in opening.indexes }
    case .writing(let writer, _): return writer.summary.map { _ in writer.indexes }
    case .suspended(let suspension): return suspension.summary.map { _ in suspension.indexes }
    case .unopened, .reading, .closed: return nil
    }
  }

  func write(_ batch: WriteBatch) throws(RepositoryError) {
    try writerForCommit().write(batch)
  }

  func writeOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try writerForCommit().writeOnFullDisk(batch, keeping: options.limits.tombstones)
  }

  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    openedBase = nil
    return try writerForCommit().beginCommit(after: revision, durability)
  }

  func cancelCommit() {
    if case .writing(let writer, _) = phase { writer.cancelCommit() }
  }

  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    if case .reading(let reader, _) = phase { return try reader.commits(after: revision) }
    openedBase = nil
    return try writer()?.foreignCommits(after: revision)
  }

  func flush() throws(RepositoryError) {
    // A store whose recovery is still due has no writer. A store without a writer has written nothing, so there is nothing to sync.
    try writer()?.flush()
  }

  var wantsCheckpoint: Bool {
    // The margin of 1,000 tombstones prevents a small limit from causing a checkpoint after every few deletions.
    if case .writing(let writer, _) = phase { writer.row.tombstones / 2 - 500 > options.limits.tombstones } else { false }
  }

  func checkpoint() throws(RepositoryError) {
    try beginWritingIfDue()
    try writer()?.checkpoint(keeping: options.limits.tombstones)
  }

  /// Runs a recovery that is still due, because the disk was full or because a wrapping backend does not forward `recover`.
  private func beginWritingIfDue() throws(RepositoryError) {
    if case .opened(let opening) = phase { try beginWriting(opening) }
  }

  /// Returns the writer of the store, or throws `.unsupported` for a store that was opened `.readOnly`.
  private func writerForCommit() throws(RepositoryError) -> SQLiteWriter {
    try beginWritingIfDue()
    guard let writer = try writer() else { throw path?.readOnlyRefusal ?? notOpen }
    return writer
  }

  /// Returns the writer of the store, or `nil` for a store that is read-only or was not recovered yet.
  func writer() throws(RepositoryError) -> SQLiteWriter? {
    switch phase {
    case .writing(let writer, _): return writer
    case .reading, .opened: return nil
    case .unopened, .opening, .suspended, .closed: throw notOpen
    }
  }
}

extension SQLiteStore {
  /// Copies the write-ahead log into the database and closes the connection, after which only the database file stays.
  func close() throws(RepositoryError) {
    guard case .writing(let writer, let locks) = phase else { return abandon() }
    // The phase changes before any call that can throw, because a second `close()` must do nothing.
    phase = .closed
    bases.supersedeAll()
    try end(writer, locks)
  }

  /// Copies the write-ahead log into the database unless another process uses it, closes the connection, and releases the locks.
  func end(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    defer { locks.release() }
    // After a failed sync or rollback the state of the disk is not known, so the log stays, and the next opening checks it.
    if writer.poison != nil { return writer.abandon() }
    if locks.isShared { return try closeShared(writer, locks) }
    try fold(writer)
  }

  /// Leaves the write-ahead log to other processes, or copies it into the database if no other process has the store open.
  ///
  /// The connection is closed before the locks show whether another process has the store open. Since every process closes its connection
  /// first, the last process that closes the store sees that no other process has a connection, and copies the log.
  private func closeShared(_ writer: SQLiteWriter, _ locks: SQLiteLocks) throws(RepositoryError) {
    // An abandoned connection leaves the log as it is, for the other processes that still use it.
    do {
      defer { writer.abandon() }
      try writer.flush()
    }
    // If another process has the store open, that process goes on with the log.
    guard locks.reclaim(), let connection = try SQLiteConnection(path: writer.connection.path, .readWrite) else { return }
    connection.wait = wait
    // If a suspension is under way, the checkpoint must not wait for a reader in another process.
    if wait.isEnded.load(ordering: .relaxed) { connection.stopWaiting() }
    try connection.prepareForWriting()
    let collections = try SQLiteLayout.collections(on: connection)
    // Other processes may have committed since this process read the row of `larder_store`, so the row is read again.
    let writer = try SQLiteWriter(connection, row: SQLiteStoreRow(on: connection), collections: collections, disk: disk)
    if disk.needsOwnSync { try connection.openOwnLog(fileSystem) }
    try fold(writer)
  }

  /// Copies ("folds") the write-ahead log into the database and closes the connection.
  ///
  /// If copying the log fails, the database and the log stay on the disk.
  private func fold(_ writer: SQLiteWriter) throws(RepositoryError) {
    do {
      try writer.checkpoint(keeping: options.limits.tombstones)
      try writer.close()
    } catch {
      writer.abandon()
      throw error
    }
  }

  /// Closes a store to which nothing was committed since it was opened.
  func abandon() {
    // Recovery has copied the log into the database, so SQLite may remove the log when the connection closes.
    end { writer in do { try writer.close() } catch { writer.abandon() } }
  }

  /// Ends the current phase and releases the locks.
  ///
  /// The closure `endWriter` closes the writer of a store that is open for writing.
  func end(_ endWriter: (SQLiteWriter) -> Void) {
    bases.supersedeAll()
    let ending = phase
    // The phase changes first, so that a second call finds `.closed` and releases nothing twice.
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
        // In a shared store other processes may have committed since the writer read its row of `larder_store`, so a different row proves
        // no damage.
        if writer.sharing == nil, scan.row != writer.row, scan.problems.isEmpty {
          report.problems.append(writer.connection.damaged("expected the records of commit \(writer.row.commit), found others"))
        }
        report.problems += try scan.problems + Self.integrityProblems(writer.connection) + writer.indexProblems()
      } else if let path {
        // A read-only store keeps no connection between calls, because an open connection would keep a writer from removing its log.
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

  /// Runs SQLite's `integrity_check` and returns its findings as one error, or no error for an undamaged file.
  static func integrityProblems(_ connection: SQLiteConnection) throws(RepositoryError) -> [RepositoryError] {
    let count = try connection.problemCount(.full, limit: 100)
    return count == 0 ? [] : [connection.damaged("SQLite's integrity check found \(count) problems: restore a backup")]
  }

  /// Writes a durable, compact copy of the store under a temporary name and renames it.
  func backup(to url: URL) throws(RepositoryError) {
    let writer = try writer()
    try writer?.checkUse()
    // The row of `larder_store` may be behind the newest commit. If the row is written before the copy, the copy contains the whole digest
    // of its rows. On a full disk, or while another program writes, the row of `larder_store` cannot be written, and the copy contains half
    // of the digest.
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

  /// Returns the writer's connection, or a new connection if there is no writer or a transaction is open on the writer's connection.
  ///
  /// `VACUUM INTO` fails inside a transaction. The new connection reads the state before the begun commit.
  private func connectionForCopying(_ writer: SQLiteWriter?) throws(RepositoryError) -> SQLiteConnection {
    if let writer, !writer.connection.isInTransaction { return writer.connection }
    guard let path else { throw notOpen }
    guard let connection = try SQLiteConnection(path: path.main, .readOnly) else { throw path.vanished }
    return connection
  }
}
