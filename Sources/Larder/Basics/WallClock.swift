public import Foundation

/// The time for a cache: the wall clock, a monotonic clock, and waiting.
///
/// The wall clock dates what is stored, and may be set at any moment. The monotonic one counts what passes in this
/// process and is never set. `ManualClock` of `LarderTesting` stands still until a test moves it.
public protocol WallClock: Sendable {
  /// The date and time of day.
  var now: Date { get }
  /// The time since some fixed moment, sleep of the device included.
  var uptime: Duration { get }
  /// Returns when as much time has passed by ``uptime``.
  ///
  /// - Throws: `CancellationError` as soon as the task is cancelled.
  func sleep(for duration: Duration) async throws
}

extension WallClock {
  /// Runs an action when some time has passed, unless the task is cancelled before.
  func after(_ time: Duration, _ action: @escaping @Sendable () -> Void) -> Task<Void, Never> {
    Task {
      do { try await sleep(for: time) } catch { return }
      action()
    }
  }
}

/// The clocks of the system.
public struct SystemClock: WallClock {
  private static let start = ContinuousClock.now

  /// Makes the clock; all are the same.
  public init() {}

  /// The date and time of day, as the user or the network has set it.
  public var now: Date { Date() }
  /// The time since the clock was first used in this process, sleep of the device included.
  public var uptime: Duration { Self.start.duration(to: .now) }

  /// Suspends the task; for a hundred years at the longest.
  ///
  /// - Throws: `CancellationError`.
  public func sleep(for duration: Duration) async throws {
    try await ContinuousClock().sleep(for: duration.bounded)
  }
}

extension Duration {
  /// The duration in seconds, rounded to what a `Double` holds.
  package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
