internal import Foundation
internal import Synchronization

/// A share in a `flock` on a lock file, which the last holder removes.
///
/// The first process locks exclusively, prepares the store, marks the file "shared", then downgrades its lock. Others come in only where
/// the file says "shared", so that a process that is killed while it is alone leaves nothing half prepared for them: the next one finds
/// the lock free, and is alone.
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

  /// Takes a share, and waits at most so long while another process is alone.
  ///
  /// - Parameter write: Writes the note of the file, so that tests can play a full disk.
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
        guard file.hasOneName else {
          throw RepositoryError(.unsupported, "the lock file has several names (hard links), expected one: remove the others", file: path)
        }
        let isAlone = try file.take(LOCK_EX)
        if !isAlone, try !file.take(LOCK_SH) {
          refusal = file.note
          return nil
        }
        guard try file.isInPlace() else {
          refusal = LockNote(use: .closing)
          return nil
        }
        if isAlone {
          file.setMode()
          // On a full disk the file stays empty, and no other process comes in until it says "shared": a store that is there can be read
          // all the same.
          if let number = write(.opening, file), file.note.use != nil { throw .system("write", number, file: path) }
        } else if file.note.use != .shared {
          refusal = LockNote(use: .opening)  // the process that was alone has ended, or is between its two locks
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
    if let number = file.write(.shared) { throw .system("write", number, file: file.path) }
    hold.withLock { $0.isAlone = false }
    // Between the two locks there is none: another process may be alone for a moment.
    var patience = Patience(file.path, timeout)
    while try !file.take(LOCK_SH) { try patience.wait(file.note) }
  }

  func reclaim() -> Bool {
    hold.withLock { hold in
      guard let file = hold.file else { return false }
      if !hold.isAlone {
        // Any failure means the same: not alone.
        do { hold.isAlone = try file.take(LOCK_EX) } catch {}
        if hold.isAlone { file.write(.closing) }
      }
      return hold.isAlone
    }
  }

  func release() {
    LockFile.registry.withLock { held in
      let isLast = reclaim()
      guard let file = hold.withLock({ $0.file.take() }) else { return }
      let others = (held[file.identity] ?? 1) - 1
      held[file.identity] = others > 0 ? others : nil
      if isLast { file.remove() }
      file.close()
    }
  }

  /// The limit of waiting for a lock that is taken.
  private struct Patience {
    private let path: String
    private let deadline: ContinuousClock.Instant
    /// The moment since which the file names an exclusive holder.
    private var exclusiveSince: ContinuousClock.Instant?

    init(_ path: String, _ timeout: Duration) {
      self.path = path
      deadline = .now + timeout
    }

    /// Waits a moment for a process that is alone to let others in.
    ///
    /// An exclusive holder will not, but the note may be older than the lock: it must say so for a while.
    mutating func wait(_ note: LockNote) throws(RepositoryError) {
      let now = ContinuousClock.now
      exclusiveSince = note.use == .exclusive ? exclusiveSince ?? now : nil
      let isExclusive = exclusiveSince.map { now - $0 >= .milliseconds(250) } ?? false
      if isExclusive || now >= deadline { throw RepositoryError(.locked, note.holder, file: path) }
      usleep(2_000)
    }
  }
}
