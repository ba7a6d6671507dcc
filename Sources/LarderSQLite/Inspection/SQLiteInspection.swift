// Inspection/ reads and copies a database for tools: all of it and all problems, also where a store would refuse to open.
// No byte of it is changed.
// Invariant: no lock is taken that another process waits for; it is no public API. Called by the larder tool.

public import Foundation
public import Larder

/// A SQLite store as a tool reads it, in a process that has no store open on the same file.
///
/// In contrast to a store opened `.readOnly`, it leaves the log's index as it is where a killed process has left one.
@_spi(Inspection)
public struct SQLiteInspection: Sendable {
  /// The end of a log that is not a whole commit.
  public struct Tail: Sendable {
    /// The offset of its first byte in the log.
    public let offset: Int
    /// Its size in bytes.
    public let byteCount: Int
  }

  /// The contents of a log.
  public struct Log: Sendable {
    /// The number of transactions that are not folded into the database yet.
    public let transactionCount: Int
    /// The end that is not a whole commit, if there is one.
    public let tail: Tail?
  }

  /// The byte of the database that a store has locked while it is open, by a lock of `F_OFD_SETLK`; no database is as long.
  public static let lockedByte: Int64 = 1 << 62

  private let path: SQLitePath
  private let fileSystem: any FileSystem
  /// The number of attempts to judge a log that changes meanwhile.
  private static let attempts = 5

  /// Names the file.
  /// - Throws: `.unsupported` for anything but a plain file with one name; `.dataMissing` where there is no such directory.
  public init(file: URL) throws(RepositoryError) { try self.init(file: file, fileSystem: POSIXFileSystem()) }

  init(file: URL, fileSystem: any FileSystem) throws(RepositoryError) {
    self.fileSystem = fileSystem
    path = try SQLitePath(file, makeDirectory: nil)
    try path.checkKinds()
  }

  private var reader: SQLiteReadOnlyReader { SQLiteReadOnlyReader(path, fileSystem, ignoresUnusedIndex: true) }

  /// Hands over every record and tombstone, as of one commit.
  /// - Throws: as a store opened `.readOnly`.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    let folded = try SQLiteOpening.foldedRow(path)
    let (scan, chunks) = try reader.readAll()
    try SQLiteOpening.checkContinuity(of: scan.row, from: folded, path)
    for loaded in chunks.joined() { loaded.forEach(visit) }
    return OpenReport(
      storeID: scan.row.id, commit: Revision(scan.row.commit), isNew: false, recordCount: scan.recordCount,
      tombstoneHorizon: Revision(scan.row.tombstonesSince))
  }

  /// Checks everything, the log included, and collects all problems.
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
  /// Without a log a writer that comes and goes meanwhile may tear the copy: whoever makes it verifies it. The end of a log that is no
  /// whole commit is left out.
  /// - Throws: `.alreadyExists`; as ``readAll(_:)``, `.corrupted` also for a log that is damaged before a later commit; `.full`.
  public func backup(to url: URL) throws(RepositoryError) {
    let target = try SQLitePath(url, makeDirectory: nil)
    let folded = try SQLiteOpening.foldedRow(path)
    let row = try reader.readAll().0.row
    try SQLiteOpening.checkContinuity(of: row, from: folded, path)
    _ = try judgeLog(row)
    let fileSystem = fileSystem
    var isCopied = false
    try reader.copy { connection throws(RepositoryError) in
      // The reader copies again when the store was written meanwhile, since the copy before may be torn.
      try SQLiteDraft.copy(of: connection, to: target, replacing: isCopied, fileSystem)
      isCopied = true
    }
  }

  /// Returns what the log holds; `nil` where there is none, or a process writes it without a pause.
  public func log() throws(RepositoryError) -> Log? {
    try inspectLog().map { log in
      Log(transactionCount: log.transactions, tail: log.lostOffset.map { Tail(offset: $0, byteCount: log.lostCount) })
    }
  }

  /// Judges the log as opening does: SQLite would ignore what follows a damaged byte.
  private func judgeLog(_ row: SQLiteStoreRow) throws(RepositoryError) -> Tail? {
    guard let log = try inspectLog() else { return nil }
    try SQLiteOpening.judge(log, path, isBuffered: row.isBuffered, .cutAndReport)
    return log.lostOffset.map { Tail(offset: $0, byteCount: log.lostCount) }
  }

  /// Reads through the log at a moment at which nobody writes: the end of one that changes is not a torn write but the next one.
  private func inspectLog() throws(RepositoryError) -> SQLiteLogInspection? {
    for _ in 0..<Self.attempts {
      let before = try SQLiteFileState(path)
      guard let file = try fileSystem.open(path.log, writable: false), let log = try SQLiteOpening.inspect(file, path) else { return nil }
      if try SQLiteFileState(path) == before { return log }
    }
    return nil
  }
}
