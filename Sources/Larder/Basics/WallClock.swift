public import Foundation

/// The time source of a cache: the wall clock, a monotonic clock, and a way to sleep.
///
/// The cache dates stored values by the wall clock, which the user or the network may set at any moment. The monotonic clock counts the
/// time that passes in this process and is never set. In tests use `ManualClock` of `LarderTesting`, which stands still until you move it.
public protocol WallClock: Sendable {
  /// The current date and time of day by the wall clock.
  var now: Date { get }
  /// The time since some fixed moment by the monotonic clock, including the time that the device has slept.
  var uptime: Duration { get }
  /// Suspends the task until a duration has passed by the monotonic clock of ``uptime``.
  ///
  /// - Throws: `CancellationError` as soon as the task is cancelled.
  func sleep(for duration: Duration) async throws
}

extension WallClock {
  /// Runs an action after the given time, unless the returned task is cancelled before.
  func after(_ time: Duration, _ action: @escaping @Sendable () -> Void) -> Task<Void, Never> {
    Task {
      // `sleep` throws if the task is cancelled, and a cancelled wait must not run the action.
      do { try await sleep(for: time) } catch { return }
      action()
    }
  }
}

/// The wall clock and the monotonic clock of the system.
public struct SystemClock: WallClock {
  // `ContinuousClock` also counts while the device sleeps, and `SuspendingClock` does not.
  private static let start = ContinuousClock.now

  /// Makes a system clock, which shows the same times as every other system clock.
  public init() {}

  /// The present date and time of day, as the user or the network has set the wall clock.
  public var now: Date { Date() }
  /// The time since a system clock was first used in this process, including the time that the device has slept.
  public var uptime: Duration { Self.start.duration(to: .now) }

  /// Suspends the task for a duration, but at most for a hundred years.
  ///
  /// - Throws: `CancellationError`.
  public func sleep(for duration: Duration) async throws {
    // An app's policy may give a duration so long that the deadline of the sleep would overflow.
    try await ContinuousClock().sleep(for: duration.bounded)
  }
}

extension Duration {
  /// This duration in seconds, rounded to the precision of a `Double`.
  package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
