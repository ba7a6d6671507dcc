internal import Foundation
internal import Larder

/// The judgement of a log that an unclean end has left.
extension SQLiteOpening {
  /// Inspects the log that an unclean end has left; `nil` when there is none.
  ///
  /// It is synced first, also when it is empty: decisions must not rest on what a killed process left in the page cache alone.
  static func inspectLog(_ path: SQLitePath, _ fileSystem: any FileSystem) throws(RepositoryError) -> SQLiteLogInspection? {
    guard let file = try fileSystem.open(path.log, writable: true) else { return nil }
    try file.sync()
    guard try file.size() > 0 else { return nil }
    try fileSystem.syncDirectory(path.directory)
    return try inspect(file, path)
  }

  /// Reads through a log that is open; `nil` for an empty one.
  static func inspect(_ file: any OpenFile, _ path: SQLitePath) throws(RepositoryError) -> SQLiteLogInspection? {
    if try SQLiteLogInspection.isEmpty(file) { return nil }
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return nil }
    let bytes = try connection.header().bytes
    let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
    guard pageSize == 1 || (pageSize >= 512 && pageSize.nonzeroBitCount == 1) else {
      throw RepositoryError(
        .corrupted, "expected a page size between 512 and 65536, found \(pageSize): restore a backup", file: path.main, offset: 16)
    }
    let size = pageSize == 1 ? 65_536 : pageSize
    let log = try SQLiteLogInspection(file, pageSize: size)
    let isFolded = log.isHeaderWhole ? false : try SQLiteLogInspection.isFolded(file, pageSize: size, into: connection)
    try connection.close()
    try file.close()
    return isFolded ? nil : log
  }

  /// Returns the cuts of earlier opens that failed or were killed before they could report them.
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

  /// Refuses a log whose damage took acknowledged commits, and with `.strict` recovery any damage.
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

  /// Returns the row as the database alone has it, without its log; `nil` where it cannot be read.
  ///
  /// Then folding was cut short in the middle of it, or is going on: the log has the whole of it.
  static func foldedRow(_ path: SQLitePath) throws(RepositoryError) -> SQLiteStoreRow? {
    guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return nil }
    do throws(RepositoryError) {
      // First the shape of the tables: a prepared file could make the look at a row as long as it likes.
      let (bytes, size) = try connection.header()
      try SQLiteLayout.check(header: bytes, size: size, file: path.main)
      _ = try SQLiteLayout.collections(on: connection)
      return try SQLiteStoreRow(on: connection)
    } catch {
      return nil
    }
  }

  /// Refuses a log that does not go on from the database's commit, such as the log of another store, or of another copy of this one.
  ///
  /// A checkpoint folds a commit of the log or an earlier one, so the database alone is never ahead of it. That holds beside a writer, too,
  /// for a row that was folded before all was read.
  static func checkContinuity(of row: SQLiteStoreRow, from folded: SQLiteStoreRow?, _ path: SQLitePath) throws(RepositoryError) {
    guard let folded else { return }
    // A checkpoint that was cut short may have taken the mark of buffered commits out in the log alone, and forgotten tombstones.
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
