// Inspection/ reads and copies a database for tools: every row and every problem, even if opening the store would throw an error.
// Invariant: no byte of the store is changed, and no lock is taken that makes another process wait. The types of this folder are no public
// API.
// Called by the larder tool.

public import Foundation
public import Larder

/// A SQLite store that a tool reads, in a process that has no store open on the same file.
///
/// A store opened `.readOnly` may write the `-shm` file, SQLite's index of the log, if a killed process has left one. An inspection leaves
/// the `-shm` file as it is.
@_spi(Inspection)
public struct SQLiteInspection: Sendable {
  /// The end of a write-ahead log, if the end is not a whole commit.
  public struct Tail: Sendable {
    /// Offset in the write-ahead log of the first byte that the next opening will cut.
    public let offset: Int
    /// Number of bytes that belong to the incomplete end of the write-ahead log.
    public let byteCount: Int
  }

  /// The contents of a write-ahead log.
  public struct Log: Sendable {
    /// Number of transactions in the write-ahead log that no checkpoint has copied into the database yet.
    public let transactionCount: Int
    /// The end of the write-ahead log that is not a whole commit, or `nil` for a whole log.
    public let tail: Tail?
  }

  /// Offset of the byte of the database that an open store locks with `F_OFD_SETLK`.
  ///
  /// The locked byte lies behind the end of every database, so the lock blocks no access to the database's own bytes.
  public static let lockedByte: Int64 = 1 << 62

  private let path: SQLitePath
  private let fileSystem: any FileSystem
  /// Number of attempts to read a write-ahead log while another process changes it.
  private static let attempts = 5

  /// Creates an inspection of the store in a SQLite file.
  ///
  /// - Throws: `.unsupported` for anything but a plain file with one name, and `.dataMissing` if the directory does not exist.
  public init(file: URL) throws(RepositoryError) { try self.init(file: file, fileSystem: POSIXFileSystem()) }

  init(file: URL, fileSystem: any FileSystem) throws(RepositoryError) {
    self.fileSystem = fileSystem
    path = try SQLitePath(file, makeDirectory: nil)
    try path.checkKinds()
  }

  private var reader: SQLiteReadOnlyReader { SQLiteReadOnlyReader(path, fileSystem, ignoresUnusedIndex: true) }

  /// Passes every record and tombstone of one commit to `visit`.
  ///
  /// - Throws: the errors of a store opened `.readOnly`.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    // The row of `larder_store` is read from the database before the write-ahead log is read. A checkpoint between the two readings can
    // only make the database newer than the row that was read.
    let folded = try SQLiteOpening.foldedRow(path)
    let (scan, chunks) = try reader.readAll()
    try SQLiteOpening.checkContinuity(of: scan.row, from: folded, path)
    for loaded in chunks.joined() { loaded.forEach(visit) }
    return OpenReport(
      storeID: scan.row.id, commit: Revision(scan.row.commit), isNew: false, recordCount: scan.recordCount,
      tombstoneHorizon: Revision(scan.row.tombstonesSince))
  }

  /// Checks every row, SQLite's own structures and the write-ahead log, and collects all problems.
  ///
  /// - Returns: The report, and the end of the write-ahead log that the next opening will cut, or `nil` if it will cut nothing.
  public func verify() -> (report: VerifyReport, tail: Tail?) {
    var report = VerifyReport()
    var tail: Tail?
    do throws(RepositoryError) {
      let folded = try SQLiteOpening.foldedRow(path)
      let found = try reader.verify()
      // The report is filled before the following checks, because these may throw, and the report must keep the problems found in the rows.
      report = VerifyReport(
        commit: Revision(found.scan.row.commit), recordCount: found.scan.recordCount, tombstoneCount: found.scan.tombstoneCount,
        problems: found.problems)
      try SQLiteOpening.checkContinuity(of: found.scan.row, from: folded, path)
      tail = try judgeLog(found.scan.row)
    } catch {
      report.problems.append(error)
    }
    return (report, tail)
  }

  /// Writes a compact copy of the store, as ``SQLiteBackend/backup(to:)`` does, and makes or changes no file beside the store.
  ///
  /// If the store has no write-ahead log, a writer that opens and closes the store meanwhile may make the copy inconsistent. Verify the
  /// copy after you have made it. If the end of the write-ahead log is no whole commit, the copy leaves this end out.
  /// - Throws: `.alreadyExists`, `.full`, and the errors of ``readAll(_:)``. `.corrupted` also for a write-ahead log that is damaged before
  ///   a later commit.
  public func backup(to url: URL) throws(RepositoryError) {
    let target = try SQLitePath(url, makeDirectory: nil)
    let folded = try SQLiteOpening.foldedRow(path)
    let row = try reader.readAll().0.row
    try SQLiteOpening.checkContinuity(of: row, from: folded, path)
    // The log is checked for damage before the copy, because SQLite would leave the commits behind a damaged byte out of the copy without
    // an error.
    _ = try judgeLog(row)
    let fileSystem = fileSystem
    var isCopied = false
    try reader.copy { connection throws(RepositoryError) in
      // The reader calls this closure again if another process wrote to the store meanwhile, because the first copy may then mix two states
      // of the store.
      try SQLiteDraft.copy(of: connection, to: target, replacing: isCopied, fileSystem)
      isCopied = true
    }
  }

  /// Returns the contents of the write-ahead log, or `nil` if there is no log or another process writes to it without a pause.
  public func log() throws(RepositoryError) -> Log? {
    try inspectLog().map { log in
      Log(transactionCount: log.transactions, tail: log.lostOffset.map { Tail(offset: $0, byteCount: log.lostCount) })
    }
  }

  /// Checks the write-ahead log for damage as an opening does, because SQLite ignores all commits behind a damaged byte without an error.
  private func judgeLog(_ row: SQLiteStoreRow) throws(RepositoryError) -> Tail? {
    guard let log = try inspectLog() else { return nil }
    try SQLiteOpening.judge(log, path, isBuffered: row.isBuffered, .cutAndReport)
    return log.lostOffset.map { Tail(offset: $0, byteCount: log.lostCount) }
  }

  /// Reads through the write-ahead log, and repeats the reading if the log changed meanwhile.
  ///
  /// While another process writes to the log, the unfinished end of the log is the next commit and not a torn write. Therefore only a
  /// write-ahead log that did not change during the reading is judged as torn or whole.
  private func inspectLog() throws(RepositoryError) -> SQLiteLogInspection? {
    for _ in 0..<Self.attempts {
      let before = try SQLiteFileState(path)
      guard let file = try fileSystem.open(path.log, writable: false), let log = try SQLiteOpening.inspect(file, path) else { return nil }
      if try SQLiteFileState(path) == before { return log }
    }
    return nil
  }
}
