internal import Foundation
internal import Larder

/// The judgement of a write-ahead log that a crash has left.
extension SQLiteOpening {
  /// Syncs and inspects the write-ahead log that a crash has left, or returns `nil` when there is none.
  ///
  /// The log is synced first, also when it is empty: decisions must not rest on bytes that a killed process left in the page cache alone.
  static func inspectLog(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> SQLiteLogInspection? {
    guard let file = try fileSystem.open(path.log, writable: true) else { return nil }
    try file.sync()
    guard try file.size() > 0 else { return nil }
    try fileSystem.syncDirectory(path.directory)
    return try inspect(file, path)
  }

  /// Reads through an open write-ahead log, or returns `nil` for one that has nothing to recover.
  static func inspect(_ file: any OpenFile, _ path: SQLitePath) throws(RepositoryError) -> SQLiteLogInspection? {
    if try SQLiteLogInspection.isEmpty(file) { return nil }
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return nil }
    // From the database: the header of the log has a page size too, and may be damaged.
    let bytes = try connection.header().bytes
    let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
    guard pageSize == 1 || (pageSize >= 512 && pageSize.nonzeroBitCount == 1) else {
      throw RepositoryError(
        .corrupted, "expected a page size between 512 and 65536, found \(pageSize): restore a backup", file: path.main, offset: 16)
    }
    let size = pageSize == 1 ? 65_536 : pageSize
    let log = try SQLiteLogInspection(file, pageSize: size)
    // A kill within a checkpoint's last write leaves half a header over a log that has nothing to recover.
    let isFolded = log.isHeaderWhole ? false : try SQLiteLogInspection.isFolded(file, pageSize: size, into: connection)
    try connection.close()
    try file.close()
    return isFolded ? nil : log
  }

  /// Returns the cuts of earlier openings that failed or were killed before they could report them.
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

  /// Throws `.corrupted` for a write-ahead log whose damage took acknowledged commits, and with `.strict` recovery for any damage.
  static func judge(
    _ log: SQLiteLogInspection, _ path: SQLitePath, isBuffered: Bool, _ recovery: StoreOptions.Recovery
  ) throws(RepositoryError) {
    // Unsynced transactions may reach the disk in any order, so only synced ones prove damage.
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

  /// Returns the row of `larder_store` in the database without its write-ahead log, or `nil` where it cannot be read.
  ///
  /// An unreadable row means that a checkpoint was cut short, or is under way. The log then holds the whole of it.
  static func foldedRow(_ path: SQLitePath) throws(RepositoryError) -> SQLiteStoreRow? {
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return nil }
    do throws(RepositoryError) {
      // First the statements of the tables: a prepared file could make reading a row arbitrarily slow.
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
  /// Such a log is of another store, or of another copy of this one. A checkpoint copies a commit of the log or an earlier one, so the
  /// database alone is never ahead of its log. That also holds beside a writer, for a row that was read before the log.
  static func checkContinuity(of row: SQLiteStoreRow, from folded: SQLiteStoreRow?, _ path: SQLitePath) throws(RepositoryError) {
    guard let folded else { return }
    // A checkpoint that was cut short may have cleared the mark of buffered commits in the log alone, and deleted tombstones.
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
