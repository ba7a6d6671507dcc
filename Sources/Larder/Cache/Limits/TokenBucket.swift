internal import Foundation
internal import Synchronization

/// A quota that fills up evenly: so much weight in a time, and no more than that at once.
///
/// Share one among everything that counts against one quota. A full bucket and what fills it meanwhile may go through in one period: twice
/// the capacity. So keep to a quota that a provider counts by the clock's minute with a bucket of two fifths of its number: at most four
/// fifths of it are then used in any minute.
public final class TokenBucket: Sendable {
  private struct State {
    /// Below zero by what was promised to waiting callers.
    var tokens: Double
    var filledAt: Duration
  }

  /// The weight that may be taken at once when nothing was taken for a while: from 0, which lets nothing through, to 10¹².
  public let capacity: Double
  /// The longest wait for tokens: with none, the default, a spent quota is an error at once.
  public let maximumWait: Duration
  private let rate: Double
  private let clock: any WallClock
  private let state: Mutex<State>

  /// Makes a full bucket that fills from empty in `period`; values outside their range are moved to its end, and no number is 0.
  public init(_ capacity: Double, per period: Duration, maximumWait: Duration = .zero, clock: any WallClock = SystemClock()) {
    self.capacity = capacity.isNaN ? 0 : min(max(capacity, 0), Self.heaviest)
    self.maximumWait = maximumWait.bounded
    self.clock = clock
    rate = self.capacity / max(period.bounded.inSeconds, 1e-9)
    state = Mutex(State(tokens: self.capacity, filledAt: clock.uptime))
  }

  /// The weight that could be taken now; 0 while others wait.
  public var available: Double {
    let now = clock.uptime
    return max(state.withLock { fill(&$0, now) }, 0)
  }

  /// No weight is larger: with more, what is owed could not be counted any more.
  private static let heaviest = 1e12

  /// Takes tokens, waiting for them if the bucket allows it.
  ///
  /// A weight above the capacity is let through when the bucket is full, and then paid off. A cancelled wait gives its tokens back.
  /// - Throws: ``CacheError/quotaExceeded(until:)``, for ever (`.distantFuture`) when the bucket has no capacity, or
  ///   when the weight is above 10¹² or no number; `CancellationError`. A weight below 0 counts as 0.
  public func take(_ weight: Double = 1) async throws {
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

  /// Puts back what was taken for a request that was then not made.
  func giveBack(_ weight: Double) {
    let now = clock.uptime
    let weight = max(weight, 0)
    state.withLock { state in
      fill(&state, now)
      state.tokens = min(state.tokens + weight, capacity)
    }
  }

  /// Takes the tokens now, and returns how long to wait until they are there.
  private func reserve(_ weight: Double) throws -> Duration {
    let now = clock.uptime
    let wait: Duration = state.withLock { state in
      fill(&state, now)
      let missing = min(weight, capacity) - state.tokens
      let wait = missing > 0 ? Duration(bounding: missing / rate) : .zero
      if wait <= maximumWait { state.tokens -= weight }
      return wait
    }
    guard wait <= maximumWait else { throw CacheError.quotaExceeded(until: clock.now.addingTimeInterval(wait.inSeconds)) }
    return wait
  }

  @discardableResult private func fill(_ state: inout State, _ now: Duration) -> Double {
    let passed = max((now - state.filledAt).inSeconds, 0)
    state.tokens = min(state.tokens + passed * rate, capacity)
    state.filledAt = max(now, state.filledAt)
    return state.tokens
  }
}
