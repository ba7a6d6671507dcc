internal import Foundation
internal import Larder

/// The disk that a store is on, as far as a writer asks for it.
struct SQLiteDisk: Sendable {
  /// Returns the free bytes beside a file; `nil` where the system does not say.
  let freeBytes: @Sendable (_ path: String) -> Int?
  /// Whether a sync of SQLite may end in the drive's cache, so that a descriptor of this program syncs the log after it.
  ///
  /// Apple's SQLite is reported to make a barrier of `PRAGMA fullfsync`. A test sets this to take the same way elsewhere.
  var needsOwnSync = isApple

  private static var isApple: Bool {
    #if canImport(Darwin)
      true
    #else
      false
    #endif
  }

  /// The disk as the system describes it to this user.
  static let system = SQLiteDisk { path in
    var status = statvfs()
    // A file system that has no blocks, as some over a network, counts nothing: it would seem full.
    guard systemStatus(path, &status) == 0, status.f_blocks > 0 else { return nil }
    return Int(clamping: UInt64(status.f_bavail).multipliedFullWidth(by: UInt64(status.f_frsize)).low)
  }
}

// The structure hides the function of its name.
private func systemStatus(_ path: String, _ status: inout statvfs) -> Int32 { statvfs(path, &status) }

/// The space that a store takes on its disk, and the reserve that is left for clearing it.
///
/// A write-ahead log takes space also for deletions, and folding it takes space for whatever it holds beyond the end of the file. So a
/// store that has filled its disk to the last byte could not be cleared any more.
struct SQLiteDiskSpace {
  /// The size of the file as it would be after folding the log, and as it is.
  private let (target, size): (Int64, Int64)
  /// The free bytes of the disk; `nil` where the system does not say.
  private let free: Int64?
  /// The bytes of the pages that hold records, and of those that hold nothing, after folding the log.
  private let (used, unused): (Int64, Int64)
  private let path: String

  init(of connection: SQLiteConnection, on disk: SQLiteDisk) throws(RepositoryError) {
    let pages = try connection.number("PRAGMA page_count") ?? 0
    let pageSize = try connection.number("PRAGMA page_size") ?? 4096
    let freePages = try connection.number("PRAGMA freelist_count") ?? 0
    unused = freePages * pageSize
    used = (pages - freePages) * pageSize
    target = pages * pageSize
    size = try connection.header().size
    path = connection.path
    free = disk.freeBytes(path).map { Int64($0) }
  }

  /// The bytes that must stay free: the log of a transaction that clears the store, with the list of its free pages.
  private var reserve: Int64 { 256 << 10 + max(target, size) / 500 }

  /// Throws `.full` when values of so many bytes would not leave the reserve free.
  ///
  /// Values that have room in free pages of the file make it no longer: folding gives back what they take in the log, so a quarter of the
  /// reserve is enough.
  func check(_ byteCount: Int) throws(RepositoryError) {
    let byteCount = Int64(byteCount)
    let kept = byteCount <= unused / 2 && target <= size ? reserve / 4 : reserve
    guard let free, free < byteCount + kept else { return }
    throw RepositoryError(
      .full,
      "expected \(byteCount + kept) free bytes, \(kept) of them kept for deleting, found \(free): delete records, or free some space",
      file: path)
  }

  /// Throws `.full` when folding the log has no room: cut short, it would take the last space of the disk and give nothing back.
  ///
  /// It needs no reserve, for the log has more bytes than the file grows by, and is emptied or written anew from its beginning.
  func checkFold() throws(RepositoryError) {
    guard let free, target > size, free < target - size + 16_384 else { return }
    throw RepositoryError(
      .full, "expected \(target - size + 16_384) free bytes for folding the log, found \(free): free some space", file: path)
  }

  /// Whether writing the used pages anew has room in the log, each with its header, and makes the store smaller by half at least.
  var isCompactingWorthwhile: Bool { unused > used && free.map { $0 >= used + used / 128 + 16_384 } ?? true }

  /// Whether the disk has so much space that no reserve needs checking; cost: one system call.
  static func isPlentiful(for byteCount: Int, beside path: String, on disk: SQLiteDisk) -> Bool {
    disk.freeBytes(path).map { $0 / 2 > byteCount && $0 > 1 << 30 } ?? true
  }
}
