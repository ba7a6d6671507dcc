internal import Foundation
internal import Larder

/// The free space and the sync behaviour of the disk that holds a store.
///
/// A test passes a `SQLiteDisk` that reports less free space than the disk has.
struct SQLiteDisk: Sendable {
  /// Returns the free bytes of the disk that holds a file, or `nil` where the system does not report them.
  let freeBytes: @Sendable (_ path: String) -> Int?
  /// Whether a sync of SQLite may end in the drive's cache, so that this module must sync the write-ahead log after SQLite's sync.
  ///
  /// Apple's SQLite is reported to issue only a barrier for `PRAGMA fullfsync`. A test sets this property to true in order to run the same
  /// code on other systems.
  var needsOwnSync = isApple

  private static var isApple: Bool {
    #if canImport(Darwin)
      true
    #else
      false
    #endif
  }

  /// The disk as the operating system reports it for the current user.
  static let system = SQLiteDisk { path in
    var status = statvfs()
    // Some network file systems report 0 blocks. A disk with 0 blocks would seem full, so its free space counts as not reported.
    guard systemStatus(path, &status) == 0, status.f_blocks > 0 else { return nil }
    return Int(clamping: UInt64(status.f_bavail).multipliedFullWidth(by: UInt64(status.f_frsize)).low)
  }
}

// Swift imports a structure and a function with the name `statvfs`. In `SQLiteDisk.system` the structure hides the function, so the wrapper
// `systemStatus` calls the function.
private func systemStatus(_ path: String, _ status: inout statvfs) -> Int32 { statvfs(path, &status) }

/// The space that a store takes on its disk, and the reserve that stays free for deleting its records.
///
/// Like every commit, deletions take space in the write-ahead log. A checkpoint takes space for all pages of the log that lie beyond the
/// end of the file. Without a reserve for deletions and checkpoints, a store that has filled its disk to the last byte could not delete its
/// records any more.
struct SQLiteDiskSpace {
  /// Size of the database file after a checkpoint, and its present size, in bytes.
  private let (target, size): (Int64, Int64)
  /// Free bytes of the disk, or `nil` where the system does not report them.
  private let free: Int64?
  /// Bytes of the pages in use after a checkpoint, and bytes of the free pages.
  private let (used, unused): (Int64, Int64)
  private let path: String

  init(of connection: SQLiteConnection, on disk: SQLiteDisk) throws(RepositoryError) {
    let pages = try connection.number("PRAGMA page_count") ?? 0
    let pageSize = try connection.number("PRAGMA page_size") ?? 4096
    let freePages = try connection.number("PRAGMA freelist_count") ?? 0
    // `page_count` includes the pages that are only in the log, and the size of the file does not.
    unused = freePages * pageSize
    used = (pages - freePages) * pageSize
    target = pages * pageSize
    size = try connection.header().size
    path = connection.path
    free = disk.freeBytes(path).map { Int64($0) }
  }

  /// Bytes by which a checkpoint makes the file longer.
  var growth: Int { Int(clamping: max(target - size, 0)) }

  /// Disk space that must stay free, in bytes, so that a transaction can delete all records.
  ///
  /// The deletion writes the write-ahead log and the list of the file's free pages.
  private var reserve: Int64 { 256 << 10 + max(target, size) / 500 }

  /// Throws `.full` when values of `byteCount` bytes would not leave the reserve for deletions free on the disk.
  ///
  /// Values that fit in free pages of the file do not make it longer. Values in free pages take space only in the write-ahead log, and a
  /// checkpoint makes that space free again. For values in free pages, a quarter of the reserve is therefore enough.
  func check(_ byteCount: Int) throws(RepositoryError) {
    let byteCount = Int64(byteCount)
    let kept = byteCount <= unused / 2 && target <= size ? reserve / 4 : reserve
    // If the system does not report the free space, this check refuses no value, and SQLite itself reports a full disk.
    guard let free, free < byteCount + kept else { return }
    throw RepositoryError(
      .full,
      "expected \(byteCount + kept) free bytes, \(kept) of them kept for deleting, found \(free): delete records, or free some space",
      file: path)
  }

  /// Throws `.full` when the disk has no room for the pages that a checkpoint adds to the file.
  ///
  /// A checkpoint that runs out of space would take the last space of the disk and free no space in the log. A checkpoint needs no reserve,
  /// because the log has more bytes than the file grows by. After the checkpoint the log's space is free for new commits or returned to the
  /// disk.
  func checkFold() throws(RepositoryError) {
    guard let free, target > size, free < target - size + 16_384 else { return }
    throw RepositoryError(
      .full, "expected \(target - size + 16_384) free bytes for folding the log, found \(free): free some space", file: path)
  }

  /// Whether `VACUUM` makes the store smaller by at least half, and the disk has room for the store's pages in the write-ahead log.
  ///
  /// `VACUUM` writes all used pages to the log, each with a frame header.
  var isCompactingWorthwhile: Bool { unused > used && free.map { $0 >= used + used / 128 + 16_384 } ?? true }

  /// Whether the disk has more than 1 GiB and more than twice the needed bytes free, so that the reserve need not be checked.
  ///
  /// `isPlentiful` takes one system call.
  static func isPlentiful(for byteCount: Int, beside path: String, on disk: SQLiteDisk) -> Bool {
    disk.freeBytes(path).map { $0 / 2 > byteCount && $0 > 1 << 30 } ?? true
  }
}

extension SQLiteWriter {
  /// Throws `.full` if values would not leave the reserve of disk space free, even after the store has returned space to the disk.
  ///
  /// The reserve is the disk space that deleting all records takes. In a shared store the function checks nothing, because the other
  /// processes of a shared store keep no reserve. Call `checkSpace` before the transaction begins, because inside a transaction no space
  /// can be returned to the disk.
  func checkSpace(for batch: WriteBatch) throws(RepositoryError) {
    guard sharing == nil, batch.records.contains(where: { $0.value != nil }) else { return }
    // Besides the pages of its value, each record may change other pages. The estimate adds two pages for each of the first 64 records.
    let bytes =
      batch.records.reduce(0) { $0 + $1.key.byteCount + ($1.value?.count ?? 0) }
      + batch.indexEdits.reduce(0) { $0 + ($1.added?.count ?? 0) }
    // An edit of an index changes up to two pages, as a record does.
    try checkSpace(for: bytes + bytes / 8 + (min(batch.records.count, 64) + min(batch.indexEdits.count, 64)) * 8192)
  }

  /// Throws `.full` unless the disk has room for the keys of an index in the log and in the file, beside the reserve.
  ///
  /// An index is written in many transactions, and the pages of the earlier ones may be in the log alone. They need room in the file, too.
  func checkSpaceForIndex(_ byteCount: Int) throws(RepositoryError) {
    if SQLiteDiskSpace.isPlentiful(for: 2 * byteCount, beside: connection.path, on: disk) { return }
    let space = try SQLiteDiskSpace(of: connection, on: disk)
    try space.check(2 * byteCount + space.growth)
  }

  /// Throws `.full` if a number of bytes would not leave the reserve of disk space free.
  func checkSpace(for needed: Int) throws(RepositoryError) {
    // `isPlentiful` takes one system call, where the exact check takes three pragmas and a read of the file's header.
    if SQLiteDiskSpace.isPlentiful(for: needed, beside: connection.path, on: disk) { return }
    do throws(RepositoryError) {
      return try SQLiteDiskSpace(of: connection, on: disk).check(needed)
    } catch {
      guard error.code == .full else { throw error }
    }
    giveBack()
    // If a sync has failed while space was returned to the disk, no further commit may be acknowledged.
    try checkUse()
    try SQLiteDiskSpace(of: connection, on: disk).check(needed)
  }

  /// Throws `.full` when the disk has no room for the pages that a checkpoint adds to the file.
  func checkSpaceToFold() throws(RepositoryError) {
    guard sharing == nil else { return }
    try SQLiteDiskSpace(of: connection, on: disk).checkFold()
  }

  /// Commits deletions on a full disk, and returns the freed space to the disk.
  ///
  /// Tombstones that do not fit on the disk are not written. A reader that needs a deletion whose tombstone is gone must read all records
  /// again.
  /// - Parameter tombstoneLimit: The largest number of tombstones. If the batch has more deletions than `tombstoneLimit`, its tombstones
  ///   are not written, and all older tombstones are deleted.
  func writeOnFullDisk(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    // A batch that contains values does not free space, so it is committed like any other batch.
    guard sharing == nil, batch.records.allSatisfy({ $0.value == nil }) else { return try write(batch) }
    try checkUse()
    // The deletions need space in the write-ahead log, so `giveBack` first returns the log's space to the disk.
    giveBack()
    do throws(RepositoryError) {
      try clearWithIndexes(batch, keeping: tombstoneLimit)
    } catch {
      guard error.code == .full, tombstoneLimit > 0 else { throw error }
      try clear(batch.withoutIndexes, keeping: 0)
    }
    giveBack()
  }

  /// Commits deletions, and drops the indexes of the batch's collections if the disk has no room for their changed pages.
  private func clearWithIndexes(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    do throws(RepositoryError) {
      try clear(batch, keeping: tombstoneLimit)
    } catch {
      guard error.code == .full, !batch.indexes.isEmpty else { throw error }
      // Dropping an index writes a few pages, where removing its keys may write every page of the index. The tombstones take the pages that
      // the tables of keys leave free.
      try dropIndexes(of: Set(batch.records.map(\.collection)))
      try clear(batch.withoutIndexes, keeping: tombstoneLimit)
    }
  }

  private func clear(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    // If a sync has failed while space was returned to the disk, no later commit may be acknowledged.
    try checkUse()
    try transaction(editingIndexes: .durable) { next throws(RepositoryError) in
      try self.checkOrder(batch, after: next)
      try self.clear(batch, keeping: tombstoneLimit, &next)
      next.commit = batch.commits.upperBound
      try self.noteSummary(of: batch, in: next)
      return .inStore
    }
  }

  /// Deletes the records of a batch, and then either writes their tombstones or deletes all tombstones.
  ///
  /// If a whole collection is deleted, the function uses one DELETE without a condition, which changes no page of the deleted records.
  private func clear(_ batch: WriteBatch, keeping tombstoneLimit: Int, _ next: inout SQLiteStoreRow) throws(RepositoryError) {
    let forgets = batch.records.count > tombstoneLimit
    var deleted: [String: [RecordAddress: SQLiteTable.Stored]] = [:]
    for record in batch.records where collections.contains(record.collection) {
      if let stored = try table(record.collection).stored(record.address, measuring: summary != nil) {
        deleted[record.collection, default: [:]][record.address] = stored
      }
    }
    for (collection, records) in deleted {
      for stored in records.values {
        next.subtract(stored.crc)
        summary?.subtract(stored, of: collection)
      }
      next.records -= records.count
      let name = SQLiteLayout.quoted(collection)
      if try connection.number("SELECT count(*) FROM \(name)") == Int64(records.count) {
        try connection.execute("DELETE FROM \(name)")
      } else {
        let table = try table(collection)
        for address in records.keys { try table.delete(address) }
      }
    }
    try editIndexes(by: batch)
    // Tombstones are written after the deletions, so that they take the freed pages. If the tombstones made the file longer, a checkpoint
    // would have no room on the full disk.
    guard forgets else {
      for record in batch.records { try bury(record, &next, carries: false) }
      return
    }
    let all = try connection.prepare("SELECT crc FROM \(SQLiteLayout.tombstones)")
    while try all.step() { next.subtract(SQLiteChecksum(column: try all.integer(0)).crc) }
    try connection.execute("DELETE FROM \(SQLiteLayout.tombstones)")
    next.tombstones = 0
    next.tombstonesSince = batch.commits.upperBound
  }

  /// Returns the space of the write-ahead log and of free pages to the disk, as far as the disk has room for that work.
  ///
  /// A checkpoint empties the log first, because `VACUUM` would make the log longer. If the log holds the whole store, the checkpoint has
  /// room only after `VACUUM` has made the store small.
  ///
  /// No committed data depends on `giveBack`, so its failures are ignored, and `giveBack` runs again before a value is refused. If a reader
  /// uses the log, the log keeps its space until a later call of `giveBack`. Only a failed sync matters: the writer records its error, and
  /// the next call throws that error.
  private func giveBack() {
    // Space on a full disk matters more than old snapshots, whose pages in the log cannot be freed.
    bases?.supersedeOld(sparingReads: false)
    do throws(RepositoryError) {
      try connection.checkPresence()
      do throws(RepositoryError) {
        try fold()
      } catch {
        guard error.code == .full else { throw error }
      }
      try dropLeftovers()
      guard try SQLiteDiskSpace(of: connection, on: disk).isCompactingWorthwhile else { return }
      try connection.withAttachment { () throws(RepositoryError) in try connection.execute("VACUUM") }
      try fold()
    } catch { _ = poisoned(by: error) }
  }

  /// Runs a truncating checkpoint, which returns the write-ahead log's space to the disk, and does not wait for readers.
  private func fold() throws(RepositoryError) {
    try checkSpaceToFold()
    do throws(RepositoryError) { try storeRow() } catch { guard error.code == .full else { throw error } }
    if try !foldBeneathBases() { bases?.noteInTheWay() }
    try connection.waiting(.zero) { () throws(RepositoryError) in _ = try connection.checkpoint(.truncating) }
  }
}

extension WriteBatch {
  /// The batch without the changes of its indexes, which drops the indexes.
  fileprivate var withoutIndexes: WriteBatch { WriteBatch(records: records, commits: commits, durability: durability) }
}
