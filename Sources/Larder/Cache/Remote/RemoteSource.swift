// Remote/ holds the sources of values: the protocols that apps implement, and the gathering of several keys into one request.
// Invariant: A source sends requests only. Stored values, retries and shared fetches are the cache's.
// Called by `CachedRepository+Fetching.swift`, one call for each attempt.

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
/// A source sends one request for each call. It does not cache, retry or share requests. ``CachedRepository`` and ``HostLimits`` do that.
///
/// A cache calls its source away from every actor, for different keys at the same time, and once at a time for each key. There is one
/// exception: after a task was cancelled, because its last caller left or its key was removed, the next call for the key may begin before
/// the cancelled one ends. A source that ignores cancellation is thus called at most twice at once for a key, until a minute after the
/// first of the two was cancelled.
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
  /// Identity of a value.
  associatedtype Key: Hashable & Codable & Sendable
  /// Type of the values.
  associatedtype Value: Codable & Sendable

  /// Fetches the value of a key.
  ///
  /// Throw `CancellationError` soon after the task is cancelled, which happens when the last caller has left.
  /// - Parameters:
  ///   - key: Key of the value.
  ///   - validator: Validator of the stored value, such as an ETag, so that the source may answer ``Fetched/notModified(freshUntil:)``.
  ///     `nil` if no value is stored, or if it came without a validator.
  /// - Throws: Any error. A ``RemoteSourceError`` says whether a retry may help.
  func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value>
}

/// Answer of a source.
public enum Fetched<Value: Sendable>: Sendable {
  /// The value of the key.
  ///
  /// The next fetch gets `validator` back. `freshUntil` is the provider's own expiry, in the place of ``FreshnessPolicy/fresh``. It is not
  /// jittered, and may be shorter or longer than the policy's, but does not go beyond ``FreshnessPolicy/usable``. A date that is not a
  /// number counts as none.
  case value(Value, validator: String? = nil, freshUntil: Date? = nil)
  /// The value with the validator is still current.
  ///
  /// It counts as fetched now.
  case notModified(freshUntil: Date? = nil)
  /// There is no value for this key, and a new request would not find one soon: the place is not covered, or the page does not exist.
  ///
  /// The absence is stored for `lifetime`, or else for ``FreshnessPolicy/negative``, and replaces an older value. Throw an error for a
  /// failure instead. The reason is stored, and errors show it.
  case absent(reason: String, lifetime: Duration? = nil)
}

/// An error of a source that says whether a retry may help.
///
/// Other errors count as transient, except `CancellationError`, `DecodingError`, `EncodingError`, ``CacheError`` and ``RepositoryError``.
public protocol RemoteSourceError: Error {
  /// True if the same request may succeed soon: without a connection, after a timeout, and for HTTP 408, 429 and 5xx.
  var isTransient: Bool { get }
  /// Time for which the provider asks to wait, like HTTP's `Retry-After`: from zero to a hundred years, or `nil`, the default.
  var retryAfter: Duration? { get }
  /// True if the failure shows that the host is in trouble.
  ///
  /// By default the same as ``isTransient``.
  ///
  /// A failure that does not count says nothing about the host, neither that it fails nor that it works.
  var countsAgainstBreaker: Bool { get }
  /// True if one key may have made a request for several keys fail, such as a key that the server cannot parse.
  ///
  /// `false` by default.
  ///
  /// A ``BatchRemoteSource`` is then called again for each half of the keys, so that the bad key fails alone. In the worst case that takes
  /// twice as many requests as there are keys. Return `false` for failures of the host, such as a wrong password.
  var mayConcernOneKey: Bool { get }
}

extension RemoteSourceError {
  /// `nil`: the provider does not ask for a wait.
  public var retryAfter: Duration? { nil }
  /// The same as ``isTransient``.
  public var countsAgainstBreaker: Bool { isTransient }
  /// `false`: a failed request has failed for all of its keys.
  public var mayConcernOneKey: Bool { false }
}

/// The properties of an error that decide about retries and the circuit breaker, with defaults for errors that state none.
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
    // A retry would fail in the same way, and none of these errors says anything about the host.
    case is CancellationError, is DecodingError, is EncodingError, is CacheError, is RepositoryError:
      (isTransient, retryAfter, countsAgainstBreaker) = (false, nil, false)
    default:
      (isTransient, retryAfter, countsAgainstBreaker) = (true, nil, true)
    }
  }
}
