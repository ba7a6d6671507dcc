// Sharing/ decides which processes may use a store at the same time, and lets several processes write in turns.
// Invariant: the commits of other processes are read before a batch is staged, and the write lock is held until the batch is committed.
// Called by Opening/, Writing/ and SQLiteStore.

internal import CLarderFiles
internal import Foundation
internal import Larder
internal import Synchronization

/// The locks of a store that is open for writing: the lock on its lock file, and a lock on the database itself.
final class SQLiteLocks {
  private let path: SQLitePath
  private let lockFile: any HeldLock
  private let shared: (any HeldSharedLock)?
  private var database: SQLiteFileLock?

  init(_ path: SQLitePath, options: StoreOptions, in fileSystem: any FileSystem) throws(RepositoryError) {
    self.path = path
    shared = options.access == .shared ? try fileSystem.lockShared(path.lock, waiting: options.lockTimeout) : nil
    lockFile = if let shared { shared } else { try fileSystem.lock(path.lock) }
  }

  /// Whether no other process has the store open.
  ///
  /// While `isExclusive` is true, no other process can open the store until ``share()`` is called.
  var isExclusive: Bool { shared?.isAlone ?? true }
  /// Whether the store was opened `.shared`.
  var isShared: Bool { shared != nil }

  /// Locks the database file, if it exists and is not locked yet.
  func lockDatabase() throws(RepositoryError) {
    if database == nil { database = try SQLiteFileLock.lock(path.main, isExclusive ? .exclusive : .shared) }
  }

  /// Turns the exclusive locks of a store opened `.shared` into shared ones, so that other processes can open it.
  func share() throws(RepositoryError) {
    guard let shared else { return }
    // The lock on the database becomes shared before the lock on the lock file, because a process that gets the lock file locks the
    // database next.
    try database?.share()
    try shared.share()
  }

  /// Makes the locks of a store opened `.shared` exclusive again, and returns false if another process has the store open.
  ///
  /// After `reclaim()` has returned false, call only ``release()``.
  func reclaim() -> Bool { shared?.reclaim() == true && database?.reclaim() != false }

  /// Releases all locks of the store.
  ///
  /// Call `release()` only after every connection to the store was closed.
  func release() {
    // The locks are released in the reverse order of locking, so that a process that waits for the lock file finds the database unlocked.
    database?.release()
    lockFile.release()
  }
}

/// A lock on the database file itself, because the lock file beside it can be deleted by hand and belongs to one name only.
///
/// The lock is made by `F_OFD_SETLK` on the byte ``SQLiteInspection/lockedByte``. On Darwin a `flock` would exclude SQLite's own locks,
/// which are on the bytes from 0x40000000 to 0x400001FF.
///
/// If a process closes any descriptor of a file, the system drops all POSIX locks that SQLite has on the file in that process.
/// `SQLiteFileLock` closes a descriptor of the database only when no store of this process uses the file any more. While a store of this
/// process uses the file, a descriptor whose lock was released stays open ("parked").
final class SQLiteFileLock: Sendable {
  enum Mode {
    /// A lock that excludes every other lock on the database.
    case exclusive
    /// A lock that excludes exclusive locks, but no other shared lock.
    case shared
    /// A use of the database without a lock, which excludes no lock of others.
    ///
    /// The mode `.unlocked` keeps parked descriptors open as long as a reader's connection needs SQLite's locks.
    case unlocked
  }

  private struct Use: Sendable {
    var stores = 0
    /// Number of stores of this process that hold a lock on the file.
    var locks = 0
    /// Descriptors without a lock, which are closed when the last store of this process releases the file.
    var parked: [Int32] = []
  }
  /// Offset in the database file of the locked byte, which lies behind the end of every database.
  private static let place = off_t(SQLiteInspection.lockedByte)
  private static let uses = Mutex<[FileIdentity: Use]>([:])

  private let path: String
  private let identity: FileIdentity
  /// Descriptor that holds the lock, or −1 for the mode `.unlocked`.
  private let descriptor: Int32
  private let isHeld = Mutex(true)

  private init(_ path: String, identity: FileIdentity, descriptor: Int32) {
    self.path = path
    self.identity = identity
    self.descriptor = descriptor
  }

  deinit { release() }

  /// Locks a file without waiting, or returns `nil` when there is no file.
  ///
  /// - Throws: `.alreadyOpen` when a store of this process holds a lock that excludes the new lock, `.locked` when another process holds
  ///   such a lock.
  static func lock(_ path: String, _ mode: Mode) throws(RepositoryError) -> SQLiteFileLock? {
    // One mutex guards both the lock and the table of uses. Otherwise a store that is closed at the same time could close the descriptor
    // that this function uses.
    try uses.withLock { uses throws(RepositoryError) -> SQLiteFileLock? in
      guard let identity = try FileIdentity(at: path) else { return nil }
      var use = uses[identity] ?? Use()
      guard mode != .unlocked else {
        use.stores += 1
        uses[identity] = use
        return SQLiteFileLock(path, identity: identity, descriptor: -1)
      }
      // A parked descriptor belongs to the same file and has no lock. Reusing a parked descriptor keeps a backend that opens many times
      // from opening many descriptors.
      let descriptor = if let parked = use.parked.popLast() { parked } else { try opened(path) }
      if let number = change(mode == .exclusive ? F_WRLCK : F_RDLCK, descriptor) {
        // If another store of this process uses the file, closing the descriptor would drop that store's locks, so the descriptor is
        // parked.
        if use.stores == 0 {
          close(descriptor)
        } else {
          use.parked.append(descriptor)
          uses[identity] = use
        }
        guard number == EWOULDBLOCK || number == EACCES else { throw failure(of: "fcntl(F_OFD_SETLK)", number, at: path) }
        // If a store of this process holds a lock on the file, that lock excludes the new lock.
        if use.locks > 0 {
          throw RepositoryError(.alreadyOpen, "this process has the file open by another name: close that store first", file: path)
        }
        throw RepositoryError(
          .locked, "another process has the file open, though its lock file was removed: wait until it closes the store", file: path)
      }
      use.stores += 1
      use.locks += 1
      uses[identity] = use
      return SQLiteFileLock(path, identity: identity, descriptor: descriptor)
    }
  }

  /// Opens the file for writing, because the system grants an exclusive lock only to a descriptor that may write.
  private static func opened(_ path: String) throws(RepositoryError) -> Int32 {
    switch SystemCall.uninterrupted({ Int(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) }) {
    case .done(let descriptor): return Int32(descriptor)
    case .failed(let number) where [EACCES, EPERM, EROFS].contains(number):
      throw RepositoryError(
        .protectedDataUnavailable,
        "expected permission to write the file, found none: change its permissions, or open it for reading only", file: path,
        underlying: SystemCallError(call: "open", errorNumber: number))
    case .failed(let number): throw failure(of: "open", number, at: path)
    }
  }

  /// Turns this exclusive lock on the database into a shared one.
  func share() throws(RepositoryError) {
    if let number = Self.change(F_RDLCK, descriptor) {
      throw RepositoryError(
        .locked, "another process locked the file in this moment: try again", file: path,
        underlying: SystemCallError(call: "fcntl(F_OFD_SETLK)", errorNumber: number))
    }
  }

  /// Turns this shared lock into an exclusive one, or returns false when another process has a lock on the database.
  ///
  /// After `reclaim()` has returned false, call only ``release()``.
  func reclaim() -> Bool { Self.change(F_WRLCK, descriptor) == nil }

  /// Releases the lock on the database file.
  ///
  /// Call `release()` only after every connection to the file was closed.
  ///
  /// A second call of `release()` does nothing.
  func release() {
    Self.uses.withLock { uses in
      let isFirst = isHeld.withLock { isHeld in
        defer { isHeld = false }
        return isHeld
      }
      guard isFirst, var use = uses[identity] else { return }
      use.stores -= 1
      if descriptor >= 0 {
        _ = Self.change(F_UNLCK, descriptor)
        use.locks -= 1
        use.parked.append(descriptor)
      }
      uses[identity] = use.stores > 0 ? use : nil
      if use.stores == 0 { for parked in use.parked { close(parked) } }
    }
  }

  /// Changes the lock without waiting, and returns the system's error number when the change was refused.
  ///
  /// Some network file systems have no locks on byte ranges. On a file system without locks on byte ranges, `change` reports success, and
  /// the lock file alone excludes other processes.
  private static func change(_ type: Int32, _ descriptor: Int32) -> Int32? {
    switch SystemCall.uninterrupted({ Int(larder_lock_byte(descriptor, type, place)) }) {
    case .done: nil
    case .failed(let number) where [ENOTSUP, EOPNOTSUPP, EINVAL, ENOSYS].contains(number): nil
    case .failed(let number): number
    }
  }

  private static func failure(of call: String, _ number: Int32, at path: String) -> RepositoryError {
    RepositoryError("the file cannot be locked: check its permissions and its file system", call: call, errorNumber: number, file: path)
  }
}
