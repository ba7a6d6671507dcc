public import Foundation

/// An error that a ``CachedRepository`` itself throws.
///
/// The cache passes the errors of its source through unchanged.
public enum CacheError: Error, Hashable, Sendable {
  /// The source has answered that the key has no value, and the lifetime of that answer has not ended.
  ///
  /// A source answers that a key has no value with ``Fetched/absent(reason:lifetime:)``.
  case absent(reason: String, since: Date)
  /// No usable value is stored for the key, and the policy was ``FetchPolicy/cacheOnly``.
  case notCached
  /// The circuit breaker of the source is open until the date `until`, so no request was sent.
  case circuitOpen(until: Date)
  /// The quota of requests to the source is spent until the date `until`, so no request was sent.
  case quotaExceeded(until: Date)
  /// The source did not answer within the timeout of ``FetchPolicy/networkFirst(timeout:)``.
  ///
  /// `timedOut` occurs only in ``Cached/refreshError``, because a call whose request times out returns the stored value.
  case timedOut(Duration)
  /// The source answered "not modified" to a request without a validator.
  case nothingToRevalidate
  /// The source has answered a request for several keys without a result for the requested key.
  ///
  /// A ``BatchRemoteSource`` may leave out the result of a key.
  case unanswered
}

extension CacheError: LocalizedError, CustomStringConvertible {
  /// The error as text: its cause, and the next step for the caller if there is one.
  public var description: String {
    switch self {
    case .absent(let reason, let since):
      "absent: the source answered at \(since.formatted(.iso8601)) that there is no value (\(reason)); that answer still holds"
    case .notCached: "notCached: expected a usable stored value, found none; ask with a policy that fetches"
    case .circuitOpen(let date):
      "circuitOpen: the source has failed repeatedly and is not asked before \(date.formatted(.iso8601)); try again then"
    case .quotaExceeded(let date): "quotaExceeded: the source's quota is spent until \(date.formatted(.iso8601)); try again then"
    case .timedOut(let limit): "timedOut: the source did not answer within \(limit)"
    case .nothingToRevalidate: "nothingToRevalidate: the source answered \"not modified\" to a request without a validator"
    case .unanswered: "unanswered: the source answered a request for several keys without a result for this one"
    }
  }

  /// The same text as ``description``, which `localizedDescription` returns too.
  public var errorDescription: String? { description }
}

extension CacheError {
  /// True if ``HostLimits`` refused the request, because the circuit breaker was open or a quota was spent.
  var isOfLimits: Bool {
    switch self {
    case .circuitOpen, .quotaExceeded: true
    case .absent, .notCached, .timedOut, .nothingToRevalidate, .unanswered: false
    }
  }
}
