internal import Foundation
internal import Larder

/// The decision whether a write-ahead log that a crash has left is whole, torn or damaged.
extension SQLiteOpening {
  /// Syncs and inspects the write-ahead log that a crash has left, or returns `nil` when there is no log.
  ///
  /// The write-ahead log is synced before it is inspected, even if it is empty. A killed process may have left bytes of the log only in the
  /// page cache. Without the sync, the opening could rely on bytes that a power cut then takes away.
  static func inspectLog(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> SQLiteLogInspection? {
    guard let file = try fileSystem.open(path.log, writable: true) else { return nil }
    try file.sync()
    guard try file.size() > 0 else { return nil }
    try fileSystem.syncDirectory(path.directory)
    return try inspect(file, path)
  }

  /// Reads through an open write-ahead log, or returns `nil` for a log that has nothing to recover.
  static func inspect(_ file: any OpenFile, _ path: SQLitePath) throws(RepositoryError) -> SQLiteLogInspection? {
    if try SQLiteLogInspection.isEmpty(file) { return nil }
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return nil }
    // The page size is read from the database, because the page size in the log's header may be damaged.
    let bytes = try connection.header().bytes
    let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
    guard pageSize == 1 || (pageSize >= 512 && pageSize.nonzeroBitCount == 1) else {
      throw RepositoryError(
        .corrupted, "expected a page size between 512 and 65536, found \(pageSize): restore a backup", file: path.main, offset: 16)
    }
    let size = pageSize == 1 ? 65_536 : pageSize
    let log = try SQLiteLogInspection(file, pageSize: size)
    // If a process is killed during the last write of a checkpoint, the log has half a header, but no commit is lost, because all pages of
    // the log are in the database.
    let isFolded = log.isHeaderWhole ? false : try SQLiteLogInspection.isFolded(file, pageSize: size, into: connection)
    try connection.close()
    try file.close()
    return isFolded ? nil : log
  }

  /// Returns the cuts of torn logs that earlier openings made and did not report, because those openings failed or were killed.
  static func unreportedCuts(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> [OpenReport.CutTail] {
    var cuts: [OpenReport.CutTail] = []
    for name in try (fileSystem.entries(of: path.directory) ?? []).sorted() {
      guard let (quarantine, offset) = path.unreportedCut(name) else { continue }
      let size = try SQLitePath.status(of: SQLitePath.unreported(quarantine)).map { Int(clamping: $0.st_size) } ?? 0
      cuts.append(
        .init(file: path.log, offset: UInt64(offset), byteCount: max(0, size - offset), quarantineFile: quarantine, isAmbiguous: true))
    }
    return cuts
  }

  /// Throws `.corrupted` for a write-ahead log whose damage lost acknowledged commits, and with `.strict` recovery for any damage.
  static func judge(
    _ log: SQLiteLogInspection, _ path: SQLitePath, isBuffered: Bool, _ recovery: StoreOptions.Recovery
  ) throws(RepositoryError) {
    // Unsynced transactions may reach the disk in any order, so a commit that is missing before a later commit proves damage only if all
    // commits were synced.
    if let offset = log.lostOffset, log.holdsLaterCommit && !isBuffered {
      throw RepositoryError(
        .corrupted, "the write-ahead log is damaged before a later commit: restore a backup", file: path.log, offset: UInt64(offset))
    }
    if recovery == .strict, let offset = log.lostOffset ?? log.unfinishedOffset {
      throw RepositoryError(
        .corrupted,
        "expected a log that ends with a whole commit, found a torn end: open with `StoreOptions.recovery` `.cutAndReport` to cut it",
        file: path.log, offset: UInt64(offset))
    }
  }

  /// Returns the row of `larder_store` in the database without its write-ahead log, or `nil` where the row cannot be read.
  ///
  /// If the row of `larder_store` cannot be read, a checkpoint was cut short or is under way. The write-ahead log still holds all pages of
  /// a checkpoint that has not ended.
  static func foldedRow(_ path: SQLitePath) throws(RepositoryError) -> SQLiteStoreRow? {
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return nil }
    do throws(RepositoryError) {
      // The CREATE statements of the tables are compared before a row is read, because a malicious file could make the reading of a row
      // arbitrarily slow.
      let (bytes, size) = try connection.header()
      try SQLiteLayout.check(header: bytes, size: size, file: path.main)
      _ = try SQLiteLayout.collections(on: connection)
      return try SQLiteStoreRow(on: connection)
    } catch {
      return nil
    }
  }

  /// Throws `.corrupted` for a write-ahead log that does not continue from the database's commit.
  ///
  /// A log that does not continue from the database belongs to another store, or to another copy of this store. A checkpoint copies the
  /// newest commit of the log or an earlier one, so the database without its log is never newer than the log. The database is not newer
  /// than its log even while another process writes, if the database's row was read before the log.
  static func checkContinuity(of row: SQLiteStoreRow, from folded: SQLiteStoreRow?, _ path: SQLitePath) throws(RepositoryError) {
    guard let folded else { return }
    // A checkpoint that was cut short may have copied other pages than the page with the row of `larder_store`. The row of `larder_store`
    // in the log may then differ from that row in the database for the same commit: the mark of buffered commits is cleared, or there are
    // fewer tombstones.
    var marked = row
    marked.isBuffered = true
    guard folded.id == row.id, folded.commit < row.commit || folded == row || folded == marked || row.hasForgotten(since: folded) else {
      throw RepositoryError(
        .corrupted,
        "the write-ahead log belongs to another copy of the store, or an earlier one: expected one that goes on from commit "
          + "\(folded.commit) of the database, found commit \(row.commit); bring the log of this copy back, or move this one away",
        file: path.log)
    }
  }
}
