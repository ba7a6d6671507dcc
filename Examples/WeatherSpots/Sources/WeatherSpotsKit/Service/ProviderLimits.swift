public import Larder
import Synchronization

/// The limits that all requests to one provider share.
///
/// At most so many at a time and so many in all for the whole provider, and a breaker for each of its services: a sea that fails does not
/// stop the weather.
public final class ProviderLimits: Sendable {
  private let concurrency: ConcurrencyLimit
  private let quotas: [TokenBucket]
  private let clock: any WallClock
  private let breakers = Mutex<[String: CircuitBreaker]>([:])

  /// Makes limits.
  ///
  /// - Parameters:
  ///   - concurrency: The number of requests that run at a time, for all services.
  ///   - quotas: The quotas that each place of a request counts against.
  ///   - clock: The time.
  public init(concurrency: Int, quotas: [TokenBucket], clock: any WallClock = SystemClock()) {
    self.concurrency = ConcurrencyLimit(concurrency)
    self.quotas = quotas
    self.clock = clock
  }

  /// Returns those of Open-Meteo's free service: four requests at a time, as it queues five of one address and refuses the sixth, and four
  /// fifths of its limits by the minute, the hour and the day: so much at once, which comes back evenly.
  ///
  /// A burst waits for the minute; the longer limits are errors when they are reached. Behind a burst the first minute may take what comes
  /// back too, up to twice the share: for more than some 110 spots the service may ask for time, which is then kept.
  public static func openMeteo(clock: any WallClock = SystemClock()) -> ProviderLimits {
    ProviderLimits(
      concurrency: 4,
      quotas: [
        TokenBucket(480, per: .seconds(60), maximumWait: .seconds(60), clock: clock),
        TokenBucket(4000, per: .hours(1), clock: clock),
        TokenBucket(8000, per: .hours(24), clock: clock),
      ], clock: clock)
  }

  /// Returns those of WeatherKit, which counts by the month.
  public static func weatherKit(clock: any WallClock = SystemClock()) -> ProviderLimits {
    ProviderLimits(concurrency: 4, quotas: [TokenBucket(10_000, per: .hours(24), clock: clock)], clock: clock)
  }

  /// Returns the limits of one service.
  public func of(_ service: String) -> HostLimits {
    let breaker = breakers.withLock { breakers in
      let breaker = breakers[service] ?? CircuitBreaker(clock: clock)
      breakers[service] = breaker
      return breaker
    }
    return HostLimits(concurrency: concurrency, quotas: quotas, breaker: breaker)
  }
}
