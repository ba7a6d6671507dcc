internal import Foundation
internal import Larder

/// The use of a store by another process, told by the locks that an app holds.
struct StoreUse {
  private let file: StoreFile

  init(of file: StoreFile) { self.file = file }

  /// Refuses a store that an app has open; makes no file.
  /// - Parameter isOurs: Whether this process has locked the store itself.
  /// - Throws: `.locked`.
  func check(unless isOurs: Bool = false) throws(RepositoryError) {
    if isOurs { return }
    for path in [file.path + "-lock", file.path] {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
      guard descriptor >= 0 else { continue }
      let isHeld = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK || isDatabaseLocked(descriptor)
      close(descriptor)
      if isHeld {
        throw RepositoryError(.locked, "expected a store that nobody has open, found it in use: close the app first", file: path)
      }
    }
  }

  /// Whether an app has a SQLite store open, whose lock is on the byte 2^62 of the database: a lock file can be deleted by hand.
  private func isDatabaseLocked(_ descriptor: Int32) -> Bool {
    var lock = flock()
    (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
    (lock.l_start, lock.l_len) = (off_t(1) << 62, 1)
    return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
  }
}
