internal import Foundation
internal import Synchronization

/// An exclusive `flock` on a lock file, which `release` removes.
final class POSIXLock: HeldLock {
  private let file: Mutex<LockFile?>

  private init(_ file: LockFile) { self.file = Mutex(file) }

  deinit { release() }

  /// Takes the lock, or throws at once.
  ///
  /// - Parameter afterOpening: Called between opening and locking, so that tests can release the lock of another holder just then.
  static func acquire(_ path: String, afterOpening: () -> Void = {}) throws(RepositoryError) -> POSIXLock {
    try LockFile.registry.withLock { (held) throws(RepositoryError) -> POSIXLock in
      // A round ends without a lock only if a holder removed the file between opening and locking. 1,000 such rounds are contention.
      for _ in 0..<1_000 {
        let lock = try LockFile.attempt(path) { file throws(RepositoryError) -> POSIXLock? in
          // `flock` alone would report `.locked`: it does not distinguish two descriptors of this process from two processes.
          if held[file.identity] != nil { throw .openInThisProcess(path) }
          afterOpening()
          guard try file.takeLock(LOCK_EX) else { throw RepositoryError(.locked, file.note.holder, file: path) }
          // A lock on a removed file excludes nobody: the next process creates another file.
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
      // Removed while it is locked: otherwise the next holder's file could go.
      file.remove()
      file.close()
    }
  }
}
