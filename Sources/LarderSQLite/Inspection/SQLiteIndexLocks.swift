internal import Foundation

/// The locks that SQLite's connections hold on the index of a log.
enum SQLiteIndexLocks {
  /// The first of the bytes that connections lock, and their number; each connection has the last of them for as long as it is open.
  private static let range = (start: 120, count: 9)

  /// Whether no other process has a lock on an index; `false` when that cannot be known.
  ///
  /// Closing a file drops the locks that this process has on it, and the system does not tell about them: only for a process that has no
  /// connection to the database.
  static func isUnused(_ index: String) -> Bool {
    let descriptor = open(index, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var lock = flock()
    (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
    (lock.l_start, lock.l_len) = (off_t(range.start), off_t(range.count))
    return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == Int16(F_UNLCK)
  }
}
