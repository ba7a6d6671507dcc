internal import Foundation
internal import Synchronization

/// An exclusive `flock` on a lock file, which is removed when the lock is given up.
final class POSIXLock: HeldLock {
  private let file: Mutex<LockFile?>

  private init(_ file: LockFile) { self.file = Mutex(file) }

  deinit { release() }

  /// Takes the lock, or throws at once.
  ///
  /// - Parameter afterOpening: Called between opening and locking, so that tests can play the holder that releases just then.
  static func acquire(_ path: String, afterOpening: () -> Void = {}) throws(RepositoryError) -> POSIXLock {
    try LockFile.registry.withLock { (held) throws(RepositoryError) -> POSIXLock in
      // A round ends without a lock only when a holder removed the file in this very moment. That many in a row is contention.
      for _ in 0..<1_000 {
        let lock = try LockFile.attempt(path) { file throws(RepositoryError) -> POSIXLock? in
          if held[file.identity] != nil { throw .openInThisProcess(path) }
          afterOpening()
          guard try file.take(LOCK_EX) else { throw RepositoryError(.locked, file.note.holder, file: path) }
          guard try file.isInPlace() else { return nil }
          file.setMode()
          file.write(.exclusive)
          held[file.identity] = LockFile.exclusive
          return POSIXLock(file)
        }
        if let lock { return lock }
      }
      throw RepositoryError(.locked, "other processes keep taking the lock", file: path)
    }
  }

  func release() {
    LockFile.registry.withLock { held in
      guard let file = file.withLock({ $0.take() }) else { return }
      held[file.identity] = nil
      file.remove()
      file.close()
    }
  }
}
