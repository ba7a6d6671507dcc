public import Foundation

/// The clock of a cache: the wall clock, a monotonic clock, and a way to sleep.
///
/// The wall clock dates stored values, and the user or the network may set it at any moment. The monotonic clock counts the time that
/// passes in this process and is never set. In tests use `ManualClock` of `LarderTesting`, which stands still until you move it.
public protocol WallClock: Sendable {
  /// The current date and time of day by the wall clock.
  var now: Date { get }
  /// The time since some fixed moment by the monotonic clock, which also counts while the device sleeps.
  var uptime: Duration { get }
  /// Returns when a time has passed by ``uptime``.
  ///
  /// - Throws: `CancellationError` as soon as the task is cancelled.
  func sleep(for duration: Duration) async throws
}

extension WallClock {
  /// Runs an action when some time has passed, unless the returned task is cancelled before.
  func after(_ time: Duration, _ action: @escaping @Sendable () -> Void) -> Task<Void, Never> {
    Task {
      // `sleep` throws if the task is cancelled, and a cancelled wait must not run the action.
      do { try await sleep(for: time) } catch { return }
      action()
    }
  }
}

/// The clocks of the system.
public struct SystemClock: WallClock {
  // `ContinuousClock` also counts while the device sleeps, and `SuspendingClock` does not.
  private static let start = ContinuousClock.now

  /// Makes the clock, which is equal to every other system clock.
  public init() {}

  /// The date and time of day, as the user or the network has set it.
  public var now: Date { Date() }
  /// The time since the clock was first used in this process, which also counts while the device sleeps.
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
  /// The duration in seconds, rounded to the precision of a `Double`.
  package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
