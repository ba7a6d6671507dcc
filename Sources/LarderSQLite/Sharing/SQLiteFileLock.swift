internal import Foundation
internal import Larder
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A `flock` on the database itself: the lock file beside it can be deleted by hand, and belongs to one name only.
///
/// Closing any descriptor of a file drops the POSIX locks that SQLite has on it in this process, whoever took them. So a descriptor is
/// closed only when no store of this process uses the file any more; until then it is kept, without its lock.
///
/// On Darwin a `flock` and SQLite's own locks would be in each other's way, so there it only tells stores of this process apart.
final class SQLiteFileLock: Sendable {
  enum Part {
    /// Nobody else has any part but reading.
    case alone
    case together
    /// Has no lock, but a connection that descriptors must not be closed under.
    case reading
  }

  private struct Use: Sendable {
    var stores = 0
    /// How many of them have a lock.
    var locks = 0
    var parked: [Int32] = []
  }
  private static let uses = Mutex<[SQLiteFileIdentity: Use]>([:])

  private let path: String
  private let identity: SQLiteFileIdentity
  /// The descriptor that has the lock; negative for a reader.
  private let descriptor: Int32
  private let isHeld = Mutex(true)

  private init(_ path: String, _ identity: SQLiteFileIdentity, _ descriptor: Int32) {
    self.path = path
    self.identity = identity
    self.descriptor = descriptor
  }

  deinit { release() }

  /// Takes part, or throws at once; `nil` when there is no file.
  static func take(_ path: String, _ part: Part) throws(RepositoryError) -> SQLiteFileLock? {
    try uses.withLock { uses throws(RepositoryError) -> SQLiteFileLock? in
      guard let identity = try SQLiteFileIdentity(at: path) else { return nil }
      var use = uses[identity] ?? Use()
      guard part != .reading else {
        use.stores += 1
        uses[identity] = use
        return SQLiteFileLock(path, identity, -1)
      }
      let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
      guard descriptor >= 0 else { throw failure("open", errno, path) }
      if let number = change(part == .alone ? LOCK_EX : LOCK_SH, descriptor) {
        if use.stores == 0 {
          close(descriptor)
        } else {
          use.parked.append(descriptor)
          uses[identity] = use
        }
        guard number == EWOULDBLOCK else { throw failure("flock", number, path) }
        if use.locks > 0 { throw RepositoryError(.alreadyOpen, "this process has the file open, by another name", file: path) }
        throw RepositoryError(.locked, "another process has the file open, though its lock file is gone", file: path)
      }
      use.stores += 1
      use.locks += 1
      uses[identity] = use
      return SQLiteFileLock(path, identity, descriptor)
    }
  }

  /// Lets others take part.
  func share() throws(RepositoryError) {
    if let number = Self.change(LOCK_SH, descriptor) {
      throw RepositoryError(
        .locked, "another process took the file for itself", file: path,
        underlying: SystemCallError(call: "flock", errorNumber: number))
    }
  }

  /// Becomes alone if nobody else takes part; else only `release` may follow.
  func reclaim() -> Bool { Self.change(LOCK_EX, descriptor) == nil }

  /// Gives the part up; the second call does nothing.
  ///
  /// Every connection to the file must be closed.
  func release() {
    Self.uses.withLock { uses in
      let isFirst = isHeld.withLock { isHeld in
        defer { isHeld = false }
        return isHeld
      }
      guard isFirst, var use = uses[identity] else { return }
      use.stores -= 1
      if descriptor >= 0 {
        _ = Self.change(LOCK_UN, descriptor)
        use.locks -= 1
        use.parked.append(descriptor)
      }
      uses[identity] = use.stores > 0 ? use : nil
      if use.stores == 0 { for parked in use.parked { close(parked) } }
    }
  }

  /// Changes the lock without waiting, and returns what the system refused with.
  private static func change(_ operation: Int32, _ descriptor: Int32) -> Int32? {
    #if canImport(Darwin)
      return nil
    #else
      while flock(descriptor, operation | LOCK_NB) != 0 { if errno != EINTR { return errno } }
      return nil
    #endif
  }

  private static func failure(_ call: String, _ number: Int32, _ path: String) -> RepositoryError {
    let code: RepositoryError.Code = number == EACCES || number == EPERM ? .protectedDataUnavailable : .inputOutput
    return RepositoryError(
      code, "the system refused the lock of the file", file: path, underlying: SystemCallError(call: call, errorNumber: number))
  }
}

/// What keeps others from a store while it is open for writing: its lock file, and a lock on the database itself.
final class SQLiteLocks {
  private let path: SQLitePath
  private let entry: any HeldLock
  private let shared: (any HeldSharedLock)?
  private var file: SQLiteFileLock?

  init(_ path: SQLitePath, _ options: StoreOptions, _ fileSystem: any FileSystem) throws(RepositoryError) {
    self.path = path
    shared = options.access == .shared ? try fileSystem.lockShared(path.lock, waiting: options.lockTimeout) : nil
    entry = if let shared { shared } else { try fileSystem.lock(path.lock) }
  }

  /// Whether nobody else has the store open, nor can until ``share()``.
  var isAlone: Bool { shared?.isAlone ?? true }
  var isShared: Bool { shared != nil }

  /// Takes the lock on the database, once there is one.
  func takeFile() throws(RepositoryError) {
    if file == nil { file = try SQLiteFileLock.take(path.main, isAlone ? .alone : .together) }
  }

  /// Lets others in, if the store is shared.
  func share() throws(RepositoryError) {
    guard let shared else { return }
    try file?.share()
    try shared.share()
  }

  /// Becomes alone again if the others have gone; else only `release` may follow.
  func reclaim() -> Bool { shared?.reclaim() == true && file?.reclaim() != false }

  /// Gives all locks up, after every connection was closed.
  func release() {
    file?.release()
    entry.release()
  }
}
