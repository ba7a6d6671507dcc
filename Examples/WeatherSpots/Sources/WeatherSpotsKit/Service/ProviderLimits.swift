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

  /// Returns those of Open-Meteo's free service: four requests at a time, as it queues five of one address and refuses the sixth, and
  /// four fifths of its limits in any minute, hour and day.
  ///
  /// A bucket that is full at first fills up while it is emptied. So the one of the minute lets through 300 at once and 180 more in the
  /// minute, 480 together; those of the hour and the day hold half of what may go through. A burst waits for the minute; the longer
  /// limits are errors when they are reached.
  public static func openMeteo(clock: any WallClock = SystemClock()) -> ProviderLimits {
    ProviderLimits(
      concurrency: 4,
      quotas: [
        // The last of four requests that wait, each for 25 places of a weight of 3.1, waits for 104 s.
        TokenBucket(
          openMeteoWeightAtOnce, per: .seconds(60 * openMeteoWeightAtOnce / openMeteoWeightPerMinute), maximumWait: .seconds(120),
          clock: clock),
        TokenBucket(2000, per: .hours(1), clock: clock),
        TokenBucket(4000, per: .hours(24), clock: clock),
      ], clock: clock)
  }

  /// The weight that Open-Meteo is asked for at once when nothing was asked for a while.
  public static let openMeteoWeightAtOnce = 300.0
  /// The weight that may follow in each minute; with the one at once, four fifths of Open-Meteo's limit of 600 by the minute.
  public static let openMeteoWeightPerMinute = 180.0

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
