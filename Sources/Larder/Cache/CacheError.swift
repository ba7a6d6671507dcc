public import Foundation

/// An error of a cache itself; other errors are the source's own.
public enum CacheError: Error, Hashable, Sendable {
  /// The source has answered that there is no value, and that answer still holds; see ``Fetched/absent(reason:lifetime:)``.
  case absent(reason: String, since: Date)
  /// Nothing usable is stored, and the policy was ``FetchPolicy/cacheOnly``.
  case notCached
  /// The source was not asked, because its circuit breaker is open until then.
  case circuitOpen(until: Date)
  /// The source was not asked, because its quota is spent until then.
  case quotaExceeded(until: Date)
  /// The source has not answered in time; only ever a ``Cached/refreshError``.
  case timedOut(Duration)
  /// The source answered "not modified" although it was given no validator.
  case nothingToRevalidate
  /// The source answered a request for several keys without a result for this one; see ``BatchRemoteSource``.
  case unanswered
}

extension CacheError {
  /// Whether the limits of a host have kept a request from being made.
  var isOfLimits: Bool {
    switch self {
    case .circuitOpen, .quotaExceeded: true
    case .absent, .notCached, .timedOut, .nothingToRevalidate, .unanswered: false
    }
  }
}
