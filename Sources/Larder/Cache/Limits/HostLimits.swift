// Limits/ keeps requests within the limits of a host: concurrency, quotas, and a circuit breaker. Its main type is `HostLimits`.
// Invariant: A request that is refused or cancelled before it is sent uses up no quota.
// Called by `GatheredSource`, by limited sources, and by apps.

/// Limits that all requests to one host share: the number of concurrent requests, quotas, and a circuit breaker.
///
/// Make one for each host, and give it to every source that sends requests to that host, also to sources of different types:
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

  /// Makes limits from parts, which other limits may share.
  public init(concurrency: ConcurrencyLimit? = nil, quotas: [TokenBucket] = [], breaker: CircuitBreaker? = nil) {
    self.concurrency = concurrency
    self.quotas = quotas
    self.breaker = breaker
  }

  /// Runs a request within the limits.
  ///
  /// The request first waits for its turn. Quotas and breaker are checked just before it is sent, so that a request that waited behind
  /// failures is not sent after them. A cancelled task sends no request.
  /// - Parameters:
  ///   - weight: Weight of the request, which counts against the quotas.
  ///   - request: The request. It is called at most once.
  /// - Throws: ``CacheError/circuitOpen(until:)``, ``CacheError/quotaExceeded(until:)``, `CancellationError`, or else the error of the
  ///   request.
  public func run<Result>(weight: Double = 1, _ request: () async throws -> Result) async throws -> Result {
    try Task.checkCancellation()
    // The other keys of its group must not wait for this one, because it may wait here for one of them.
    FetchTicket.current?.giveUp()
    guard let concurrency else { return try await runAdmitted(weight, request) }
    return try await concurrency.withPermit { try await runAdmitted(weight, request) }
  }

  /// Runs a request within the quotas and the breaker, after its turn has come.
  func runAdmitted<Result>(_ weight: Double, _ request: () async throws -> Result) async throws -> Result {
    // The task may have been cancelled while it waited for its turn.
    try Task.checkCancellation()
    var taken: [TokenBucket] = []
    let admission: CircuitBreaker.Admission?
    do {
      for quota in quotas {
        try await quota.take(weight)
        taken.append(quota)
      }
      // After the quotas, since taking from a quota may wait, and a probe that waits would keep all other requests out.
      admission = try breaker?.admit()
    } catch {
      // A request that is not sent uses up no quota.
      for quota in taken { quota.giveBack(weight) }
      throw error
    }
    guard let breaker, let admission else { return try await request() }
    return try await breaker.run(admission, request)
  }
}

extension RemoteSource {
  /// Returns this source within the limits of its host.
  ///
  /// Each attempt counts, retries included.
  /// - Parameters:
  ///   - limits: Limits of the host, shared by all its sources.
  ///   - weight: Weight of a key's fetch, which counts against the quotas. 1 by default.
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
/// Further operations wait, in the order in which they came.
///
/// ```swift
/// let limit = ConcurrencyLimit(4)
/// let page = try await limit.withPermit { try await download(url) }
/// ```
///
/// Share one limit among all requests to a host. A task that is cancelled while it waits leaves the queue at once. The cost is constant.
public final class ConcurrencyLimit: Sendable {
  /// Number of operations that may run at a time.
  public let limit: Int
  let semaphore: AsyncSemaphore

  /// Makes a limit.
  ///
  /// A number below 1 becomes 1.
  public init(_ limit: Int) {
    self.limit = max(limit, 1)
    semaphore = AsyncSemaphore(self.limit)
  }

  /// Runs an operation when a permit is free, and returns the permit however the operation ends.
  ///
  /// - Throws: `CancellationError` if the task is cancelled while it waits, or else the error of the operation.
  public func withPermit<Result>(_ operation: () async throws -> Result) async throws -> Result {
    guard await semaphore.acquireUnlessCancelled() else { throw CancellationError() }
    defer { semaphore.release() }
    return try await operation()
  }

  /// Number of operations that wait.
  public var waitingCount: Int { semaphore.waitingCount }
}
