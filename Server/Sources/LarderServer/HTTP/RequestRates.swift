internal import Synchronization

/// The requests that each device has left: a bucket that fills with time.
final class RequestRates: Sendable {
  private struct Bucket: Sendable {
    var left: Double
    var at: ContinuousClock.Instant
  }

  private let buckets = Mutex<[String: Bucket]>([:])
  private let rate: Double
  private let burst: Double
  /// The number of devices beyond which full buckets are forgotten, which says the same as keeping them.
  private static let most = 20_000

  init(rate: Double, burst: Double) { (self.rate, self.burst) = (rate, burst) }

  /// Takes one request, and returns the seconds to wait where there is none left.
  func take(_ key: String, now: ContinuousClock.Instant = .now) -> Double? {
    buckets.withLock { buckets in
      if buckets.count > Self.most {
        buckets = buckets.filter { amount(in: $0.value, now) < burst }
        // Of so many busy devices none is known for long.
        if buckets.count > Self.most { buckets = [:] }
      }
      let left = buckets[key].map { amount(in: $0, now) } ?? burst
      buckets[key] = Bucket(left: left >= 1 ? left - 1 : left, at: now)
      return left >= 1 ? nil : (1 - left) / rate
    }
  }

  private func amount(in bucket: Bucket, _ now: ContinuousClock.Instant) -> Double {
    let elapsed = (now - bucket.at).components
    return min(burst, bucket.left + (Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18) * rate)
  }
}
