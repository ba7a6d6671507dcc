public import Foundation
public import Larder

/// A clock with an injected wall time, whose uptime and waits are real.
public struct DateClock: WallClock {
  private let date: @Sendable () -> Date
  // Timeouts measure uptime and wait in real time. A fixed date must not stop them.
  private let system = SystemClock()

  /// Creates a clock that calls a function for its wall time.
  public init(_ date: @escaping @Sendable () -> Date) { self.date = date }

  /// Injected wall time.
  public var now: Date { date() }

  /// Monotonic time of the system clock.
  public var uptime: Duration { system.uptime }

  /// Waits for a duration of real time.
  public func sleep(for duration: Duration) async throws { try await system.sleep(for: duration) }
}
