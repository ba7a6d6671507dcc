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
