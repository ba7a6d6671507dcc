internal import Foundation
internal import Synchronization

/// A share in a `flock` on a lock file, which the last holder removes.
///
/// The first process locks exclusively, prepares the store, writes "shared" into the file, then downgrades its lock. Other processes come
/// in only if the file says "shared". If the first one is killed while it is alone, the next process finds the lock free, is alone itself,
/// and prepares everything again.
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

  /// Takes a share, and waits at most for the timeout while another process is alone with the lock.
  ///
  /// - Parameter write: Writes the text of the file, so that tests can simulate a full disk.
  static func acquire(
    _ path: String, waiting timeout: Duration, write: (LockNote.Use, LockFile) -> Int32? = { $1.write($0) }
  ) throws(RepositoryError) -> POSIXSharedLock {
    var patience = Patience(path, timeout)
    while true {
      var refusal = LockNote()
      if let lock = try attempt(path, timeout, write, &refusal) { return lock }
      try patience.wait(refusal)
    }
  }

  private static func attempt(
    _ path: String, _ timeout: Duration, _ write: (LockNote.Use, LockFile) -> Int32?, _ refusal: inout LockNote
  ) throws(RepositoryError) -> POSIXSharedLock? {
    try LockFile.registry.withLock { (held) throws(RepositoryError) -> POSIXSharedLock? in
      try LockFile.attempt(path) { file throws(RepositoryError) -> POSIXSharedLock? in
        if held[file.identity] == LockFile.exclusive { throw .openInThisProcess(path) }
        // A shared holder must write its text, and a file with another name may belong to another program.
        guard file.hasOneName else {
          throw RepositoryError(.unsupported, "the lock file has several names (hard links), expected one: remove the others", file: path)
        }
        let isAlone = try file.takeLock(LOCK_EX)
        if !isAlone, try !file.takeLock(LOCK_SH) {
          refusal = file.note
          return nil
        }
        // A lock on a removed file excludes nobody. The next round opens the file that has its place.
        guard try file.isInPlace() else {
          refusal = LockNote(use: .closing)
          return nil
        }
        if isAlone {
          file.setMode()
          // On a full disk the file stays empty, and no other process comes in until it says "shared". An existing store can still be read.
          if let number = write(.opening, file), file.note.use != nil { throw .system("write", number, file: path) }
        } else if file.note.use != .shared {
          // The process that was alone has ended, or is between its two locks.
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
    // Before the downgrade: a process that gets its share in between must find the text.
    if let number = file.write(.shared) { throw .system("write", number, file: file.path) }
    hold.withLock { $0.isAlone = false }
    // `flock` releases the exclusive lock before it takes the shared one, so another process may be alone for a moment.
    var patience = Patience(file.path, timeout)
    while try !file.takeLock(LOCK_SH) { try patience.wait(file.note) }
  }

  func reclaim() -> Bool {
    hold.withLock { hold in
      guard let file = hold.file else { return false }
      if !hold.isAlone {
        // Any failure means the same: this process is not alone.
        do { hold.isAlone = try file.takeLock(LOCK_EX) } catch {}
        // A process that comes in now must wait for the removal instead of joining.
        if hold.isAlone { file.write(.closing) }
      }
      return hold.isAlone
    }
  }

  func release() {
    LockFile.registry.withLock { held in
      // Only a holder that is alone removes the file: the lock of the others would lose its name.
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
    /// Moment since which the text of the file has named an exclusive holder.
    private var exclusiveSince: ContinuousClock.Instant?

    init(_ path: String, _ timeout: Duration) {
      self.path = path
      deadline = .now + timeout
    }

    /// Sleeps 2 ms, so that a process which is alone can let others in.
    ///
    /// - Throws: `.locked` after the deadline, or after 250 ms of an exclusive holder, which lets nobody in.
    mutating func wait(_ note: LockNote) throws(RepositoryError) {
      let now = ContinuousClock.now
      // A new holder takes the lock before it writes, so that an exclusive note may be left from the holder before.
      exclusiveSince = note.use == .exclusive ? exclusiveSince ?? now : nil
      let isExclusive = exclusiveSince.map { now - $0 >= .milliseconds(250) } ?? false
      if isExclusive || now >= deadline { throw RepositoryError(.locked, note.holder, file: path) }
      usleep(2_000)
    }
  }
}
