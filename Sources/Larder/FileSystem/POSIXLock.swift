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
  private struct Identity: Hashable {
    let device: UInt64
    let inode: UInt64

    init(_ status: stat) {
      device = UInt64(truncatingIfNeeded: status.st_dev)
      inode = UInt64(truncatingIfNeeded: status.st_ino)
    }
  }

  /// The lock files that this process holds.
  ///
  /// Taking and releasing happen under this mutex, so neither sees the other half done.
  private static let registry = Mutex<Set<Identity>>([])

  private let path: String
  private let identity: Identity
  private let descriptor: Mutex<Int32?>

  private init(path: String, identity: Identity, descriptor: Int32) {
    self.path = path
    self.identity = identity
    self.descriptor = Mutex(descriptor)
  }

  deinit { release() }

  /// Takes the lock, or throws at once.
  ///
  /// - Parameter afterOpening: Called between opening and locking, so that tests can play the holder that releases just then.
  static func acquire(_ path: String, afterOpening: () -> Void = {}) throws(RepositoryError) -> POSIXLock {
    try registry.withLock { (held) throws(RepositoryError) -> POSIXLock in
      // A round ends without a lock only when a holder removed the file in this very moment. That many in a row is contention.
      for _ in 0..<1_000 {
        if let lock = try attempt(path, &held, afterOpening) { return lock }
      }
      throw RepositoryError(.locked, "other processes keep taking the lock", file: path)
    }
  }

  private static func attempt(
    _ path: String, _ held: inout Set<Identity>, _ afterOpening: () -> Void
  ) throws(RepositoryError) -> POSIXLock? {
    let descriptor: Int32
    switch SystemCall.uninterrupted({ Int(open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)) }) {
    case .done(let number): descriptor = Int32(number)
    case .failed(let number): throw .system("open", number, file: path)
    }
    var isKept = false
    defer { if !isKept { _ = closeDescriptor(descriptor) } }

    let identity = Identity(try POSIXFile.status(of: descriptor, path))
    if held.contains(identity) { throw RepositoryError(.alreadyOpen, "this process holds the lock", file: path) }
    afterOpening()
    switch SystemCall.uninterrupted({ Int(flock(descriptor, LOCK_EX | LOCK_NB)) }) {
    case .done: break
    case .failed(EWOULDBLOCK):
      let holder = holder(in: descriptor).map { "process \($0) holds the lock" } ?? "another process holds the lock"
      throw RepositoryError(.locked, holder, file: path)
    case .failed(let number): throw .system("flock", number, file: path)
    }
    // The holder before us removes the file while it has the lock: what we locked may be a file without a name.
    guard try entryIdentity(path) == identity else { return nil }

    _ = fchmod(descriptor, 0o600)  // 0600 but for the umask already; another process's file is left as it is
    write(holder: getpid(), to: descriptor)
    held.insert(identity)
    isKept = true
    return POSIXLock(path: path, identity: identity, descriptor: descriptor)
  }

  func release() {
    Self.registry.withLock { held in
      guard let descriptor = descriptor.withLock({ $0.take() }) else { return }
      held.remove(identity)
      // Removed while it is still locked, and only if the name still means our file: someone may have removed it by hand meanwhile.
      var status = stat()
      if lstat(path, &status) == 0, Identity(status) == identity { unlink(path) }
      _ = closeDescriptor(descriptor)
    }
  }

  /// What the name stands for now; `nil` when it is gone.
  private static func entryIdentity(_ path: String) throws(RepositoryError) -> Identity? {
    var status = stat()
    switch SystemCall.uninterrupted({ Int(lstat(path, &status)) }) {
    case .done: return Identity(status)
    case .failed(ENOENT): return nil
    case .failed(let number): throw .system("lstat", number, file: path)
    }
  }

  /// Writes the holder's process id for others to report.
  ///
  /// The lock does not depend on it, so a failure does not matter.
  private static func write(holder: pid_t, to descriptor: Int32) {
    guard ftruncate(descriptor, 0) == 0 else { return }
    Array("\(holder)\n".utf8).withUnsafeBytes { bytes in
      _ = SystemCall.writeAll(bytes, at: 0) { piece, offset in
        SystemCall.uninterrupted { pwrite(descriptor, piece.baseAddress, piece.count, off_t(offset)) }
      }
    }
  }

  /// The process id in a lock file, if it holds one.
  private static func holder(in descriptor: Int32) -> pid_t? {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count > 0 else { return nil }
    return pid_t(String(decoding: bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
  }
}
