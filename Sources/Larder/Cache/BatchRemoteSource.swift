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
/// A ``CachedRepository`` over it makes one request of the keys that wait: of those that
/// ``CachedRepository/values(for:policy:maxConcurrentFetches:)`` or ``CachedRepository/prefetch(_:)`` fetch together,
/// of those whose single calls wait while as many requests run as may, and of those that a request has failed for and
/// that are tried again. A key that waits alone is fetched alone; no timer is involved.
///
/// Everything else stays as it is with a single key: callers of a key share its fetch, each key is retried by its own count of attempts and
/// keeps its own `Retry-After`, and a cancelled caller leaves at once. A request is cancelled when no caller of any of its keys is left.
/// Bound the requests with ``limited(by:)``: one counts once, however many keys it has. Several caches share requests through one
/// ``GatheredSource``.
public protocol BatchRemoteSource<Key, Value>: RemoteSource {
  /// The identity of a value.
  associatedtype Key
  /// The type of the values.
  associatedtype Value

  /// The largest number of keys of one request; 100 by default, and at least 1.
  var maxKeysPerRequest: Int { get }

  /// Returns whether two keys may be fetched by one request; `true` by default.
  ///
  /// Asked for each key that waits, with the first key of the request. It must be quick and always give the same answer.
  func canShareRequest(_ key: Key, _ other: Key) -> Bool

  /// Returns what a request for some keys counts against the quotas of ``HostLimits``; 1 by default.
  func requestWeight(of keys: [Key]) -> Double

  /// Fetches the values of several keys.
  ///
  /// Called away from every actor, several times at once, and with each key once in a call.
  /// - Parameter requests: The keys, at least one and at most ``maxKeysPerRequest``, each with the validator of what is stored of it.
  /// - Returns: An answer for each key. A key whose result is a failure fails alone; one without a result fails with
  ///   ``CacheError/unanswered``. If all fail, the request has failed for the circuit breaker too, with the first key's error.
  /// - Throws: any error; every key of the request then fails with it. With one whose
  ///   ``RemoteSourceError/mayConcernOneKey`` is `true` the keys are fetched again instead, in two requests of half of
  ///   them each.
  func fetch(_ requests: [FetchRequest<Key>]) async throws -> [Key: Result<Fetched<Value>, any Error>]
}

/// A key to be fetched, as a part of a request.
public struct FetchRequest<Key: Hashable & Sendable>: Hashable, Sendable {
  /// The key.
  public let key: Key
  /// The validator that came with the stored value, such as an ETag; `nil` when there is none.
  public let validator: String?

  /// Makes a part of a request.
  public init(key: Key, validator: String? = nil) {
    self.key = key
    self.validator = validator
  }
}

extension BatchRemoteSource {
  /// A hundred.
  public var maxKeysPerRequest: Int { 100 }

  /// Returns `true`.
  public func canShareRequest(_ key: Key, _ other: Key) -> Bool { true }

  /// Returns 1: a request counts once.
  public func requestWeight(of keys: [Key]) -> Double { 1 }

  /// Fetches the value of one key, in a request of its own.
  ///
  /// - Throws: What the request throws; the key's error; ``CacheError/unanswered``.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    guard let result = try await fetch([FetchRequest(key: key, validator: validator)])[key] else { throw CacheError.unanswered }
    return try result.get()
  }

  /// Returns this source within the limits of its host, with the keys that wait gathered into requests.
  ///
  /// A request counts once against the limits, with the weight that ``requestWeight(of:)`` says. The keys of a request are chosen when its
  /// turn has come, so that what waits for the host is gathered.
  /// - Parameter limits: Those of the host, shared by all its sources. Without a limit of concurrency, six requests run at a time.
  public func limited(by limits: HostLimits) -> GatheredSource<Key, Value> {
    GatheredSource(self, limits: limits) { requestWeight(of: $0) }
  }

  /// Returns this source within the limits of its host, where the weight of a request is the sum of that of its keys.
  ///
  /// - Parameters:
  ///   - limits: Those of the host, shared by all its sources. Without a limit of concurrency, six requests run at a time.
  ///   - weight: What a key counts against the quotas.
  public func limited(by limits: HostLimits, weight: @escaping @Sendable (Key) -> Double) -> GatheredSource<Key, Value> {
    GatheredSource(self, limits: limits) { keys in keys.reduce(0) { $0 + weight($1) } }
  }
}
