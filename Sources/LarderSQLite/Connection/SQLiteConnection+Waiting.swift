internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// How a connection waits while another one writes: a short sleep at a time, on the store's own thread.
///
/// A commit takes some hundred microseconds, so that is how long one step is; random, so that several that wait do not move in step.
enum SQLiteWait {
  /// Now, in nanoseconds of a clock that only grows.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  static func nanoseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return min(max(seconds, 0), 1_000_000) * 1_000_000_000 + max(attoseconds, 0) / 1_000_000_000
  }

  /// Sleeps 0.1 to 1 ms; after a second of waiting up to 5 ms, because then somebody holds the lock who is in no hurry.
  static func pause(after count: Int32) {
    usleep(.random(in: 100...(count < 2_000 ? 1_000 : 5_000)))
  }
}
