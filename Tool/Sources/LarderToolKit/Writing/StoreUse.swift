internal import Foundation
internal import Larder
@_spi(Inspection) internal import LarderSQLite

/// Test for whether an app has a store open, by the locks that it holds.
struct StoreUse {
  private let file: StoreFile

  init(of file: StoreFile) { self.file = file }

  /// Throws if an app has the store open.
  ///
  /// Creates no file.
  /// - Parameter isOurs: Whether this process has locked the store itself, and no test is made.
  /// - Throws: `.locked` while an app has the store open.
  func check(unless isOurs: Bool = false) throws(RepositoryError) {
    if isOurs { return }
    try checkFlock(of: file.path + "-lock")
    // On Darwin, a `flock` on a database excludes SQLite's own locks. An app that opens it at this moment would be refused.
    if file.kind == .sqliteFile { try checkDatabase() } else { try checkFlock(of: file.path) }
  }

  /// Throws if an app has a SQLite store open.
  ///
  /// The lock is on a byte of the database itself, because a lock file can be deleted by hand.
  /// - Throws: `.locked`.
  func checkDatabase() throws(RepositoryError) {
    try check(file.path) { descriptor in
      var lock = flock()
      // `F_GETLK` returns the lock that a write lock would conflict with, and takes none.
      (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
      (lock.l_start, lock.l_len) = (off_t(SQLiteInspection.lockedByte), 1)
      return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }
  }

  private func checkFlock(of path: String) throws(RepositoryError) {
    try check(path) { flock($0, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK }
  }

  /// Tests the lock of one file.
  ///
  /// A missing file has none.
  private func check(_ path: String, _ isLocked: (Int32) -> Bool) throws(RepositoryError) {
    // Opening a pipe without `O_NONBLOCK` would block until a writer appears.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      let number = errno
      if number == ENOENT { return }
      throw RepositoryError(
        .inputOutput, "expected a file that can be read, to see whether an app has the store open; change its permissions", file: path,
        underlying: SystemCallError(call: "open", errorNumber: number))
    }
    // Closing drops all POSIX locks of this process on the file. It holds none on a store that it is about to replace.
    defer { close(descriptor) }
    guard isLocked(descriptor) else { return }
    throw RepositoryError(.locked, "expected a store that nobody has open, found it in use: close the app first", file: path)
  }
}
