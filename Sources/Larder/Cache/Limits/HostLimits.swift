/// The limits that all requests to one host share: of concurrency, of quotas, and of failures.
///
/// Make one for a host, and give it to every source that talks to that host, whatever its types:
///
/// ```swift
/// let host = HostLimits(
///   concurrency: ConcurrencyLimit(4), quotas: [TokenBucket(480, per: .seconds(60)), TokenBucket(8_000, per: .hours(24))],
///   breaker: CircuitBreaker())
/// ```
public struct HostLimits: Sendable {
  /// The limit of requests that run at a time; `nil` for none.
  public let concurrency: ConcurrencyLimit?
  /// The quotas that each request counts against.
  public let quotas: [TokenBucket]
  /// The breaker that stops requests to a host that fails; `nil` for none.
  public let breaker: CircuitBreaker?

  /// Makes limits of parts that may be shared.
  public init(concurrency: ConcurrencyLimit? = nil, quotas: [TokenBucket] = [], breaker: CircuitBreaker? = nil) {
    self.concurrency = concurrency
    self.quotas = quotas
    self.breaker = breaker
  }

  /// Runs a request within the limits.
  ///
  /// It waits for its turn first; the breaker and the quotas are asked when it would really be made, so that what has
  /// waited behind failures is not sent after them. A task that is cancelled makes no request.
  /// - Parameters:
  ///   - weight: What it counts against the quotas.
  ///   - request: What is run, at most once.
  /// - Throws: ``CacheError/circuitOpen(until:)``, ``CacheError/quotaExceeded(until:)``, `CancellationError`; else what the request throws.
  public func run<Result>(weight: Double = 1, _ request: () async throws -> Result) async throws -> Result {
    try Task.checkCancellation()
    // A key that waits here holds up no group: the others might be what it waits for.
    FetchTicket.current?.giveUp()
    guard let concurrency else { return try await runAdmitted(weight, request) }
    return try await concurrency.withPermit { try await runAdmitted(weight, request) }
  }

  /// Runs a request within the quotas and the breaker; its turn has come already.
  func runAdmitted<Result>(_ weight: Double, _ request: () async throws -> Result) async throws -> Result {
    try Task.checkCancellation()
    var taken: [TokenBucket] = []
    let admission: CircuitBreaker.Admission?
    do {
      for quota in quotas {
        try await quota.take(weight)
        taken.append(quota)
      }
      admission = try breaker?.admit()
    } catch {
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
  ///   - limits: Those of the host, shared by all its sources.
  ///   - weight: What a fetch of a key counts against the quotas: 1 unless given.
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
