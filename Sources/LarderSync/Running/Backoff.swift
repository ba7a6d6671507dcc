internal import Larder

/// The waits between exchanges that fail: full jitter, so that devices that failed together do not come back together.
struct Backoff: Sendable {
  private(set) var failures = 0

  static let base = Duration.seconds(1)
  static let cap = Duration.seconds(300)

  /// Returns how long to wait after one more failure.
  ///
  /// - Parameters:
  ///   - error: The failure; one that says how long to wait is believed, up to an hour.
  ///   - random: A number from 0 up to 1.
  mutating func delay(after error: any Error, random: Double = .random(in: 0..<1)) -> Duration {
    failures += 1
    switch error as? SyncProblem {
    case .unavailable(let seconds?)?, .tooManyRequests(let seconds?)?:
      guard seconds.isFinite else { return Self.cap * random }
      return .seconds(min(max(seconds, 0), 3_600)) + Self.base * random
    case let problem? where Self.isLasting(problem): return Self.cap * (0.5 + random / 2)
    default:
      var ceiling = Self.base
      for _ in 1..<min(failures, 20) where ceiling < Self.cap { ceiling = min(ceiling * 2, Self.cap) }
      return ceiling * random
    }
  }

  /// Whether the same request would get the same answer: what changes that is not here.
  private static func isLasting(_ problem: SyncProblem) -> Bool {
    switch problem {
    case .unauthorized, .forbidden, .upgradeRequired, .tooLarge, .answerTooLarge, .tooManyScopes: true
    case .refused(let status, _): status != 408
    default: false
    }
  }

  /// Whether a failure says how long to wait: nothing on this side shortens that.
  static func isAskedFor(after error: any Error) -> Bool {
    switch error as? SyncProblem {
    case .unavailable(.some)?, .tooManyRequests(.some)?: true
    default: false
    }
  }

  mutating func reset() { failures = 0 }
}
