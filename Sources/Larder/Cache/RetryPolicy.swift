/// The number of attempts of a fetch, and the waits between them.
///
/// Before the n-th retry the cache waits for a random time between zero and `base` × 2ⁿ⁻¹, at most `cap`. This full jitter keeps
/// clients that failed together from retrying together. If the provider asks for a wait (``RemoteSourceError/retryAfter``) of at most
/// `cap`, the cache waits for that time and not for a random time. If the provider asks for a wait longer than `cap`, the fetch ends with
/// the error. Only transient errors are retried.
///
/// After a failed fetch, ``FetchPolicy/staleWhileRevalidate`` waits for `cap`, and at least a second, before it begins the next fetch.
public struct RetryPolicy: Hashable, Sendable {
  /// Number of attempts in all, at least one and 3 by default.
  public let attempts: Int
  /// Longest wait before the first retry, half a second by default.
  public let base: Duration
  /// Longest wait before any retry, 30 seconds by default.
  public let cap: Duration

  /// Makes a policy.
  ///
  /// An argument outside its range is moved to the nearest end of the range. A time of more than a hundred years becomes a hundred years.
  public init(attempts: Int = 3, base: Duration = .milliseconds(500), cap: Duration = .seconds(30)) {
    self.attempts = max(attempts, 1)
    self.base = base.bounded
    self.cap = cap.bounded
  }

  /// Three attempts, with a base of half a second and a cap of 30 seconds.
  public static let `default` = RetryPolicy()
  /// One attempt, without a retry.
  public static let never = RetryPolicy(attempts: 1)
}

extension RetryPolicy {
  /// Returns the wait after a failed attempt, or `nil` if there is no next attempt.
  ///
  /// - Parameters:
  ///   - attempt: Number of the failed attempt, from 1.
  ///   - random: A number from 0 up to 1.
  func delay(after attempt: Int, _ error: ErrorTraits, random: Double) -> Duration? {
    guard attempt < attempts, error.isTransient else { return nil }
    if let wanted = error.retryAfter { return wanted <= cap ? wanted : nil }
    var ceiling = min(base, cap)
    // The loop ends after 62 doublings at most, because a base of zero never reaches the cap.
    for _ in 0..<min(attempt - 1, 62) where ceiling < cap { ceiling = min(ceiling * 2, cap) }
    return ceiling * random
  }
}
