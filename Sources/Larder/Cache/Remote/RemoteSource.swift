// Remote/ holds the sources of values: the protocols that apps implement, and the gathering of several keys into one request.
// Invariant: A source sends requests only. The cache stores the values, retries requests and shares fetches among callers.
// Called by `CachedRepository+Fetching.swift`, once for each attempt.

public import Foundation

/// A source of values for a cache, such as a server, a device or a computation.
///
/// ```swift
/// nonisolated struct ForecastServer: RemoteSource {
///   let get: @Sendable (_ path: String, _ etag: String?) async throws -> (status: Int, body: Data, etag: String?)
///
///   func fetch(_ spot: String, validator: String?) async throws -> Fetched<Forecast> {
///     let (status, body, etag) = try await get("/forecast/\(spot)", validator)
///     switch status {
///     case 200: return .value(try JSONDecoder().decode(Forecast.self, from: body), validator: etag)
///     case 304: return .notModified()
///     case 404: return .absent(reason: "no forecast for this place")
///     default: throw ServerError(status: status)
///     }
///   }
/// }
/// ```
///
/// A source sends one request for each call. A source does not cache, retry or share requests. ``CachedRepository`` caches values, retries
/// requests and shares them among callers, and ``HostLimits`` limits them.
///
/// A cache calls its source away from every actor, for different keys at the same time, and once at a time for each key. The rule of one
/// call for each key has one exception: after the last caller of a key has left, or the key was removed, the next call for the key may
/// begin before the earlier call ends. If the callers leave and the source ignores cancellation, the source may thus run two calls for one
/// key at the same time. While two calls for one key run, a third call may begin at the earliest one minute after the first call was
/// cancelled.
///
/// ## Topics
///
/// ### Fetching
/// - ``fetch(_:validator:)``
/// - ``Fetched``
/// - ``RemoteSourceError``
///
/// ### Several keys in one request
/// - ``BatchRemoteSource``
/// - ``GatheredSource``
/// - ``FetchGroup``
///
/// ### Limits
/// - ``limited(by:weight:)``
/// - ``HostLimits``
/// - ``ConcurrencyLimit``
/// - ``TokenBucket``
/// - ``CircuitBreaker``
///
/// ### Adapting
/// - ``mapped(key:value:)``
public protocol RemoteSource<Key, Value>: Sendable {
  /// Type of the keys, each of which identifies a value.
  associatedtype Key: Hashable & Codable & Sendable
  /// Type of the fetched values.
  associatedtype Value: Codable & Sendable

  /// Fetches the value of a key.
  ///
  /// Throw `CancellationError` soon after the task is cancelled, which happens when the last caller has left.
  /// - Parameters:
  ///   - key: Key of the value to fetch.
  ///   - validator: Validator of the stored value, such as an ETag, so that the source may answer ``Fetched/notModified(freshUntil:)``. The
  ///     validator is `nil` if no value is stored, or if the stored value came without a validator.
  /// - Throws: An error of any type. A ``RemoteSourceError`` says whether a retry may help.
  func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value>
}

/// The answer of a source for one key.
public enum Fetched<Value: Sendable>: Sendable {
  /// The value of the key.
  ///
  /// The next fetch of the key passes `validator` back to the source. `freshUntil` is the end of the fresh time as the provider gives it,
  /// and replaces ``FreshnessPolicy/fresh``. The cache adds no random jitter to `freshUntil`. `freshUntil` may be earlier or later than the
  /// policy's end of the fresh time, but is cut to the end of ``FreshnessPolicy/usable``. A `freshUntil` that is not a number counts as
  /// `nil`.
  case value(Value, validator: String? = nil, freshUntil: Date? = nil)
  /// The stored value, whose validator the request carried, is still current.
  ///
  /// After the answer `.notModified`, the stored value counts as fetched at the moment of that answer.
  case notModified(freshUntil: Date? = nil)
  /// There is no value for this key, and a new request would not find one soon: the place is not covered, or the page does not exist.
  ///
  /// The absence is stored for `lifetime`, or else for ``FreshnessPolicy/negative``, and replaces an older value. After a failure, throw an
  /// error and do not return `.absent`. The reason is stored with the absence, and is part of the error that callers receive.
  case absent(reason: String, lifetime: Duration? = nil)
}

/// An error of a source that says whether a retry may help.
///
/// Errors that do not conform to `RemoteSourceError` count as transient, except `CancellationError`, `DecodingError`, `EncodingError`,
/// ``CacheError`` and ``RepositoryError``.
public protocol RemoteSourceError: Error {
  /// True if the same request may succeed soon: without a connection, after a timeout, and for HTTP 408, 429 and 5xx.
  var isTransient: Bool { get }
  /// Time for which the provider asks to wait, like HTTP's `Retry-After`: from zero to a hundred years, or `nil` (the default) for none.
  var retryAfter: Duration? { get }
  /// True if the failure shows that the host is in trouble.
  ///
  /// By default, every transient failure counts against the circuit breaker, and no other failure does.
  ///
  /// The circuit breaker ignores a failure that does not count, because the failure shows neither that the host fails nor that it works.
  var countsAgainstBreaker: Bool { get }
  /// True if one key may have made a request for several keys fail, such as a key that the server cannot parse.
  ///
  /// The default is `false`: a failed request has failed for all of its keys.
  ///
  /// After an error whose `mayConcernOneKey` is `true`, a ``BatchRemoteSource`` is called again for each half of the keys, so that in the
  /// end only the bad key fails. In the worst case, halving takes twice as many requests as there are keys. Return `false` for failures of
  /// the host, such as a wrong password.
  var mayConcernOneKey: Bool { get }
}

extension RemoteSourceError {
  /// The default `nil`: the provider does not ask for a wait.
  public var retryAfter: Duration? { nil }
  /// Returns ``isTransient``, so that by default every transient failure counts against the circuit breaker.
  public var countsAgainstBreaker: Bool { isTransient }
  /// The default `false`: a failed request has failed for all of its keys.
  public var mayConcernOneKey: Bool { false }
}

/// The properties of an error that decide about retries and the circuit breaker, with defaults for errors that are no `RemoteSourceError`.
struct ErrorTraits {
  let isTransient: Bool
  let retryAfter: Duration?
  let countsAgainstBreaker: Bool

  init(_ error: any Error) {
    switch error {
    case let error as any RemoteSourceError:
      isTransient = error.isTransient
      retryAfter = error.retryAfter?.bounded
      countsAgainstBreaker = error.countsAgainstBreaker
    // A cancelled task, a coding error or an error of the cache would fail a retry too, and none of them says anything about the host.
    case is CancellationError, is DecodingError, is EncodingError, is CacheError, is RepositoryError:
      (isTransient, retryAfter, countsAgainstBreaker) = (false, nil, false)
    default:
      (isTransient, retryAfter, countsAgainstBreaker) = (true, nil, true)
    }
  }
}
