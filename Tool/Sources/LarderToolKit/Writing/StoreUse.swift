internal import Foundation
internal import Larder
@_spi(Inspection) internal import LarderSQLite

/// The use of a store by another process, told by the locks that an app holds.
struct StoreUse {
  private let file: StoreFile

  init(of file: StoreFile) { self.file = file }

  /// Refuses a store that an app has open; makes no file.
  /// - Parameter isOurs: Whether this process has locked the store itself.
  /// - Throws: `.locked`.
  func check(unless isOurs: Bool = false) throws(RepositoryError) {
    if isOurs { return }
    try checkFlock(of: file.path + "-lock")
    // On Darwin a `flock` of a database would refuse SQLite's own locks to an app that opens it meanwhile.
    if file.kind == .sqliteFile { try checkDatabase() } else { try checkFlock(of: file.path) }
  }

  /// Refuses a SQLite store that an app has open, whose lock is on one byte of the database: a lock file can be deleted by hand.
  /// - Throws: `.locked`.
  func checkDatabase() throws(RepositoryError) {
    try check(file.path) { descriptor in
      var lock = flock()
      (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
      (lock.l_start, lock.l_len) = (off_t(SQLiteInspection.lockedByte), 1)
      return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }
  }

  private func checkFlock(of path: String) throws(RepositoryError) {
    try check(path) { flock($0, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK }
  }

  /// Does nothing where there is no file.
  private func check(_ path: String, _ isLocked: (Int32) -> Bool) throws(RepositoryError) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      let number = errno
      if number == ENOENT { return }
      throw RepositoryError(
        .inputOutput, "expected a file that can be read, to see whether an app has the store open; change its permissions", file: path,
        underlying: SystemCallError(call: "open", errorNumber: number))
    }
    // It drops the POSIX locks that this process has on the file; it has none on a database that it is about to replace.
    defer { close(descriptor) }
    guard isLocked(descriptor) else { return }
    throw RepositoryError(.locked, "expected a store that nobody has open, found it in use: close the app first", file: path)
  }
}
