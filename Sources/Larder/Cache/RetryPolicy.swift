/// The number of attempts of a fetch, and the waits between them.
///
/// Before the n-th retry the cache waits for a random time between zero and `base` × 2ⁿ⁻¹, at most `cap`. The random wait (full
/// jitter) keeps clients that failed together from retrying together. If the provider asks for a wait (``RemoteSourceError/retryAfter``) of
/// at most `cap`, the cache waits for that time and not for a random time. If the provider asks for a wait longer than `cap`, the fetch
/// ends with the error of the failed attempt. Only transient errors are retried.
///
/// After a failed fetch, ``FetchPolicy/staleWhileRevalidate`` waits for `cap`, and at least a second, before it fetches the same key again
/// in the background.
public struct RetryPolicy: Hashable, Sendable {
  /// Number of attempts of a fetch including the first, at least one and 3 by default.
  public let attempts: Int
  /// Longest wait before the first retry, half a second by default.
  public let base: Duration
  /// Longest wait before any retry, 30 seconds by default.
  public let cap: Duration

  /// Makes a retry policy.
  ///
  /// An argument outside its range is moved to the nearest end of the range. A time of more than a hundred years becomes a hundred years.
  public init(attempts: Int = 3, base: Duration = .milliseconds(500), cap: Duration = .seconds(30)) {
    self.attempts = max(attempts, 1)
    self.base = base.bounded
    self.cap = cap.bounded
  }

  /// A policy of three attempts, with a base of half a second and a cap of 30 seconds.
  public static let `default` = RetryPolicy()
  /// A policy of one attempt, without a retry.
  public static let never = RetryPolicy(attempts: 1)
}

extension RetryPolicy {
  /// Returns the wait after a failed attempt, or `nil` if there is no next attempt.
  ///
  /// - Parameters:
  ///   - attempt: Number of the failed attempt, from 1.
  ///   - random: Random number from 0 up to 1.
  func delay(after attempt: Int, _ error: ErrorTraits, random: Double) -> Duration? {
    guard attempt < attempts, error.isTransient else { return nil }
    if let wanted = error.retryAfter { return wanted <= cap ? wanted : nil }
    var ceiling = min(base, cap)
    // The loop doubles at most 62 times, because a base of zero would never reach the cap.
    for _ in 0..<min(attempt - 1, 62) where ceiling < cap { ceiling = min(ceiling * 2, cap) }
    return ceiling * random
  }
}
