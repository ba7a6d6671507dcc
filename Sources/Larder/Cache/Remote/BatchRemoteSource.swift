/// A source that fetches several keys in one request.
///
/// ```swift
/// nonisolated struct Forecasts: BatchRemoteSource {
///   let get: @Sendable ([String]) async throws -> [String: Forecast]
///   var maxKeysPerRequest: Int { 50 }
///
///   func fetch(_ requests: [FetchRequest<String>]) async throws -> [String: Result<Fetched<Forecast>, any Error>] {
///     let found = try await get(requests.map(\.key))
///     return found.mapValues { .success(.value($0)) }
///   }
/// }
/// ```
///
/// A ``CachedRepository`` over a `BatchRemoteSource` gathers waiting keys into requests. The keys of one call of
/// ``CachedRepository/values(for:policy:maxConcurrentFetches:)`` or ``CachedRepository/prefetch(_:)`` share requests. Keys that wait
/// because the limit of concurrent requests is reached share requests too, and so do keys that failed in one request and are retried. A key
/// that waits alone is fetched alone. The cache never delays a request by a timer to gather more keys.
///
/// Apart from the shared request, a cache treats keys that share a request like keys that are fetched one by one. Callers of a key share
/// its fetch. Each key has its own count of attempts and its own `Retry-After`. A cancelled caller leaves at once, and a request is
/// cancelled when the callers of all its keys have left. Limit the requests with ``limited(by:)``, where a request counts once against the
/// limits, however many keys it has. Several caches share requests through one ``GatheredSource``.
public protocol BatchRemoteSource<Key, Value>: RemoteSource {
  /// Type of the keys, each of which identifies a value.
  associatedtype Key
  /// Type of the fetched values.
  associatedtype Value

  /// Largest number of keys in one request, which is at least 1 and by default 100.
  var maxKeysPerRequest: Int { get }

  /// Returns whether one request may fetch both of two keys.
  ///
  /// By default, any two keys may share a request.
  ///
  /// The cache calls `canShareRequest` for each waiting key, with the first key of the request. `canShareRequest` must be quick, and must
  /// always return the same for the same keys.
  func canShareRequest(_ key: Key, _ other: Key) -> Bool

  /// Returns the weight of a request, which counts against the quotas of ``HostLimits`` and is 1 by default.
  func requestWeight(of keys: [Key]) -> Double

  /// Fetches the values of several keys.
  ///
  /// The cache calls `fetch(_:)` away from every actor, possibly several times at once, and never with the same key twice in one call.
  /// - Parameter requests: The keys, at least one and at most ``maxKeysPerRequest``, each with the validator of its stored value.
  /// - Returns: A result for each requested key. A key whose result is a failure fails alone, and a key without a result fails with
  ///   ``CacheError/unanswered``. If all keys fail, the request counts as failed for the circuit breaker, with the first key's error.
  /// - Throws: Any error, with which every key of the request fails. If the error's ``RemoteSourceError/mayConcernOneKey`` is `true`, no
  ///   key fails with the error at once, and the keys are fetched again in two requests of half of the keys each.
  func fetch(_ requests: [FetchRequest<Key>]) async throws -> [Key: Result<Fetched<Value>, any Error>]
}

/// One key of a request for several keys, with the validator of its stored value.
public struct FetchRequest<Key: Hashable & Sendable>: Hashable, Sendable {
  /// Key of the value to fetch.
  public let key: Key
  /// Validator that came with the stored value, such as an ETag, or `nil` if there is none.
  public let validator: String?

  /// Makes the entry of one key in a request for several keys.
  public init(key: Key, validator: String? = nil) {
    self.key = key
    self.validator = validator
  }
}

extension BatchRemoteSource {
  /// The largest number of keys in one request by default: 100.
  public var maxKeysPerRequest: Int { 100 }

  /// Returns `true`: any two keys may share a request by default.
  public func canShareRequest(_ key: Key, _ other: Key) -> Bool { true }

  /// Returns 1: by default a request counts once against the quotas.
  public func requestWeight(of keys: [Key]) -> Double { 1 }

  /// Fetches the value of one key in a request of its own.
  ///
  /// - Throws: The error of the request, the error of the key, or ``CacheError/unanswered``.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    guard let result = try await fetch([FetchRequest(key: key, validator: validator)])[key] else { throw CacheError.unanswered }
    return try result.get()
  }

  /// Returns a source that fetches from this source within the limits of its host.
  ///
  /// Keys that wait until the limits let a request run are gathered into requests for several keys.
  ///
  /// A request counts once against the limits, with the weight of ``requestWeight(of:)``. The keys of a request are chosen when the limits
  /// let it run, so that keys that arrive during the wait join the request.
  /// - Parameter limits: Limits of the host, shared by all its sources. If `limits` has no concurrency limit, six requests run at a time.
  public func limited(by limits: HostLimits) -> GatheredSource<Key, Value> {
    GatheredSource(self, limits: limits) { requestWeight(of: $0) }
  }

  /// Returns a source that fetches from this source within the limits of its host.
  ///
  /// The weight of a request is the sum of its keys' weights.
  ///
  /// - Parameters:
  ///   - limits: Limits of the host, shared by all its sources. If `limits` has no concurrency limit, six requests run at a time.
  ///   - weight: Weight of a key, which counts against the quotas.
  public func limited(by limits: HostLimits, weight: @escaping @Sendable (Key) -> Double) -> GatheredSource<Key, Value> {
    GatheredSource(self, limits: limits) { keys in keys.reduce(0) { $0 + weight($1) } }
  }
}
