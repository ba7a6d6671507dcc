public import Foundation
public import Larder

/// A clock whose wall time is given, while what runs goes on.
public struct DateClock: WallClock {
  private let date: @Sendable () -> Date
  private let system = SystemClock()

  /// Makes a clock that shows what a function returns.
  public init(_ date: @escaping @Sendable () -> Date) { self.date = date }

  /// The given time.
  public var now: Date { date() }

  /// The time since some moment, which always goes on.
  public var uptime: Duration { system.uptime }

  /// Waits for a duration of real time.
  public func sleep(for duration: Duration) async throws { try await system.sleep(for: duration) }
}
