// Inspection/ reads and copies a database for tools: every row and every problem, also where a store would refuse to open.
// Invariant: no byte of the store is changed, and no lock is taken that another process waits for. The room is no public API.
// Called by the larder tool.

public import Foundation
public import Larder

/// A SQLite store as a tool reads it, in a process that has no store open on the same file.
///
/// A store that is opened `.readOnly` may write the log's index anew where a killed process has left one. An inspection leaves it as it is.
@_spi(Inspection)
public struct SQLiteInspection: Sendable {
  /// The end of a write-ahead log that is not a whole commit.
  public struct Tail: Sendable {
    /// Offset of the first byte that is cut, counted from the beginning of the write-ahead log.
    public let offset: Int
    /// Number of bytes from the offset that belong to the incomplete end.
    public let byteCount: Int
  }

  /// The contents of a write-ahead log.
  public struct Log: Sendable {
    /// Number of transactions in the write-ahead log, which a checkpoint has not copied into the database yet.
    public let transactionCount: Int
    /// End of the write-ahead log that is not a whole commit, or `nil` for a whole log.
    public let tail: Tail?
  }

  /// Offset of the byte of the database that an open store locks with `F_OFD_SETLK`.
  ///
  /// No database is that long.
  public static let lockedByte: Int64 = 1 << 62

  private let path: SQLitePath
  private let fileSystem: any FileSystem
  /// Number of attempts to read a write-ahead log that another process changes meanwhile.
  private static let attempts = 5

  /// Creates an inspection of a SQLite store's file.
  /// - Throws: `.unsupported` for anything but a plain file with one name, and `.dataMissing` where there is no such directory.
  public init(file: URL) throws(RepositoryError) { try self.init(file: file, fileSystem: POSIXFileSystem()) }

  init(file: URL, fileSystem: any FileSystem) throws(RepositoryError) {
    self.fileSystem = fileSystem
    path = try SQLitePath(file, makeDirectory: nil)
    try path.checkKinds()
  }

  private var reader: SQLiteReadOnlyReader { SQLiteReadOnlyReader(path, fileSystem, ignoresUnusedIndex: true) }

  /// Visits every record and tombstone as of one commit.
  /// - Throws: the errors of a store opened `.readOnly`.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    // Read before the log: a checkpoint meanwhile can only make the database newer than this row.
    let folded = try SQLiteOpening.foldedRow(path)
    let (scan, chunks) = try reader.readAll()
    try SQLiteOpening.checkContinuity(of: scan.row, from: folded, path)
    for loaded in chunks.joined() { loaded.forEach(visit) }
    return OpenReport(
      storeID: scan.row.id, commit: Revision(scan.row.commit), isNew: false, recordCount: scan.recordCount,
      tombstoneHorizon: Revision(scan.row.tombstonesSince))
  }

  /// Checks every row, SQLite's own structures and the write-ahead log, and collects all problems.
  /// - Returns: The report, and the end of the log that the next opening will cut, if there is one.
  public func verify() -> (report: VerifyReport, tail: Tail?) {
    var report = VerifyReport()
    var tail: Tail?
    do throws(RepositoryError) {
      let folded = try SQLiteOpening.foldedRow(path)
      let found = try reader.verify()
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

  /// Writes a compact copy as ``SQLiteBackend/backup(to:)`` does, and makes or changes no file beside the store.
  ///
  /// Without a log, a writer that comes and goes meanwhile may tear the copy. Verify the copy after you have made it. The end of a log that
  /// is no whole commit is left out.
  /// - Throws: `.alreadyExists`, `.full`, and the errors of ``readAll(_:)``. `.corrupted` also for a log that is damaged before a later
  ///   commit.
  public func backup(to url: URL) throws(RepositoryError) {
    let target = try SQLitePath(url, makeDirectory: nil)
    let folded = try SQLiteOpening.foldedRow(path)
    let row = try reader.readAll().0.row
    try SQLiteOpening.checkContinuity(of: row, from: folded, path)
    // SQLite would leave the commits behind a damaged byte out of the copy, without an error.
    _ = try judgeLog(row)
    let fileSystem = fileSystem
    var isCopied = false
    try reader.copy { connection throws(RepositoryError) in
      // The reader repeats the copy if the store was written meanwhile, since the first copy may be torn.
      try SQLiteDraft.copy(of: connection, to: target, replacing: isCopied, fileSystem)
      isCopied = true
    }
  }

  /// Returns the contents of the write-ahead log, or `nil` where there is no log or a process writes it without a pause.
  public func log() throws(RepositoryError) -> Log? {
    try inspectLog().map { log in
      Log(transactionCount: log.transactions, tail: log.lostOffset.map { Tail(offset: $0, byteCount: log.lostCount) })
    }
  }

  /// Judges the write-ahead log as opening does, since SQLite would ignore everything behind a damaged byte.
  private func judgeLog(_ row: SQLiteStoreRow) throws(RepositoryError) -> Tail? {
    guard let log = try inspectLog() else { return nil }
    try SQLiteOpening.judge(log, path, isBuffered: row.isBuffered, .cutAndReport)
    return log.lostOffset.map { Tail(offset: $0, byteCount: log.lostCount) }
  }

  /// Reads through the write-ahead log, again if it changed meanwhile.
  ///
  /// While a process writes the log, its end is the next commit and not a torn write.
  private func inspectLog() throws(RepositoryError) -> SQLiteLogInspection? {
    for _ in 0..<Self.attempts {
      let before = try SQLiteFileState(path)
      guard let file = try fileSystem.open(path.log, writable: false), let log = try SQLiteOpening.inspect(file, path) else { return nil }
      if try SQLiteFileState(path) == before { return log }
    }
    return nil
  }
}
