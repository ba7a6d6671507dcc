internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A part in a `flock` on a lock file, which the last one to go removes.
///
/// Whoever can have the lock exclusively is alone: he prepares the store, writes "shared" into the file, and takes the lock shared instead.
/// Others come in only where the file says "shared", so that a process that is killed while it is alone leaves nothing half prepared
/// for them: the next one finds the lock free, and is alone.
final class POSIXSharedLock: HeldSharedLock {
  private struct Hold: Sendable {
    var descriptor: Int32?
    var isAlone: Bool
  }

  private let path: String
  private let identity: FileIdentity
  private let timeout: Duration
  private let hold: Mutex<Hold>

  private init(_ path: String, _ identity: FileIdentity, _ descriptor: Int32, isAlone: Bool, _ timeout: Duration) {
    self.path = path
    self.identity = identity
    self.timeout = timeout
    hold = Mutex(Hold(descriptor: descriptor, isAlone: isAlone))
  }

  deinit { release() }

  var isAlone: Bool { hold.withLock { $0.isAlone } }

  // MARK: Coming

  /// Takes part, and waits at most so long while another one is alone.
  ///
  /// - Parameter write: Writes what the file says, so that tests can play a full disk.
  static func acquire(
    _ path: String, waiting timeout: Duration, write: (LockFile.Use, Int32) -> Int32? = { LockFile.write($0, to: $1) }
  ) throws(RepositoryError) -> POSIXSharedLock {
    var patience = Patience(path, timeout)
    while true {
      switch try attempt(path, timeout, write) {
      case .held(let lock): return lock
      case .refused(let note): try patience.wait(note)
      }
    }
  }

  private enum Attempt {
    case held(POSIXSharedLock)
    case refused(LockFile.Note)
  }

  private static func attempt(
    _ path: String, _ timeout: Duration, _ write: (LockFile.Use, Int32) -> Int32?
  ) throws(RepositoryError) -> Attempt {
    try LockFile.registry.withLock { (held) throws(RepositoryError) -> Attempt in
      let descriptor = try LockFile.open(path)
      var isKept = false
      defer { if !isKept { _ = closeDescriptor(descriptor) } }
      let identity = FileIdentity(try POSIXFile.status(of: descriptor, path))
      if held[identity] == LockFile.exclusive { throw RepositoryError(.alreadyOpen, "this process holds the lock", file: path) }

      let isAlone = try LockFile.take(LOCK_EX, descriptor, path)
      if !isAlone, try !LockFile.take(LOCK_SH, descriptor, path) { return .refused(LockFile.note(in: descriptor)) }
      // The last holder removes the file while it has the lock: what we locked may be a file without a name.
      guard try LockFile.identity(ofEntry: path) == identity else { return .refused(.init(process: nil, use: .closing)) }
      if isAlone {
        _ = fchmod(descriptor, 0o600)  // 0600 but for the umask already
        // On a full disk the file says nothing, and nobody comes in until it says "shared": a store that is there can be read all the same.
        if let number = write(.opening, descriptor), LockFile.note(in: descriptor).use != nil {
          throw .system("write", number, file: path)
        }
      } else if LockFile.note(in: descriptor).use != .shared {
        return .refused(.init(process: nil, use: .opening))  // who was alone has gone, or is on his way between his two locks
      }
      held[identity, default: 0] += 1
      isKept = true
      return .held(POSIXSharedLock(path, identity, descriptor, isAlone: isAlone, timeout))
    }
  }

  // MARK: Staying and going

  func share() throws(RepositoryError) {
    guard let descriptor = hold.withLock({ $0.isAlone ? $0.descriptor : nil }) else { return }
    if let number = LockFile.write(.shared, to: descriptor) { throw .system("write", number, file: path) }
    hold.withLock { $0.isAlone = false }
    // Between the two locks there is none: another one may be alone for a moment.
    var patience = Patience(path, timeout)
    while try !LockFile.take(LOCK_SH, descriptor, path) { try patience.wait(LockFile.note(in: descriptor)) }
  }

  func reclaim() -> Bool {
    hold.withLock { hold in
      guard let descriptor = hold.descriptor else { return false }
      if !hold.isAlone {
        // Any failure means the same: not alone.
        do { hold.isAlone = try LockFile.take(LOCK_EX, descriptor, path) } catch {}
        if hold.isAlone { LockFile.write(.closing, to: descriptor) }
      }
      return hold.isAlone
    }
  }

  func release() {
    LockFile.registry.withLock { held in
      let isLast = reclaim()
      guard let descriptor = hold.withLock({ $0.descriptor.take() }) else { return }
      let others = (held[identity] ?? 1) - 1
      held[identity] = others > 0 ? others : nil
      if isLast { LockFile.remove(path, identity) }
      LockFile.unlock(descriptor)
      _ = closeDescriptor(descriptor)
    }
  }

  /// How long somebody waits who finds the lock taken.
  private struct Patience {
    private let path: String
    private let deadline: ContinuousClock.Instant
    /// Since when the file has named an exclusive holder.
    private var exclusiveSince: ContinuousClock.Instant?

    init(_ path: String, _ timeout: Duration) {
      self.path = path
      deadline = .now + timeout
    }

    /// Waits a moment for one who is alone to let others in.
    ///
    /// One who holds the lock exclusively will not, but what the file says may be older than the lock: it must say so for a while.
    mutating func wait(_ note: LockFile.Note) throws(RepositoryError) {
      let now = ContinuousClock.now
      exclusiveSince = note.use == .exclusive ? exclusiveSince ?? now : nil
      let isExclusive = exclusiveSince.map { now - $0 >= .milliseconds(250) } ?? false
      if isExclusive || now >= deadline { throw RepositoryError(.locked, note.holder, file: path) }
      usleep(2_000)
    }
  }
}
