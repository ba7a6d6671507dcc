public import Foundation

/// Where the values of a cache come from: a server, a device, a computation.
///
/// A source does one request and knows nothing of caching, retrying or sharing; ``CachedRepository`` and ``HostLimits`` add these.
/// Called away from every actor, for different keys at the same time, and for one key once at a time by one cache. After its task was cancelled,
/// because nobody waited any more, or its key was removed, the next call for the key may begin before it ends. A source that does not hear of
/// cancellation is so called for one key at most twice at once, until a minute after the first of the two was cancelled.
public protocol RemoteSource<Key, Value>: Sendable {
  /// What identifies a value.
  associatedtype Key: Hashable & Codable & Sendable
  /// What is fetched.
  associatedtype Value: Codable & Sendable

  /// Fetches the value of a key.
  ///
  /// - Parameters:
  ///   - key: Which value.
  ///   - validator: What came with the value that is stored, such as an ETag, so that the source may answer ``Fetched/notModified(freshUntil:)``;
  ///     `nil` when there is no value, or it came without one.
  /// - Throws: any error; one that is a ``RemoteSourceError`` says whether trying again may help. Should throw `CancellationError` soon after
  ///   its task is cancelled, which happens when nobody waits any more.
  func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value>
}

/// What a source answers.
public enum Fetched<Value: Sendable>: Sendable {
  /// The value.
  ///
  /// `validator` is handed back at the next fetch. `freshUntil` is the provider's own expiry: it takes the place of
  /// ``FreshnessPolicy/fresh``, is not jittered, and may be shorter or longer, but not beyond ``FreshnessPolicy/usable``. One that is no number
  /// counts as none.
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
  /// How long the provider asks to wait, as HTTP's `Retry-After`; `nil` by default. It counts as zero below that, and as a hundred years above.
  var retryAfter: Duration? { get }
  /// Whether the failure shows that the host is in trouble; as ``isTransient`` by default. One that does not count says nothing of the host,
  /// neither that it fails nor that it works.
  var countsAgainstBreaker: Bool { get }
  /// Whether one key among several may have made the whole request fail, such as a key that the server cannot parse; `false` by default.
  ///
  /// A ``BatchRemoteSource`` is then asked again for one half of the keys and for the other, so that the key at fault fails alone: in the
  /// worst case twice as many requests as there are keys. Not for failures of the host, such as a wrong password.
  var mayConcernOneKey: Bool { get }
}

extension RemoteSourceError {
  /// Nothing is known about it.
  public var retryAfter: Duration? { nil }
  /// What may pass counts; what is wrong with the request does not.
  public var countsAgainstBreaker: Bool { isTransient }
  /// A request that fails has failed for all of its keys.
  public var mayConcernOneKey: Bool { false }
}

/// What the cache makes of an error, whoever threw it.
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
