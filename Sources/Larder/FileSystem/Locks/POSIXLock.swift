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

/// One holder's shared `flock` lock on a lock file, which the last holder removes.
///
/// The first process to open a shared store locks the lock file exclusively, prepares the store, writes "shared" into the lock file, and
/// then changes its lock to a shared lock. Other processes take a shared lock only if the lock file says "shared". If the first process is
/// killed while it holds the exclusive lock, the next process gets the exclusive lock and prepares the store again.
final class POSIXSharedLock: HeldSharedLock {
  private struct Hold: Sendable {
    var file: LockFile?
    var isAlone: Bool
  }

  private let timeout: Duration
  private let hold: Mutex<Hold>

  private init(_ file: LockFile, isAlone: Bool, _ timeout: Duration) {
    self.timeout = timeout
    hold = Mutex(Hold(file: file, isAlone: isAlone))
  }

  deinit { release() }

  var isAlone: Bool { hold.withLock { $0.isAlone } }

  // MARK: Acquiring

  /// Takes the lock, exclusively if it is free and shared otherwise, and waits at most `timeout` for a holder that excludes others.
  ///
  /// - Parameter write: Closure that writes the text of the lock file. Tests pass a closure that simulates a full disk.
  static func acquire(
    _ path: String, waiting timeout: Duration, write: (LockNote.Use, LockFile) -> Int32? = { $1.write($0) }
  ) throws(RepositoryError) -> POSIXSharedLock {
    var patience = Patience(path, timeout)
    while true {
      var refusal = LockNote()
      if let lock = try attempt(path, waiting: timeout, write: write, refusal: &refusal) { return lock }
      try patience.wait(refusal)
    }
  }

  private static func attempt(
    _ path: String, waiting timeout: Duration, write: (LockNote.Use, LockFile) -> Int32?, refusal: inout LockNote
  ) throws(RepositoryError) -> POSIXSharedLock? {
    try LockFile.registry.withLock { (held) throws(RepositoryError) -> POSIXSharedLock? in
      try LockFile.attempt(path) { file throws(RepositoryError) -> POSIXSharedLock? in
        if held[file.identity] == LockFile.exclusive { throw .openInThisProcess(path) }
        // A shared holder must write the text of the lock file, and a file with several names may belong to another program.
        guard file.hasOneName else {
          throw RepositoryError(.unsupported, "the lock file has several names (hard links), expected one: remove the others", file: path)
        }
        // The exclusive lock is tried first: if no other process holds the lock, this process must prepare the store before others may open
        // it.
        let isAlone = try file.takeLock(LOCK_EX)
        if !isAlone, try !file.takeLock(LOCK_SH) {
          refusal = file.note
          return nil
        }
        // A lock on a removed file excludes nobody. The next attempt to lock opens the file that is then at the path.
        guard try file.isInPlace() else {
          refusal = LockNote(use: .closing)
          return nil
        }
        if isAlone {
          file.setMode()
          // On a full disk the text of the lock file stays empty, and no other process takes a shared lock until the text says "shared". An
          // existing store can still be read on a full disk. An old text that could not be replaced may say "shared" although this process
          // excludes others, so the failed write is thrown as an error.
          if let number = write(.opening, file), file.note.use != nil { throw .system("write", number, file: path) }
        } else if file.note.use != .shared {
          // The text of the lock file does not say "shared", so its exclusive holder has ended without sharing the lock. The next attempt
          // may get the exclusive lock.
          refusal = LockNote(use: .opening)
          return nil
        }
        held[file.identity, default: 0] += 1
        return POSIXSharedLock(file, isAlone: isAlone, timeout)
      }
    }
  }

  // MARK: Sharing and releasing

  func share() throws(RepositoryError) {
    guard let file = hold.withLock({ $0.isAlone ? $0.file : nil }) else { return }
    // The text is written before the lock is downgraded, because a process that gets a shared lock during the downgrade must find the text
    // "shared".
    if let number = file.write(.shared) { throw .system("write", number, file: file.path) }
    // `isAlone` is cleared before the downgrade: if the downgrade fails, this process has lost its exclusive lock and must not count as the
    // only holder.
    hold.withLock { $0.isAlone = false }
    // `flock` releases the exclusive lock before it takes the shared lock, so another process may lock the file exclusively in between.
    var patience = Patience(file.path, timeout)
    while try !file.takeLock(LOCK_SH) { try patience.wait(file.note) }
  }

  func reclaim() -> Bool {
    hold.withLock { hold in
      guard let file = hold.file else { return false }
      if !hold.isAlone {
        // An error of `flock` is ignored: like a refusal, an error means that this process does not count as the only holder.
        do { hold.isAlone = try file.takeLock(LOCK_EX) } catch {}
        // The text "closing" replaces the text "shared", so that a process that opened the lock file before its removal waits and takes no
        // shared lock.
        if hold.isAlone { file.write(.closing) }
      }
      return hold.isAlone
    }
  }

  func release() {
    LockFile.registry.withLock { held in
      // A holder removes the lock file only if no other process holds the lock. If the lock file were removed while other processes hold
      // shared locks, the next process would create another lock file and lock that file exclusively.
      let isLast = reclaim()
      guard let file = hold.withLock({ $0.file.take() }) else { return }
      let others = (held[file.identity] ?? 1) - 1
      held[file.identity] = others > 0 ? others : nil
      if isLast { file.remove() }
      file.close()
    }
  }

  /// The time limit of waiting for a lock that another process holds.
  private struct Patience {
    private let path: String
    private let deadline: ContinuousClock.Instant
    /// Moment since which the text of the lock file has named an exclusive holder, or `nil` while it names none.
    private var exclusiveSince: ContinuousClock.Instant?

    init(_ path: String, _ timeout: Duration) {
      self.path = path
      deadline = .now + timeout
    }

    /// Sleeps 2 ms, so that a process that holds the lock exclusively can call `share()`.
    ///
    /// - Throws: `.locked` after the deadline, or after the lock file has named an exclusive holder, which never shares its lock, for 250
    ///   ms.
    mutating func wait(_ note: LockNote) throws(RepositoryError) {
      let now = ContinuousClock.now
      // A new holder takes the lock before it writes the text of the lock file, so the text may still name the previous, exclusive holder
      // for a moment.
      exclusiveSince = note.use == .exclusive ? exclusiveSince ?? now : nil
      let isExclusive = exclusiveSince.map { now - $0 >= .milliseconds(250) } ?? false
      if isExclusive || now >= deadline { throw RepositoryError(.locked, note.holder, file: path) }
      usleep(2_000)
    }
  }
}
