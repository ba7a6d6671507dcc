internal import Synchronization

/// The requests that identities and their devices have left: buckets that fill with time.
///
/// A device has a name of its client's choosing, so that its bucket only shares out what the identity has: whoever makes up new names gets
/// new buckets of devices, and the one bucket of the identity runs dry.
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
  /// The number of buckets beyond which full ones are forgotten, which says the same as keeping them.
  private static let most = 20_000

  init(_ options: ServerOptions) { self.options = options }

  /// Takes one request of an identity, and returns the seconds to wait where there is none left.
  func take(_ identity: Identity, now: ContinuousClock.Instant = .now) -> Double? {
    let factor = Double(options.devicesAtOnce)
    return identities.withLock {
      Self.take(Key(identity: identity.name), from: &$0, options.requestsPerSecond * factor, options.burst * factor, now)
    }
  }

  /// Takes one request of a device beside that of its identity; the device without a name is one, too.
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
      // Of so many busy ones none is known for long.
      if buckets.count > most { buckets = [:] }
    }
    let left = buckets[key].map { amount(in: $0) } ?? burst
    buckets[key] = Bucket(left: left >= 1 ? left - 1 : left, at: now)
    return left >= 1 ? nil : (1 - left) / rate
  }
}
