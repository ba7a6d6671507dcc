// Sharing/ decides which processes may use a store at the same time, and lets several write in turns.
// Invariant: foreign commits are read before a batch is staged, and the write lock is held until it is committed.
// Called by Opening/, Writing/ and SQLiteStore.

internal import Larder

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

  /// Whether no other process has the store open, nor can open it before ``share()``.
  var isExclusive: Bool { shared?.isAlone ?? true }
  /// Whether the store was opened `.shared`.
  var isShared: Bool { shared != nil }

  /// Locks the database, once it exists.
  func lockDatabase() throws(RepositoryError) {
    if database == nil { database = try SQLiteFileLock.lock(path.main, isExclusive ? .exclusive : .shared) }
  }

  /// Lets other processes open the store, if it is shared.
  func share() throws(RepositoryError) {
    guard let shared else { return }
    try database?.share()
    try shared.share()
  }

  /// Makes the locks exclusive again, if no other process has the store open; otherwise only ``release()`` may follow.
  func reclaim() -> Bool { shared?.reclaim() == true && database?.reclaim() != false }

  /// Releases all locks, after every connection was closed.
  func release() {
    database?.release()
    lockFile.release()
  }
}
