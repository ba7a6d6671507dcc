internal import CSQLite
internal import Foundation
internal import Larder
internal import Synchronization

extension SQLiteConnection {
  /// Runs a body that waits for other writers at most as long as the timeout, in short sleeps on the store's own thread.
  ///
  /// SQLite's own busy handler sleeps longer the longer it has waited, so that a new arrival overtakes it again and again. A commit takes
  /// some hundred microseconds, so that is the length of one sleep here; it is random, so that several waiters do not move in step.
  func waiting<Result>(_ timeout: Duration, _ body: () throws(RepositoryError) -> Result) throws(RepositoryError) -> Result {
    let (seconds, attoseconds) = timeout.components
    let nanoseconds = min(max(seconds, 0), 1_000_000) * 1_000_000_000 + max(attoseconds, 0) / 1_000_000_000  // Int64
    wait.deadline.store(SQLiteConnection.uptime + nanoseconds, ordering: .relaxed)
    let wait = wait
    sqlite3_busy_handler(
      handle,
      { context, count in
        guard let context else { return 0 }
        let wait = Unmanaged<SQLiteWait>.fromOpaque(context).takeUnretainedValue()
        guard !wait.isOver else { return 0 }
        // After about a second the lock is held for long, and looking less often costs nothing.
        usleep(.random(in: 100...(count < 2_000 ? 1_000 : 5_000)))
        return 1
      }, Unmanaged.passUnretained(wait).toOpaque())
    defer {
      sqlite3_busy_timeout(handle, wait.isEnded.load(ordering: .relaxed) ? 0 : Self.busyTimeout)
      withExtendedLifetime(wait) {}
    }
    return try body()
  }

  /// Lets no statement wait for a lock any more.
  func stopWaiting() { sqlite3_busy_timeout(handle, 0) }

  /// The nanoseconds of a clock that only grows.
  fileprivate static var uptime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// A wait for other writers, which another thread may end.
final class SQLiteWait: Sendable {
  /// The end of the wait, in nanoseconds of uptime.
  let deadline = Atomic<Int64>(0)
  /// Whether no wait is allowed, because the store is about to be suspended.
  let isEnded = Atomic(false)

  var isOver: Bool {
    isEnded.load(ordering: .relaxed) || SQLiteConnection.uptime >= deadline.load(ordering: .relaxed)
  }
}
