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
      let isHeld = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK
      close(descriptor)
      if isHeld {
        throw RepositoryError(.locked, "expected a store that nobody has open, found it in use: close the app first", file: path)
      }
    }
  }
}
