internal import Foundation
internal import Larder

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// What the system tells of a store's files without opening them.
struct SQLiteFileState: Equatable {
  private struct File: Equatable {
    let identity: SQLiteFileIdentity
    let size: Int64
    let changed: Int64
  }

  private let main: File
  private let log: File?
  private let now: Int64

  /// The state now; `nil` when there is no such store.
  init?(_ path: SQLitePath) throws(RepositoryError) {
    now = SQLiteClock.now
    guard let main = try Self.file(path.main) else { return nil }
    self.main = main
    log = try Self.file(path.log)
  }

  private static func file(_ path: String) throws(RepositoryError) -> File? {
    guard let status = try SQLitePath.status(of: path) else { return nil }
    return File(identity: SQLiteFileIdentity(status), size: Int64(status.st_size), changed: SQLiteClock.contentChange(of: status))
  }

  /// Whether a later change would have another time.
  var isSettled: Bool {
    [main.changed, log?.changed ?? 0].allSatisfy { SQLiteClock.isSettled($0, now) }
  }

  static func == (one: SQLiteFileState, two: SQLiteFileState) -> Bool { one.main == two.main && one.log == two.log }
}

/// What the system tells of the directory of a store: its time changes when a name comes, goes, or gets another file.
struct SQLiteDirectoryState: Equatable {
  private let identity: SQLiteFileIdentity
  private let changed: Int64
  /// Whether a later change would have another time.
  let isSettled: Bool

  /// The state now of the directory that a file is in; `nil` when there is none.
  init?(of path: String) throws(RepositoryError) {
    let now = SQLiteClock.now
    guard let end = path.utf8.lastIndex(of: UInt8(ascii: "/")), let status = try SQLitePath.status(of: String(path[...end])) else {
      return nil
    }
    identity = SQLiteFileIdentity(status)
    changed = SQLiteClock.entryChange(of: status)
    isSettled = SQLiteClock.isSettled(changed, now)
  }
}

/// The clock that the times of files are of, in nanoseconds.
private enum SQLiteClock {
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return nanoseconds(time)
  }

  /// Whether a change is so long ago that another one would have another time: these go in steps, of milliseconds on common file systems and of two
  /// seconds on some.
  static func isSettled(_ change: Int64, _ now: Int64) -> Bool { change <= now && now - change > 3_000_000_000 }

  /// Returns when the bytes of a file last changed.
  static func contentChange(of status: stat) -> Int64 {
    #if canImport(Darwin)
      nanoseconds(status.st_mtimespec)
    #else
      nanoseconds(status.st_mtim)
    #endif
  }

  /// Returns when a file itself last changed, which nobody can set.
  static func entryChange(of status: stat) -> Int64 {
    #if canImport(Darwin)
      nanoseconds(status.st_ctimespec)
    #else
      nanoseconds(status.st_ctim)
    #endif
  }

  private static func nanoseconds(_ time: timespec) -> Int64 { Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec) }
}
