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
  /// How many bytes the pages have that hold records, and those that hold nothing, after folding the log.
  let (used, unused): (Int, Int)

  init(_ connection: SQLiteConnection) throws(RepositoryError) {
    let pages = try connection.prepare("PRAGMA page_count").number() ?? 0
    let pageSize = try connection.prepare("PRAGMA page_size").number() ?? 4096
    let freePages = try connection.prepare("PRAGMA freelist_count").number() ?? 0
    unused = Int(clamping: freePages) * Int(clamping: pageSize)
    used = Int(clamping: pages - freePages) * Int(clamping: pageSize)
    target = Int(clamping: pages) * Int(clamping: pageSize)
    size = Int(clamping: try connection.header().size)
    free = Self.free(beside: connection.path)
  }

  /// What must stay free: the log of a transaction that clears the store, with the list of its free pages.
  private var reserve: Int { 256 << 10 + max(target, size) / 500 }

  /// Throws `.full` where values of so many bytes would not leave the reserve free.
  ///
  /// Values that have room in free pages of the file make it no longer: folding gives back what they take in the log, so a quarter is enough.
  func check(_ byteCount: Int, of path: String) throws(RepositoryError) {
    let kept = byteCount <= unused / 2 && target <= size ? reserve / 4 : reserve
    guard let free, free < byteCount + kept else { return }
    throw RepositoryError(.full, "the disk is full but for the space that is kept for deleting", file: path)
  }

  /// Throws `.full` where folding the log has no room: cut short, it would take the last space of the disk and give nothing back.
  ///
  /// It needs no reserve, for the log has more bytes than the file grows by, and is emptied or written anew from its beginning.
  func checkFold(of path: String) throws(RepositoryError) {
    guard let free, target > size, free < target - size + 16_384 else { return }
    throw RepositoryError(.full, "the disk has no room for folding the log", file: path)
  }

  /// Whether writing the used pages anew has room in the log, each with its header, and makes the store smaller by half at least.
  var isCompactingWorthwhile: Bool { unused > used && free.map { $0 >= used + used / 128 + 16_384 } ?? true }

  /// Whether there is so much that nothing else need be asked; cost: one call of the system.
  static func isPlentiful(for byteCount: Int, beside path: String) -> Bool {
    free(beside: path).map { $0 / 2 > byteCount && $0 > 1 << 30 } ?? true
  }

  /// The size of the disk that a test plays, on which there is nothing but the store.
  @TaskLocal static var diskSize: Int?

  private static func free(beside path: String) -> Int? {
    if let diskSize {
      let sizes = [path, path + "-wal", path + "-shm"].map { name in
        var status = stat()
        return stat(name, &status) == 0 ? Int(status.st_size) : 0
      }
      return max(diskSize - sizes.reduce(0, +), 0)
    }
    var status = statvfs()
    // A file system that has no blocks, as some over a network, counts nothing: it would seem full.
    guard systemStatus(path, &status) == 0, status.f_blocks > 0 else { return nil }
    return Int(clamping: UInt64(status.f_bavail).multipliedFullWidth(by: UInt64(status.f_frsize)).low)
  }
}

// The structure hides the function of its name.
private func systemStatus(_ path: String, _ status: inout statvfs) -> Int32 { statvfs(path, &status) }
