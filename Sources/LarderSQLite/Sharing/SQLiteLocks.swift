// Sharing/ decides which processes may use a store at the same time, and lets several write in turns.
// Invariant: foreign commits are read before a batch is staged, and the write lock is held until the batch is committed.
// Called by Opening/, Writing/ and SQLiteStore.

internal import CLarderFiles
internal import Foundation
internal import Larder
internal import Synchronization

/// The locks of a store that is open for writing: its lock file, and a lock on the database itself.
final class SQLiteLocks {
  private let path: SQLitePath
  private let lockFile: any HeldLock
  private let shared: (any HeldSharedLock)?
  private var database: SQLiteFileLock?

  init(_ path: SQLitePath, _ options: StoreOptions, _ fileSystem: any FileSystem) throws(RepositoryError) {
    self.path = path
    shared = options.access == .shared ? try fileSystem.lockShared(path.lock, waiting: options.lockTimeout) : nil
    lockFile = if let shared { shared } else { try fileSystem.lock(path.lock) }
  }

  /// Whether no other process has the store open, or can open it before ``share()``.
  var isExclusive: Bool { shared?.isAlone ?? true }
  /// Whether the store was opened `.shared`.
  var isShared: Bool { shared != nil }

  /// Locks the database file, once it exists.
  func lockDatabase() throws(RepositoryError) {
    if database == nil { database = try SQLiteFileLock.lock(path.main, isExclusive ? .exclusive : .shared) }
  }

  /// Turns the locks of a shared store into shared ones, so that other processes can open it.
  func share() throws(RepositoryError) {
    guard let shared else { return }
    // Before the lock file: a process that gets that lock takes the one on the database next.
    try database?.share()
    try shared.share()
  }

  /// Makes the locks of a shared store exclusive again, and returns false if another process has the store open.
  ///
  /// After a result of false, call only ``release()``.
  func reclaim() -> Bool { shared?.reclaim() == true && database?.reclaim() != false }

  /// Releases all locks, after every connection was closed.
  func release() {
    // The reverse of locking: a process that waits for the lock file finds the database unlocked.
    database?.release()
    lockFile.release()
  }
}

/// A lock on the database file itself, because the lock file beside it can be deleted by hand and belongs to one name only.
///
/// It is a lock by `F_OFD_SETLK` on the byte ``SQLiteInspection/lockedByte``. On Darwin a `flock` would exclude SQLite's own locks, which
/// are on the bytes from 0x40000000 to 0x400001FF.
///
/// Closing any descriptor of a file drops all POSIX locks that SQLite has on it in this process. So a descriptor is closed only when no
/// store of this process uses the file any more. Until then it is kept open ("parked"), without its lock.
final class SQLiteFileLock: Sendable {
  enum Mode {
    /// Excludes every other lock.
    case exclusive
    /// Excludes exclusive locks.
    case shared
    /// Excludes nothing, and keeps descriptors open for as long as a reader's connection needs its locks.
    case unlocked
  }

  private struct Use: Sendable {
    var stores = 0
    /// Number of those stores that hold a lock.
    var locks = 0
    /// Descriptors without a lock, to be closed with the last store.
    var parked: [Int32] = []
  }
  /// Offset of the locked byte, behind the end of every database.
  private static let place = off_t(SQLiteInspection.lockedByte)
  private static let uses = Mutex<[FileIdentity: Use]>([:])

  private let path: String
  private let identity: FileIdentity
  /// Descriptor that has the lock, or −1 for the mode `.unlocked`.
  private let descriptor: Int32
  private let isHeld = Mutex(true)

  private init(_ path: String, _ identity: FileIdentity, _ descriptor: Int32) {
    self.path = path
    self.identity = identity
    self.descriptor = descriptor
  }

  deinit { release() }

  /// Locks a file without waiting, or returns `nil` when there is no file.
  /// - Throws: `.alreadyOpen` when a store of this process excludes it, `.locked` when another process does.
  static func lock(_ path: String, _ mode: Mode) throws(RepositoryError) -> SQLiteFileLock? {
    // One mutex for lock and table: a store that closes meanwhile must not close the descriptor that is taken here.
    try uses.withLock { uses throws(RepositoryError) -> SQLiteFileLock? in
      guard let identity = try FileIdentity(at: path) else { return nil }
      var use = uses[identity] ?? Use()
      guard mode != .unlocked else {
        use.stores += 1
        uses[identity] = use
        return SQLiteFileLock(path, identity, -1)
      }
      // A parked descriptor is of this very file and has no lock: a backend that is opened again and again needs no more of them.
      let descriptor = if let parked = use.parked.popLast() { parked } else { try opened(path) }
      if let number = change(mode == .exclusive ? F_WRLCK : F_RDLCK, descriptor) {
        // Closing the descriptor would drop the locks of this process's other stores on the file.
        if use.stores == 0 {
          close(descriptor)
        } else {
          use.parked.append(descriptor)
          uses[identity] = use
        }
        guard number == EWOULDBLOCK || number == EACCES else { throw failure("fcntl(F_OFD_SETLK)", number, path) }
        // The lock that excludes this one is of a store in this process.
        if use.locks > 0 {
          throw RepositoryError(.alreadyOpen, "this process has the file open by another name: close that store first", file: path)
        }
        throw RepositoryError(
          .locked, "another process has the file open, though its lock file was removed: wait until it closes the store", file: path)
      }
      use.stores += 1
      use.locks += 1
      uses[identity] = use
      return SQLiteFileLock(path, identity, descriptor)
    }
  }

  /// Opens the file for writing, without which the system grants no exclusive lock.
  private static func opened(_ path: String) throws(RepositoryError) -> Int32 {
    switch SystemCall.uninterrupted({ Int(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) }) {
    case .done(let descriptor): return Int32(descriptor)
    case .failed(let number) where [EACCES, EPERM, EROFS].contains(number):
      throw RepositoryError(
        .protectedDataUnavailable,
        "expected permission to write the file, found none: change its permissions, or open it for reading only", file: path,
        underlying: SystemCallError(call: "open", errorNumber: number))
    case .failed(let number): throw failure("open", number, path)
    }
  }

  /// Turns an exclusive lock into a shared one.
  func share() throws(RepositoryError) {
    if let number = Self.change(F_RDLCK, descriptor) {
      throw RepositoryError(
        .locked, "another process locked the file in this moment: try again", file: path,
        underlying: SystemCallError(call: "fcntl(F_OFD_SETLK)", errorNumber: number))
    }
  }

  /// Turns a shared lock into an exclusive one, or returns false when another process has a lock.
  ///
  /// After a result of false, call only ``release()``.
  func reclaim() -> Bool { Self.change(F_WRLCK, descriptor) == nil }

  /// Releases the lock, after every connection to the file was closed.
  ///
  /// The second call does nothing.
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

  /// Changes the lock without waiting, and returns the system's error number when it was refused.
  ///
  /// A file system without such locks, as some over a network, refuses nothing. There the lock file alone excludes other processes.
  private static func change(_ type: Int32, _ descriptor: Int32) -> Int32? {
    switch SystemCall.uninterrupted({ Int(larder_lock_byte(descriptor, type, place)) }) {
    case .done: nil
    case .failed(let number) where [ENOTSUP, EOPNOTSUPP, EINVAL, ENOSYS].contains(number): nil
    case .failed(let number): number
    }
  }

  private static func failure(_ call: String, _ number: Int32, _ path: String) -> RepositoryError {
    RepositoryError("the file cannot be locked: check its permissions and its file system", call: call, errorNumber: number, file: path)
  }
}
