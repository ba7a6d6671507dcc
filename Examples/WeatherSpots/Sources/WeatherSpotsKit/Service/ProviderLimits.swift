public import Larder
import Synchronization

/// Limits that all requests to one provider share.
///
/// The limit of concurrent requests and the quotas hold for the whole provider. Each of its services has a circuit breaker of its own, so
/// that a failing marine service does not stop the weather.
public final class ProviderLimits: Sendable {
  private let concurrency: ConcurrencyLimit
  private let quotas: [TokenBucket]
  private let clock: any WallClock
  private let breakers = Mutex<[String: CircuitBreaker]>([:])

  /// Creates limits without any open breaker.
  ///
  /// - Parameters:
  ///   - concurrency: Number of requests that run at the same time, for all services together.
  ///   - quotas: Token buckets that each place of a request counts against.
  ///   - clock: Clock of the quotas and breakers.
  public init(concurrency: Int, quotas: [TokenBucket], clock: any WallClock = SystemClock()) {
    self.concurrency = ConcurrencyLimit(concurrency)
    self.quotas = quotas
    self.clock = clock
  }

  /// Returns the limits for Open-Meteo's free service.
  ///
  /// Four requests run at the same time, because the service queues five of one address and refuses the sixth. The quotas are four fifths
  /// of its limits for a minute, an hour and a day. A quota can be spent at once and refills evenly.
  ///
  /// Requests wait up to a minute for the quota of the minute. An exhausted quota of the hour or the day is an error. A burst may spend a
  /// full quota and its refill in the first minute, up to twice 480 calls. With more than about 110 spots the service may therefore ask for
  /// a wait, during which no request is sent.
  public static func openMeteo(clock: any WallClock = SystemClock()) -> ProviderLimits {
    ProviderLimits(
      concurrency: 4,
      quotas: [
        TokenBucket(480, per: .seconds(60), maximumWait: .seconds(60), clock: clock),
        TokenBucket(4000, per: .hours(1), clock: clock),
        TokenBucket(8000, per: .hours(24), clock: clock),
      ], clock: clock)
  }

  /// Returns the limits for WeatherKit, whose quota is counted by the month.
  public static func weatherKit(clock: any WallClock = SystemClock()) -> ProviderLimits {
    // 10,000 a day are about 310,000 a month, well below WeatherKit's 500,000.
    ProviderLimits(concurrency: 4, quotas: [TokenBucket(10_000, per: .hours(24), clock: clock)], clock: clock)
  }

  /// Returns the shared limits together with the breaker of one service.
  public func of(_ service: String) -> HostLimits {
    // Look-up and insertion under one lock: two breakers would each see a part of the failures and open later.
    let breaker = breakers.withLock { breakers in
      let breaker = breakers[service] ?? CircuitBreaker(clock: clock)
      breakers[service] = breaker
      return breaker
    }
    return HostLimits(concurrency: concurrency, quotas: quotas, breaker: breaker)
  }
}
