internal import Foundation
internal import Synchronization

/// A share in a `flock` lock on a lock file, which the last holder removes.
///
/// The first process locks the file exclusively, prepares the store, writes "shared" into the lock file, and then changes its lock to a
/// shared one. Other processes take a share only if the file says "shared". If the first process is killed while it has the lock alone, the
/// next process gets the exclusive lock and prepares the store again.
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

  /// Takes a share, and waits at most `timeout` while another process has the lock alone.
  ///
  /// - Parameter write: Closure that writes the text of the lock file, so that tests can simulate a full disk.
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
        // The exclusive lock is tried first: if no other process has a share, this process must prepare the store before it lets others in.
        let isAlone = try file.takeLock(LOCK_EX)
        if !isAlone, try !file.takeLock(LOCK_SH) {
          refusal = file.note
          return nil
        }
        // A lock on a removed file excludes nobody. The next attempt opens the file that is at the path then.
        guard try file.isInPlace() else {
          refusal = LockNote(use: .closing)
          return nil
        }
        if isAlone {
          file.setMode()
          // On a full disk the text stays empty, and no other process takes a share until the text says "shared". An existing store can
          // still be read. An old text that could not be replaced may say "shared", so it is an error.
          if let number = write(.opening, file), file.note.use != nil { throw .system("write", number, file: path) }
        } else if file.note.use != .shared {
          // The text does not say "shared", so the process that had the lock alone has ended. The next attempt may get the lock alone.
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
    // The text is written before the lock is downgraded, because a process that gets its share during the downgrade must find the text
    // "shared".
    if let number = file.write(.shared) { throw .system("write", number, file: file.path) }
    // `isAlone` is cleared before the downgrade: if the downgrade fails, this process has lost its exclusive lock and must not count as
    // alone.
    hold.withLock { $0.isAlone = false }
    // `flock` releases the exclusive lock before it takes the shared one, so another process may lock the file exclusively in between.
    var patience = Patience(file.path, timeout)
    while try !file.takeLock(LOCK_SH) { try patience.wait(file.note) }
  }

  func reclaim() -> Bool {
    hold.withLock { hold in
      guard let file = hold.file else { return false }
      if !hold.isAlone {
        // An error of `flock` is ignored: like a refusal, it means that this process is not alone.
        do { hold.isAlone = try file.takeLock(LOCK_EX) } catch {}
        // The text no longer says "shared", so a process that opened the lock file before its removal waits and takes no share.
        if hold.isAlone { file.write(.closing) }
      }
      return hold.isAlone
    }
  }

  func release() {
    LockFile.registry.withLock { held in
      // Only a holder that is alone removes the file. If the lock file were removed while other holders have shares, the next process would
      // create another lock file and lock that file exclusively.
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

    /// Sleeps 2 ms, so that a process that has the lock alone can call `share()`.
    ///
    /// - Throws: `.locked` after the deadline, or after 250 ms of an exclusive holder, which never shares its lock.
    mutating func wait(_ note: LockNote) throws(RepositoryError) {
      let now = ContinuousClock.now
      // A new holder takes the lock before it writes the text, so the text may still name the previous, exclusive holder for a moment.
      exclusiveSince = note.use == .exclusive ? exclusiveSince ?? now : nil
      let isExclusive = exclusiveSince.map { now - $0 >= .milliseconds(250) } ?? false
      if isExclusive || now >= deadline { throw RepositoryError(.locked, note.holder, file: path) }
      usleep(2_000)
    }
  }
}
