internal import Foundation
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// An exclusive `flock` on a lock file, which is removed when the lock is given up.
///
/// `flock` belongs to the descriptor: no `close` of another one drops it, unlike POSIX record locks, and it ends with the process however that
/// ends. Since it does not say who holds it, a registry of this process tells `.alreadyOpen` from `.locked`.
final class POSIXLock: HeldLock {
  private let path: String
  private let identity: FileIdentity
  private let descriptor: Mutex<Int32?>

  private init(path: String, identity: FileIdentity, descriptor: Int32) {
    self.path = path
    self.identity = identity
    self.descriptor = Mutex(descriptor)
  }

  deinit { release() }

  /// Takes the lock, or throws at once.
  ///
  /// - Parameter afterOpening: Called between opening and locking, so that tests can play the holder that releases just then.
  static func acquire(_ path: String, afterOpening: () -> Void = {}) throws(RepositoryError) -> POSIXLock {
    try LockFile.registry.withLock { (held) throws(RepositoryError) -> POSIXLock in
      // A round ends without a lock only when a holder removed the file in this very moment. That many in a row is contention.
      for _ in 0..<1_000 {
        if let lock = try attempt(path, &held, afterOpening) { return lock }
      }
      throw RepositoryError(.locked, "other processes keep taking the lock", file: path)
    }
  }

  private static func attempt(
    _ path: String, _ held: inout [FileIdentity: Int], _ afterOpening: () -> Void
  ) throws(RepositoryError) -> POSIXLock? {
    let descriptor = try LockFile.open(path)
    var isKept = false
    defer { if !isKept { _ = closeDescriptor(descriptor) } }

    let identity = FileIdentity(try POSIXFile.status(of: descriptor, path))
    if held[identity] != nil { throw RepositoryError(.alreadyOpen, "this process holds the lock", file: path) }
    afterOpening()
    guard try LockFile.take(LOCK_EX, descriptor, path) else {
      throw RepositoryError(.locked, LockFile.note(in: descriptor).holder, file: path)
    }
    // The holder before us removes the file while it has the lock: what we locked may be a file without a name.
    guard try LockFile.identity(ofEntry: path) == identity else { return nil }

    _ = fchmod(descriptor, 0o600)  // 0600 but for the umask already; another process's file is left as it is
    LockFile.write(.exclusive, to: descriptor)
    held[identity] = LockFile.exclusive
    isKept = true
    return POSIXLock(path: path, identity: identity, descriptor: descriptor)
  }

  func release() {
    LockFile.registry.withLock { held in
      guard let descriptor = descriptor.withLock({ $0.take() }) else { return }
      held[identity] = nil
      LockFile.remove(path, identity)
      LockFile.unlock(descriptor)
      _ = closeDescriptor(descriptor)
    }
  }
}
