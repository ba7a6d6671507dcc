internal import Synchronization

/// Token buckets that limit the requests of identities and of their devices.
///
/// Clients choose the names of devices, so the bucket of a device only divides the requests of its identity. Invented names get new
/// buckets of devices, and the one bucket of the identity runs dry.
final class RequestRates: Sendable {
  private struct Bucket: Sendable {
    var left: Double
    var at: ContinuousClock.Instant
  }

  private struct Key: Hashable, Sendable {
    var identity: String
    var device: String?
  }

  private let identities = Mutex<[Key: Bucket]>([:])
  private let devices = Mutex<[Key: Bucket]>([:])
  private let options: ServerOptions
  /// Number of buckets above which full ones are dropped.
  ///
  /// A new bucket is full, too, so that changes nothing.
  private static let most = 20_000

  init(_ options: ServerOptions) { self.options = options }

  /// Takes one request from the bucket of an identity, and returns the seconds to wait if it is empty.
  func take(_ identity: Identity, now: ContinuousClock.Instant = .now) -> Double? {
    let factor = Double(options.devicesAtOnce)
    return identities.withLock {
      Self.take(Key(identity: identity.name), from: &$0, options.requestsPerSecond * factor, options.burst * factor, now)
    }
  }

  /// Takes one request from the bucket of a device, and returns the seconds to wait if it is empty.
  ///
  /// Call it in addition to the one for the identity. Requests without a device name share one bucket.
  func take(_ identity: Identity, device: String, now: ContinuousClock.Instant = .now) -> Double? {
    devices.withLock {
      Self.take(Key(identity: identity.name, device: device), from: &$0, options.requestsPerSecond, options.burst, now)
    }
  }

  private static func take(
    _ key: Key, from buckets: inout [Key: Bucket], _ rate: Double, _ burst: Double, _ now: ContinuousClock.Instant
  ) -> Double? {
    func amount(in bucket: Bucket) -> Double {
      let elapsed = (now - bucket.at).components
      return min(burst, bucket.left + (Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18) * rate)
    }
    if buckets.count > most {
      buckets = buckets.filter { amount(in: $0.value) < burst }
      // More than 20,000 buckets are in use. To drop them all refills them, and memory stays bounded.
      if buckets.count > most { buckets = [:] }
    }
    let left = buckets[key].map { amount(in: $0) } ?? burst
    // A refused request takes nothing, so that a client that asks too often still gets its rate.
    buckets[key] = Bucket(left: left >= 1 ? left - 1 : left, at: now)
    return left >= 1 ? nil : (1 - left) / rate
  }
}
