internal import Foundation
internal import Larder

/// The identity, size and change time of a store's database and write-ahead log, read without opening the files.
///
/// If two states are equal and the earlier state is settled, nothing was written to the files between the two readings. Time stamps are
/// coarse, so a write soon after another write may leave the file's time stamp unchanged. A settled state is old enough that a later write
/// gets another time stamp.
struct SQLiteFileState: Equatable {
  private struct File: Equatable {
    let identity: FileIdentity
    let size: Int64
    let changed: Int64
  }

  private let main: File
  private let log: File?
  private let now: Int64

  /// Reads the state of the database and its write-ahead log, or returns `nil` when there is no database at the path.
  init?(_ path: SQLitePath) throws(RepositoryError) {
    // The clock is read before the files' times, so that a change between the two readings looks recent and the state is not taken as
    // settled.
    now = SQLiteClock.now
    guard let main = try Self.file(path.main) else { return nil }
    self.main = main
    log = try Self.file(path.log)
  }

  private static func file(_ path: String) throws(RepositoryError) -> File? {
    guard let status = try SQLitePath.status(of: path) else { return nil }
    return File(identity: FileIdentity(status), size: Int64(status.st_size), changed: SQLiteClock.contentChange(of: status))
  }

  /// Whether a later change of the database or of the write-ahead log would get another time stamp.
  var isSettled: Bool {
    [main.changed, log?.changed ?? 0].allSatisfy { SQLiteClock.isSettled($0, now) }
  }

  // The comparison leaves out the times at which the states were read, because two states of unchanged files must be equal.
  static func == (one: SQLiteFileState, two: SQLiteFileState) -> Bool { one.main == two.main && one.log == two.log }
}

/// The clock by which the system stamps files, in nanoseconds since 1970.
enum SQLiteClock {
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return nanoseconds(time)
  }

  /// Whether a file's change is so long ago that a further change would get another time stamp.
  ///
  /// The time stamps of files advance in steps: of milliseconds on common file systems, of two seconds on some. A change therefore gets
  /// another time stamp if it comes more than three seconds after the previous change.
  static func isSettled(_ change: Int64, _ now: Int64) -> Bool { change <= now && now - change > 3_000_000_000 }

  /// Returns the time of the last change of a file's bytes.
  static func contentChange(of status: stat) -> Int64 {
    #if canImport(Darwin)
      nanoseconds(status.st_mtimespec)
    #else
      nanoseconds(status.st_mtim)
    #endif
  }

  /// Returns the time of the last change of a file's directory entry or status, which no program can set.
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

  /// Reads the identity of the file at a path, or returns `nil` when there is no file.
  ///
  /// Unlike `SQLitePath.status(of:)`, this initializer does not read the file's times, because the sync of a file takes longer if its times
  /// were read before.
  init?(at path: String) throws(RepositoryError) {
    do throws(RepositoryError) {
      guard let identity = try POSIXFileSystem().status(of: path)?.identity else { return nil }
      self = identity
    } catch {
      // A file has taken the place of one of the directories in the path, so there is no file at the path.
      guard (error.underlying as? SystemCallError)?.errorNumber == ENOTDIR else { throw error }
      return nil
    }
  }
}

/// The identity and change time of a store's directory.
///
/// The change time of a directory changes when a name is added to it, removed from it, or given to another file.
struct SQLiteDirectoryState: Equatable {
  private let identity: FileIdentity
  private let changed: Int64
  /// Whether a later change of the directory would get another time stamp.
  let isSettled: Bool

  /// Reads the state of the directory that holds the file at a path, or returns `nil` when there is no such directory.
  init?(of path: String) throws(RepositoryError) {
    // The clock is read before the directory's time, so that a change between the two readings looks recent and the state is not taken as
    // settled.
    let now = SQLiteClock.now
    guard let end = path.utf8.lastIndex(of: UInt8(ascii: "/")), let status = try SQLitePath.status(of: String(path[...end])) else {
      return nil
    }
    identity = FileIdentity(status)
    changed = SQLiteClock.entryChange(of: status)
    isSettled = SQLiteClock.isSettled(changed, now)
  }
}
