internal import Foundation
internal import Larder

/// The free space and the sync behaviour of the disk that a store is on, replaceable in tests.
struct SQLiteDisk: Sendable {
  /// Returns the free bytes of the disk that holds a file, or `nil` where the system does not report them.
  let freeBytes: @Sendable (_ path: String) -> Int?
  /// Whether a sync of SQLite may end in the drive's cache, so that a descriptor of this module syncs the write-ahead log after it.
  ///
  /// Apple's SQLite is reported to issue only a barrier for `PRAGMA fullfsync`. A test sets this to take the same way on other systems.
  var needsOwnSync = isApple

  private static var isApple: Bool {
    #if canImport(Darwin)
      true
    #else
      false
    #endif
  }

  /// The disk as the system reports it to this user.
  static let system = SQLiteDisk { path in
    var status = statvfs()
    // A file system that reports no blocks, as some over a network, would seem full.
    guard systemStatus(path, &status) == 0, status.f_blocks > 0 else { return nil }
    return Int(clamping: UInt64(status.f_bavail).multipliedFullWidth(by: UInt64(status.f_frsize)).low)
  }
}

// Swift imports a structure and a function `statvfs`, and the structure hides the function.
private func systemStatus(_ path: String, _ status: inout statvfs) -> Int32 { statvfs(path, &status) }

/// The space that a store takes on its disk, and the reserve that is left for deleting its records.
///
/// A write-ahead log takes space also for deletions, and a checkpoint takes space for all that the log holds beyond the end of the file. So
/// without a reserve, a store that has filled its disk to the last byte could not be cleared any more.
struct SQLiteDiskSpace {
  /// Size of the file after a checkpoint, and its present size, in bytes.
  private let (target, size): (Int64, Int64)
  /// Free bytes of the disk, or `nil` where the system does not report them.
  private let free: Int64?
  /// Bytes of the pages in use, and of the free pages, after a checkpoint.
  private let (used, unused): (Int64, Int64)
  private let path: String

  init(of connection: SQLiteConnection, on disk: SQLiteDisk) throws(RepositoryError) {
    let pages = try connection.number("PRAGMA page_count") ?? 0
    let pageSize = try connection.number("PRAGMA page_size") ?? 4096
    let freePages = try connection.number("PRAGMA freelist_count") ?? 0
    // `page_count` includes the pages in the log, unlike the size of the file.
    unused = freePages * pageSize
    used = (pages - freePages) * pageSize
    target = pages * pageSize
    size = try connection.header().size
    path = connection.path
    free = disk.freeBytes(path).map { Int64($0) }
  }

  /// Bytes that must stay free: the write-ahead log of a transaction that clears the store, with the list of its free pages.
  private var reserve: Int64 { 256 << 10 + max(target, size) / 500 }

  /// Throws `.full` when values of `byteCount` bytes would not leave the reserve free.
  ///
  /// Values that have room in free pages of the file make it no longer. A checkpoint gives back the space that they take in the log, so a
  /// quarter of the reserve is enough.
  func check(_ byteCount: Int) throws(RepositoryError) {
    let byteCount = Int64(byteCount)
    let kept = byteCount <= unused / 2 && target <= size ? reserve / 4 : reserve
    guard let free, free < byteCount + kept else { return }
    throw RepositoryError(
      .full,
      "expected \(byteCount + kept) free bytes, \(kept) of them kept for deleting, found \(free): delete records, or free some space",
      file: path)
  }

  /// Throws `.full` when a checkpoint has no room for the pages that it adds to the file.
  ///
  /// A checkpoint that is cut short would take the last space of the disk and give nothing back. It needs no reserve, for the log has more
  /// bytes than the file grows by, and is emptied or written anew from its beginning.
  func checkFold() throws(RepositoryError) {
    guard let free, target > size, free < target - size + 16_384 else { return }
    throw RepositoryError(
      .full, "expected \(target - size + 16_384) free bytes for folding the log, found \(free): free some space", file: path)
  }

  /// Whether `VACUUM` has room for the used pages in the write-ahead log, each with its header, and makes the store smaller by at least
  /// half.
  var isCompactingWorthwhile: Bool { unused > used && free.map { $0 >= used + used / 128 + 16_384 } ?? true }

  /// Whether the disk has more than 1 GiB and twice the needed bytes free, so that no reserve needs checking.
  ///
  /// Cost: one system call.
  static func isPlentiful(for byteCount: Int, beside path: String, on disk: SQLiteDisk) -> Bool {
    disk.freeBytes(path).map { $0 / 2 > byteCount && $0 > 1 << 30 } ?? true
  }
}
