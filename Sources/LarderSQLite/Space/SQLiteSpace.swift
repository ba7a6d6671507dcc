internal import Foundation
internal import Larder

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// How much space a store has on its disk, of which the last is left for clearing it.
///
/// A write-ahead log takes space also for deletions, and folding it takes space for whatever it holds beyond the end of the file. So a store that
/// has filled its disk to the last byte could not be cleared any more.
struct SQLiteSpace {
  /// The size of the file as it would be after folding the log, and as it is.
  private let (target, size): (Int, Int)
  /// How many bytes are free for this user; `nil` where the system does not say.
  private let free: Int?

  init(_ connection: SQLiteConnection) throws(RepositoryError) {
    let pages = try connection.prepare("PRAGMA page_count").number() ?? 0
    let pageSize = try connection.prepare("PRAGMA page_size").number() ?? 4096
    target = Int(clamping: pages) * Int(clamping: pageSize)
    size = Int(clamping: try connection.header().size)
    free = Self.free(beside: connection.path)
  }

  /// What must stay free: the log of a transaction that clears the store, with the list of its free pages.
  private var reserve: Int { 256 << 10 + max(target, size) / 500 }

  /// Throws `.full` where a write of so many bytes would not leave the reserve free.
  func check(_ byteCount: Int, of path: String) throws(RepositoryError) {
    guard let free, free < byteCount + reserve else { return }
    throw RepositoryError(.full, "the disk is full but for the space that is kept for deleting", file: path)
  }

  /// Throws `.full` where folding the log would not leave the reserve free, though it makes the file longer.
  func checkFold(of path: String) throws(RepositoryError) {
    if target > size { try check(target - size, of: path) }
  }

  /// Whether so many bytes have room.
  func hasRoom(for byteCount: Int) -> Bool { free.map { $0 >= byteCount } ?? true }

  /// Whether there is so much that nothing else need be asked; cost: one call of the system.
  static func isPlentiful(for byteCount: Int, beside path: String) -> Bool {
    free(beside: path).map { $0 / 2 > byteCount && $0 > 1 << 30 } ?? true
  }

  private static func free(beside path: String) -> Int? {
    var status = statvfs()
    guard systemStatus(path, &status) == 0 else { return nil }
    return Int(clamping: UInt64(status.f_bavail).multipliedFullWidth(by: UInt64(status.f_frsize)).low)
  }
}

// The structure hides the function of its name.
private func systemStatus(_ path: String, _ status: inout statvfs) -> Int32 { statvfs(path, &status) }
