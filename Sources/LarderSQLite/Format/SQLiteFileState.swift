internal import Foundation
internal import Larder

/// The identity, size and time of a store's database and log, read without opening them.
///
/// Two equal states show that nothing was written between them, if the earlier one is settled: a time stamp is coarse, and a later change
/// must get another one.
struct SQLiteFileState: Equatable {
  private struct File: Equatable {
    let identity: FileIdentity
    let size: Int64
    let changed: Int64
  }

  private let main: File
  private let log: File?
  private let now: Int64

  /// Reads the state, or returns `nil` when there is no such store.
  init?(_ path: SQLitePath) throws(RepositoryError) {
    // Before the times of the files: a change between the two must look recent.
    now = SQLiteClock.now
    guard let main = try Self.file(path.main) else { return nil }
    self.main = main
    log = try Self.file(path.log)
  }

  private static func file(_ path: String) throws(RepositoryError) -> File? {
    guard let status = try SQLitePath.status(of: path) else { return nil }
    return File(identity: FileIdentity(status), size: Int64(status.st_size), changed: SQLiteClock.contentChange(of: status))
  }

  /// Whether a later change of either file would get another time stamp.
  var isSettled: Bool {
    [main.changed, log?.changed ?? 0].allSatisfy { SQLiteClock.isSettled($0, now) }
  }

  // The time of reading is no part of the state.
  static func == (one: SQLiteFileState, two: SQLiteFileState) -> Bool { one.main == two.main && one.log == two.log }
}

/// The system's clock of file times, in nanoseconds since 1970.
enum SQLiteClock {
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return nanoseconds(time)
  }

  /// Whether a change is so long ago that another one would get another time stamp.
  ///
  /// Time stamps go in steps: of milliseconds on common file systems, of two seconds on some.
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

  /// Reads the identity of the file at a path, or returns `nil` when there is none.
  ///
  /// Leaves out the file's times, which `SQLitePath.status(of:)` reads: a sync takes longer for a file whose times were read.
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

/// The identity and change time of a store's directory.
///
/// The time changes when a name is added to the directory, removed from it, or given to another file.
struct SQLiteDirectoryState: Equatable {
  private let identity: FileIdentity
  private let changed: Int64
  /// Whether a later change of the directory would get another time stamp.
  let isSettled: Bool

  /// Reads the state of the directory that holds a file, or returns `nil` when there is none.
  init?(of path: String) throws(RepositoryError) {
    // Before the status: a change between the two must look recent.
    let now = SQLiteClock.now
    guard let end = path.utf8.lastIndex(of: UInt8(ascii: "/")), let status = try SQLitePath.status(of: String(path[...end])) else {
      return nil
    }
    identity = FileIdentity(status)
    changed = SQLiteClock.entryChange(of: status)
    isSettled = SQLiteClock.isSettled(changed, now)
  }
}
