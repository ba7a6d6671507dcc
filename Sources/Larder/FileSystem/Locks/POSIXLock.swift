internal import Foundation
internal import Synchronization

/// An exclusive `flock` lock on a lock file, which `release` removes.
final class POSIXLock: HeldLock {
  private let file: Mutex<LockFile?>

  private init(_ file: LockFile) { self.file = Mutex(file) }

  deinit { release() }

  /// Takes the lock, or throws at once if another holder has it.
  ///
  /// - Parameter afterOpening: Closure that is called between opening and locking the lock file. Tests use the closure to release another
  ///   holder's lock between the two steps.
  static func acquire(_ path: String, afterOpening: () -> Void = {}) throws(RepositoryError) -> POSIXLock {
    try LockFile.registry.withLock { (held) throws(RepositoryError) -> POSIXLock in
      // An attempt to lock returns `nil` only if a holder removed the lock file between opening and locking. After 1,000 attempts that
      // return `nil`, `acquire` throws `.locked`.
      for _ in 0..<1_000 {
        let lock = try LockFile.attempt(path) { file throws(RepositoryError) -> POSIXLock? in
          // `flock` alone would give `.locked`, because it does not distinguish two descriptors of this process from two processes.
          if held[file.identity] != nil { throw .openInThisProcess(path) }
          afterOpening()
          guard try file.takeLock(LOCK_EX) else { throw RepositoryError(.locked, file.note.holder, file: path) }
          // A lock on a removed file excludes nobody, because the next process creates another file at the path.
          guard try file.isInPlace() else { return nil }
          file.setMode()
          // An error of writing the holder's name into the lock file is ignored. The holder's name only appears in the errors of other
          // processes, and `flock` excludes these processes even without the name.
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
      // The lock file is removed before the lock is released. After the release, a second process may lock the same file. If the file were
      // removed after the release, a third process could create and lock another file at the path.
      file.remove()
      file.close()
    }
  }
}
