/// The number and the times of the attempts of a fetch.
///
/// Before the n-th retry the cache waits for a random time between zero and `base` × 2ⁿ⁻¹, at most `cap`: full jitter,
/// so that clients that failed together do not come back together. A provider's ``RemoteSourceError/retryAfter`` up to
/// the cap is waited for in full instead; a longer one ends the fetch with its error. Only transient errors are tried
/// again. After a fetch has failed, ``FetchPolicy/staleWhileRevalidate`` lets `cap` pass, and at least a second, before
/// it begins the next one.
public struct RetryPolicy: Hashable, Sendable {
  /// The number of attempts in all, at least one: 3 by default.
  public let attempts: Int
  /// The longest wait before the first retry: half a second by default.
  public let base: Duration
  /// The longest wait at all: 30 seconds by default.
  public let cap: Duration

  /// Makes a policy; values outside their range are moved to its end: no time is longer than a hundred years.
  public init(attempts: Int = 3, base: Duration = .milliseconds(500), cap: Duration = .seconds(30)) {
    self.attempts = max(attempts, 1)
    self.base = base.bounded
    self.cap = cap.bounded
  }

  /// Three attempts, half a second, 30 seconds.
  public static let `default` = RetryPolicy()
  /// One attempt.
  public static let never = RetryPolicy(attempts: 1)
}

extension RetryPolicy {
  /// Returns how long to wait after an attempt has failed, or `nil` when it was the last.
  ///
  /// - Parameters:
  ///   - attempt: The number of the attempt that failed, from 1.
  ///   - random: A number from 0 up to 1.
  func delay(after attempt: Int, _ error: ErrorTraits, random: Double) -> Duration? {
    guard attempt < attempts, error.isTransient else { return nil }
    if let wanted = error.retryAfter { return wanted <= cap ? wanted : nil }
    var ceiling = min(base, cap)
    // Beyond 2^62 every base has reached its cap, or is none.
    for _ in 0..<min(attempt - 1, 62) where ceiling < cap { ceiling = min(ceiling * 2, cap) }
    return ceiling * random
  }
}
