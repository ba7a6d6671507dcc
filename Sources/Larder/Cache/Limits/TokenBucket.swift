internal import Foundation
internal import Synchronization

/// A token bucket, a quota that refills evenly up to its capacity.
///
/// Share one bucket among all requests that count against one quota. A full bucket, and the tokens that refill it meanwhile, may be used in
/// one period: twice the capacity. If a provider counts a quota by the minutes of the clock, make a bucket of two fifths of its number. At
/// most four fifths of the quota are then used in any minute.
public final class TokenBucket: Sendable {
  private struct State {
    /// Tokens in the bucket, below zero if waiting callers were promised more than there are.
    var tokens: Double
    var filledAt: Duration
  }

  /// Largest weight that may be taken at once, from 0, which lets nothing through, to 10¹².
  public let capacity: Double
  /// Longest wait for tokens.
  ///
  /// Zero by default, so that a spent quota is an error at once.
  public let maximumWait: Duration
  private let rate: Double
  private let clock: any WallClock
  private let state: Mutex<State>

  /// Makes a full bucket that refills in `period`.
  ///
  /// A value outside its range is moved to the nearest end, and `NaN` counts as 0.
  public init(_ capacity: Double, per period: Duration, maximumWait: Duration = .zero, clock: any WallClock = SystemClock()) {
    self.capacity = capacity.isNaN ? 0 : min(max(capacity, 0), Self.heaviest)
    self.maximumWait = maximumWait.bounded
    self.clock = clock
    rate = self.capacity / max(period.bounded.inSeconds, 1e-9)
    state = Mutex(State(tokens: self.capacity, filledAt: clock.uptime))
  }

  /// Weight that could be taken now, which is 0 while callers wait.
  public var available: Double {
    let now = clock.uptime
    return max(state.withLock { fill(&$0, now) }, 0)
  }

  /// Largest weight.
  ///
  /// A `Double` could not count larger debts exactly.
  private static let heaviest = 1e12

  /// Takes tokens, and waits for them if the bucket allows it.
  ///
  /// A weight above the capacity is let through when the bucket is full, and paid off afterwards. A cancelled wait gives its tokens back. A
  /// weight below 0 counts as 0.
  /// - Throws: ``CacheError/quotaExceeded(until:)``, with `.distantFuture` if the bucket has no capacity or if the weight is above 10¹²
  ///   or `NaN`. `CancellationError`.
  public func take(_ weight: Double = 1) async throws {
    // The comparison also refuses NaN, which would make the tokens NaN for good.
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

  /// Takes tokens now, and returns the wait until they are there.
  private func reserve(_ weight: Double) throws -> Duration {
    let now = clock.uptime
    let wait: Duration = state.withLock { state in
      fill(&state, now)
      // At most the capacity: a larger weight goes through when the bucket is full, or it would wait forever.
      let missing = min(weight, capacity) - state.tokens
      let wait = missing > 0 ? Duration(bounding: missing / rate) : .zero
      // Also for a caller that waits: the next one then waits behind it.
      if wait <= maximumWait { state.tokens -= weight }
      return wait
    }
    guard wait <= maximumWait else { throw CacheError.quotaExceeded(until: clock.now.addingTimeInterval(wait.inSeconds)) }
    return wait
  }

  /// Adds the tokens of the time since the last call, and returns the number of tokens.
  @discardableResult private func fill(_ state: inout State, _ now: Duration) -> Double {
    let passed = max((now - state.filledAt).inSeconds, 0)
    state.tokens = min(state.tokens + passed * rate, capacity)
    // Never back: two callers may read the clock in one order and lock in the other.
    state.filledAt = max(now, state.filledAt)
    return state.tokens
  }
}
