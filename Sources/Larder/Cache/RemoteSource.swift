public import Foundation

/// A source of values for a cache: a server, a device, a computation.
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
/// A source does one request and knows nothing of caching, retrying or sharing; ``CachedRepository`` and ``HostLimits``
/// add these. Called away from every actor, for different keys at the same time, and for one key once at a time by one
/// cache. After its task was cancelled, because no caller was left or its key was removed, the next call for the
/// key may begin before it ends. A source that ignores cancellation is so called for one key at most twice at once,
/// until a minute after the first of the two was cancelled.
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
  /// The identity of a value.
  associatedtype Key: Hashable & Codable & Sendable
  /// The type of the values.
  associatedtype Value: Codable & Sendable

  /// Fetches the value of a key.
  ///
  /// - Parameters:
  ///   - key: Which value.
  ///   - validator: What came with the value that is stored, such as an ETag, so that the source may answer
  ///     ``Fetched/notModified(freshUntil:)``; `nil` when there is no value, or it came without one.
  /// - Throws: any error; one that is a ``RemoteSourceError`` says whether trying again may help. Should throw
  ///   `CancellationError` soon after its task is cancelled, which happens when no caller is left.
  func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value>
}

/// The answer of a source.
public enum Fetched<Value: Sendable>: Sendable {
  /// The value.
  ///
  /// `validator` is handed back at the next fetch. `freshUntil` is the provider's own expiry: it takes the place of
  /// ``FreshnessPolicy/fresh``, is not jittered, and may be shorter or longer, but not beyond
  /// ``FreshnessPolicy/usable``. One that is no number counts as none.
  case value(Value, validator: String? = nil, freshUntil: Date? = nil)
  /// The value that the validator came with is still right: it counts as fetched now.
  case notModified(freshUntil: Date? = nil)
  /// There is no value for this key, and asking again soon is no use: a place that is not covered, a page that is not there.
  ///
  /// Kept for `lifetime`, or ``FreshnessPolicy/negative`` without one, and in the place of an older value. Not for failures: throw those.
  /// The reason is stored and shown in errors.
  case absent(reason: String, lifetime: Duration? = nil)
}

/// An error of a source that says what to do next.
///
/// Other errors count as transient, except `CancellationError`, `DecodingError`, `EncodingError`, ``CacheError`` and ``RepositoryError``.
public protocol RemoteSourceError: Error {
  /// Whether the same request may succeed soon: no connection, a timeout, HTTP 408, 429, 5xx.
  var isTransient: Bool { get }
  /// The time that the provider asks to wait, as HTTP's `Retry-After`, from zero to a hundred years; `nil` by default.
  var retryAfter: Duration? { get }
  /// Whether the failure shows that the host is in trouble; as ``isTransient`` by default. One that does not count says
  /// nothing of the host, neither that it fails nor that it works.
  var countsAgainstBreaker: Bool { get }
  /// Whether one key among several may have made the whole request fail, such as a key that the server cannot parse; `false` by default.
  ///
  /// A ``BatchRemoteSource`` is then asked again for one half of the keys and for the other, so that the key at fault fails alone: in the
  /// worst case twice as many requests as there are keys. Not for failures of the host, such as a wrong password.
  var mayConcernOneKey: Bool { get }
}

extension RemoteSourceError {
  /// No time, by default.
  public var retryAfter: Duration? { nil }
  /// The same as ``isTransient``, by default.
  public var countsAgainstBreaker: Bool { isTransient }
  /// `false`, by default: a request that fails has failed for all of its keys.
  public var mayConcernOneKey: Bool { false }
}

/// An error as the cache judges it, with defaults for one that says nothing.
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
    case is CancellationError, is DecodingError, is EncodingError, is CacheError, is RepositoryError:
      (isTransient, retryAfter, countsAgainstBreaker) = (false, nil, false)
    default:
      (isTransient, retryAfter, countsAgainstBreaker) = (true, nil, true)
    }
  }
}
