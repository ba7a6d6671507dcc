internal import Foundation
internal import Larder

/// The state of a store's files as the system reports it without opening them.
///
/// Two equal states show that nothing was written between them, if the earlier one is settled.
struct SQLiteFileState: Equatable {
  private struct File: Equatable {
    let identity: FileIdentity
    let size: Int64
    let changed: Int64
  }

  private let main: File
  private let log: File?
  private let now: Int64

  /// Reads the state; `nil` when there is no such store.
  init?(_ path: SQLitePath) throws(RepositoryError) {
    now = SQLiteClock.now
    guard let main = try Self.file(path.main) else { return nil }
    self.main = main
    log = try Self.file(path.log)
  }

  private static func file(_ path: String) throws(RepositoryError) -> File? {
    guard let status = try SQLitePath.status(of: path) else { return nil }
    return File(identity: FileIdentity(status), size: Int64(status.st_size), changed: SQLiteClock.contentChange(of: status))
  }

  /// Whether a later change would show in another time.
  var isSettled: Bool {
    [main.changed, log?.changed ?? 0].allSatisfy { SQLiteClock.isSettled($0, now) }
  }

  static func == (one: SQLiteFileState, two: SQLiteFileState) -> Bool { one.main == two.main && one.log == two.log }
}

/// The clock of the times that files carry, in nanoseconds.
enum SQLiteClock {
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return nanoseconds(time)
  }

  /// Whether a change is so long ago that another one would get another time.
  ///
  /// Times go in steps: of milliseconds on common file systems, of two seconds on some.
  static func isSettled(_ change: Int64, _ now: Int64) -> Bool { change <= now && now - change > 3_000_000_000 }

  /// Returns the time of the last change of a file's bytes.
  static func contentChange(of status: stat) -> Int64 {
    #if canImport(Darwin)
      nanoseconds(status.st_mtimespec)
    #else
      nanoseconds(status.st_mtim)
    #endif
  }

  /// Returns the time of the last change of a file's entry, which no program can set.
  static func entryChange(of status: stat) -> Int64 {
    #if canImport(Darwin)
      nanoseconds(status.st_ctimespec)
    #else
      nanoseconds(status.st_ctim)
    #endif
  }

  private static func nanoseconds(_ time: timespec) -> Int64 { Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec) }
}

extension FileIdentity {
  init(_ status: stat) {
    self.init(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(truncatingIfNeeded: status.st_ino))
  }

  /// Finds the file at a path; `nil` when there is none.
  ///
  /// Leaves the file's times out, which `SQLitePath.status(of:)` asks for: the sync of a file whose times were asked for takes longer.
  init?(at path: String) throws(RepositoryError) {
    do throws(RepositoryError) {
      guard let identity = try POSIXFileSystem().status(of: path)?.identity else { return nil }
      self = identity
    } catch {
      // A file has taken the place of the directory.
      guard (error.underlying as? SystemCallError)?.errorNumber == ENOTDIR else { throw error }
      return nil
    }
  }
}

/// The state of a store's directory as the system reports it.
///
/// Its time changes when a name comes, goes, or gets another file.
struct SQLiteDirectoryState: Equatable {
  private let identity: FileIdentity
  private let changed: Int64
  /// Whether a later change would show in another time.
  let isSettled: Bool

  /// Reads the state of the directory that holds a file; `nil` when there is none.
  init?(of path: String) throws(RepositoryError) {
    let now = SQLiteClock.now
    guard let end = path.utf8.lastIndex(of: UInt8(ascii: "/")), let status = try SQLitePath.status(of: String(path[...end])) else {
      return nil
    }
    identity = FileIdentity(status)
    changed = SQLiteClock.entryChange(of: status)
    isSettled = SQLiteClock.isSettled(changed, now)
  }
}
