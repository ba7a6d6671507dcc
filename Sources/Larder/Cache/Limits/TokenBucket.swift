internal import Foundation
internal import Synchronization

/// A token bucket, a quota that refills evenly up to its capacity.
///
/// Share one bucket among all requests that count against one quota. Within one refill period, callers may use all tokens of a full bucket
/// and all tokens that refill it, which is up to twice the capacity. If a provider counts a quota by the minutes of the clock, make a
/// bucket of two fifths of the provider's number. With a bucket of two fifths of the quota, callers use at most four fifths of the quota in
/// any minute.
public final class TokenBucket: Sendable {
  private struct State {
    /// Number of tokens in the bucket, which may be negative.
    ///
    /// The number of tokens is negative after a caller has taken tokens that it still waits for, or a weight above the capacity.
    var tokens: Double
    var filledAt: Duration
  }

  /// Number of tokens in a full bucket, from 0 to 10¹².
  ///
  /// A bucket of capacity 0 refuses every request with a weight above 0.
  public let capacity: Double
  /// Longest time that ``take(_:)`` waits for tokens.
  ///
  /// The default wait is zero, so that ``take(_:)`` throws at once if the quota is spent.
  public let maximumWait: Duration
  private let rate: Double
  private let clock: any WallClock
  private let state: Mutex<State>

  /// Makes a full bucket that refills in `period`.
  ///
  /// An argument outside its range is moved to the nearest end of the range, and `NaN` counts as 0.
  public init(_ capacity: Double, per period: Duration, maximumWait: Duration = .zero, clock: any WallClock = SystemClock()) {
    self.capacity = capacity.isNaN ? 0 : min(max(capacity, 0), Self.heaviest)
    self.maximumWait = maximumWait.bounded
    self.clock = clock
    rate = self.capacity / max(period.bounded.inSeconds, 1e-9)
    state = Mutex(State(tokens: self.capacity, filledAt: clock.uptime))
  }

  /// Weight that could be taken now, which is 0 while callers wait for tokens.
  public var available: Double {
    let now = clock.uptime
    return max(state.withLock { fill(&$0, now) }, 0)
  }

  /// Largest capacity of a bucket, and largest weight of a request.
  ///
  /// A `Double` could not represent numbers of tokens above 10¹² with enough precision.
  private static let heaviest = 1e12

  /// Takes tokens, and waits for missing ones if the wait is at most ``maximumWait``.
  ///
  /// A weight above the capacity is let through when the bucket is full, and later callers wait until the missing tokens have refilled. A
  /// caller whose wait is cancelled gives its tokens back. A weight below 0 counts as 0.
  /// - Throws: ``CacheError/quotaExceeded(until:)``, with `.distantFuture` if the bucket has no capacity or if the weight is above 10¹²
  ///   or `NaN`. `CancellationError` if the task is cancelled while it waits.
  public func take(_ weight: Double = 1) async throws {
    // `weight <= Self.heaviest` is false for a weight of NaN, too, which would make the number of tokens NaN for good.
    guard weight <= Self.heaviest, capacity > 0 || weight <= 0 else { throw CacheError.quotaExceeded(until: .distantFuture) }
    let weight = max(weight, 0)
    let wait = try reserve(weight)
    guard wait > .zero else { return }
    do {
      try await clock.sleep(for: wait)
    } catch {
      giveBack(weight)
      throw error
    }
  }

  /// Puts back the tokens of a request that was not sent.
  func giveBack(_ weight: Double) {
    let now = clock.uptime
    let weight = max(weight, 0)
    state.withLock { state in
      fill(&state, now)
      state.tokens = min(state.tokens + weight, capacity)
    }
  }

  /// Takes tokens, and returns the time until the bucket has refilled enough to cover them.
  private func reserve(_ weight: Double) throws -> Duration {
    let now = clock.uptime
    let wait: Duration = state.withLock { state in
      fill(&state, now)
      // A weight above the capacity is let through when the bucket is full. If the caller waited until the bucket held the whole weight,
      // the wait would never end, since the bucket never holds more tokens than its capacity.
      let missing = min(weight, capacity) - state.tokens
      let wait = missing > 0 ? Duration(bounding: missing / rate) : .zero
      // A caller that waits takes its tokens now, so that the next caller waits behind it.
      if wait <= maximumWait { state.tokens -= weight }
      return wait
    }
    guard wait <= maximumWait else { throw CacheError.quotaExceeded(until: clock.now.addingTimeInterval(wait.inSeconds)) }
    return wait
  }

  /// Adds the tokens that have refilled since the last call, and returns the number of tokens.
  @discardableResult private func fill(_ state: inout State, _ now: Duration) -> Double {
    let passed = max((now - state.filledAt).inSeconds, 0)
    state.tokens = min(state.tokens + passed * rate, capacity)
    // `filledAt` never moves back, since two callers may read the clock in one order and lock in the other. If `filledAt` moved back, the
    // same time would fill the bucket twice.
    state.filledAt = max(now, state.filledAt)
    return state.tokens
  }
}
