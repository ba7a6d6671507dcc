// Limits/ keeps requests within the limits of a host: concurrency, quotas, and a circuit breaker. The main type is `HostLimits`.
// Invariant: A request that is refused or cancelled before it is sent uses up no quota.
// Called by `GatheredSource`, by limited sources, and by apps.

internal import Foundation
internal import Synchronization

/// Limits that all requests to one host share: the number of concurrent requests, quotas, and a circuit breaker.
///
/// Make one `HostLimits` for each host, and give it to every source that sends requests to that host, also to sources of different types:
///
/// ```swift
/// let host = HostLimits(
///   concurrency: ConcurrencyLimit(4), quotas: [TokenBucket(480, per: .seconds(60)), TokenBucket(8_000, per: .hours(24))],
///   breaker: CircuitBreaker())
/// ```
public struct HostLimits: Sendable {
  /// Limit of concurrent requests, or `nil` for none.
  public let concurrency: ConcurrencyLimit?
  /// Quotas that each request counts against.
  public let quotas: [TokenBucket]
  /// Circuit breaker of the host, or `nil` for none.
  public let breaker: CircuitBreaker?

  /// Makes limits from a concurrency limit, quotas and a circuit breaker, each of which other limits may share.
  public init(concurrency: ConcurrencyLimit? = nil, quotas: [TokenBucket] = [], breaker: CircuitBreaker? = nil) {
    self.concurrency = concurrency
    self.quotas = quotas
    self.breaker = breaker
  }

  /// Runs a request within the limits of the host.
  ///
  /// The request first waits for a permit of ``concurrency``. Quotas and breaker are checked after the wait for the permit, so that no
  /// request is sent if the breaker opens meanwhile. If the task is cancelled before the request begins, no request is sent.
  /// - Parameters:
  ///   - weight: Weight of the request, which counts against the quotas.
  ///   - request: Closure that sends the request. `run` calls the closure at most once.
  /// - Throws: ``CacheError/circuitOpen(until:)``, ``CacheError/quotaExceeded(until:)``, `CancellationError`, or else the error of the
  ///   request.
  public func run<Result>(weight: Double = 1, _ request: () async throws -> Result) async throws -> Result {
    try Task.checkCancellation()
    // A key that is fetched in a ``FetchGroup`` leaves the group before `run` waits for a permit. If the key stayed in the group, it could
    // wait for a permit that another key of the group holds, while the request of that other key waits for the whole group.
    FetchTicket.current?.giveUp()
    guard let concurrency else { return try await runAdmitted(weight, request) }
    return try await concurrency.withPermit { try await runAdmitted(weight, request) }
  }

  /// Runs a request that has a permit of the concurrency limit within the quotas and the circuit breaker.
  func runAdmitted<Result>(_ weight: Double, _ request: () async throws -> Result) async throws -> Result {
    // The task may have been cancelled while it waited for a permit.
    try Task.checkCancellation()
    var taken: [TokenBucket] = []
    let admission: CircuitBreaker.Admission?
    do {
      for quota in quotas {
        try await quota.take(weight)
        taken.append(quota)
      }
      // The breaker is checked after the quotas. If the breaker were checked first, the probe (the one request that a half-open breaker
      // admits) could wait for a quota, and would keep all other requests out during that wait.
      admission = try breaker?.admit()
    } catch {
      // A request that the breaker or a later quota refuses is not sent, so the tokens that it has taken go back to the quotas.
      for quota in taken { quota.giveBack(weight) }
      throw error
    }
    guard let breaker, let admission else { return try await request() }
    return try await breaker.run(admission, request)
  }
}

extension RemoteSource {
  /// Returns a source that fetches from this source within the limits of its host.
  ///
  /// Each attempt of a fetch counts against the limits, retries included.
  /// - Parameters:
  ///   - limits: Limits of the host, shared by all its sources.
  ///   - weight: Weight of a key's fetch, which counts against the quotas. The default weight of a fetch is 1.
  public func limited(
    by limits: HostLimits, weight: @escaping @Sendable (Key) -> Double = { _ in 1 }
  ) -> some RemoteSource<Key, Value> {
    LimitedSource(source: self, limits: limits, weight: weight)
  }
}

private struct LimitedSource<Source: RemoteSource>: RemoteSource {
  let source: Source
  let limits: HostLimits
  let weight: @Sendable (Source.Key) -> Double

  func fetch(_ key: Source.Key, validator: String?) async throws -> Fetched<Source.Value> {
    try await limits.run(weight: weight(key)) { try await source.fetch(key, validator: validator) }
  }
}

/// A limit of concurrent operations.
///
/// Operations beyond the limit wait, and begin in the order of their calls.
///
/// ```swift
/// let limit = ConcurrencyLimit(4)
/// let page = try await limit.withPermit { try await download(url) }
/// ```
///
/// Share one `ConcurrencyLimit` among all requests to a host. A task that is cancelled while it waits for a permit leaves the queue at
/// once. The cost of a permit does not depend on the number of waiting tasks.
public final class ConcurrencyLimit: Sendable {
  /// Number of operations that may run at a time.
  public let limit: Int
  let semaphore: AsyncSemaphore

  /// Makes a limit of the number of concurrent operations.
  ///
  /// A concurrency limit below 1 becomes 1.
  public init(_ limit: Int) {
    self.limit = max(limit, 1)
    semaphore = AsyncSemaphore(self.limit)
  }

  /// Runs an operation when a permit is free, and releases the permit when the operation returns or throws.
  ///
  /// - Throws: `CancellationError` if the task is cancelled while it waits, or else the error of the operation.
  public func withPermit<Result>(_ operation: () async throws -> Result) async throws -> Result {
    guard await semaphore.acquireUnlessCancelled() else { throw CancellationError() }
    defer { semaphore.release() }
    return try await operation()
  }

  /// Number of operations that wait for a permit.
  public var waitingCount: Int { semaphore.waitingCount }
}

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
