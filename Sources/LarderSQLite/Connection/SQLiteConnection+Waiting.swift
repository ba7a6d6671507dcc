internal import CSQLite
internal import Foundation
internal import Larder

extension SQLiteConnection {
  /// Runs a body that waits for other writers at most as long as the timeout, in short sleeps on the store's own thread.
  ///
  /// SQLite's own busy handler sleeps longer the longer it has waited, so that a new arrival overtakes it again and again. A commit takes
  /// some hundred microseconds, so that is the length of one sleep here; it is random, so that several waiters do not move in step.
  func waiting<Result>(_ timeout: Duration, _ body: () throws(RepositoryError) -> Result) throws(RepositoryError) -> Result {
    let (seconds, attoseconds) = timeout.components
    let nanoseconds = min(max(seconds, 0), 1_000_000) * 1_000_000_000 + max(attoseconds, 0) / 1_000_000_000
    waitDeadline.pointee = SQLiteConnection.uptime + nanoseconds
    sqlite3_busy_handler(
      handle,
      { context, count in
        guard let deadline = context?.load(as: Int64.self), SQLiteConnection.uptime < deadline else { return 0 }
        // After about a second the lock is held for long, and looking less often costs nothing.
        usleep(.random(in: 100...(count < 2_000 ? 1_000 : 5_000)))
        return 1
      }, waitDeadline)
    defer { sqlite3_busy_timeout(handle, Self.busyTimeout) }
    return try body()
  }

  /// The nanoseconds of a clock that only grows.
  private static var uptime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
