import Foundation
import Larder

/// Caches of a provider's data, one for each kind, in the collections of one store.
///
/// The lifetimes follow how often the provider's models run and the limits of its service. An expiry time in an answer takes precedence.
struct WeatherCaches: Sendable {
  let current: CachedRepository<ForecastPlace, CurrentWeather>
  let alerts: CachedRepository<ForecastPlace, WeatherAlerts>
  let hourly: CachedRepository<ForecastPeriod, HourlyForecast>
  let daily: CachedRepository<ForecastPeriod, DailyForecast>
  let marine: CachedRepository<ForecastPeriod, MarineForecast>

  /// Lifetimes of each kind of data.
  ///
  /// Fresh data are returned without a request. Usable data are shown with their age if nothing newer is available.
  enum Freshness {
    static let current = FreshnessPolicy(fresh: .seconds(600), usable: .hours(2))
    static let hourly = FreshnessPolicy(fresh: .hours(1), usable: .hours(48))
    static let daily = FreshnessPolicy(fresh: .hours(1), usable: .hours(48))
    static let marine = FreshnessPolicy(fresh: .hours(3), usable: .hours(48))
    /// Lifetime of warnings, usable only while fresh, since a warning that may have been lifted must not be shown as in force.
    static let alerts = FreshnessPolicy(fresh: .seconds(300), usable: .seconds(300))
  }

  /// Returns the number of entries to keep of each kind: today's and yesterday's for every spot, and 500 for other points.
  static func capacity(spots: Int) -> Int { 500 + 2 * spots }

  /// Opens the caches.
  ///
  /// - Parameters:
  ///   - store: Store of the collections.
  ///   - capacity: Number of entries to keep of each kind.
  ///   - retry: Retry policy of a failed fetch.
  ///   - clock: Clock of the lifetimes.
  ///   - fetch: Fetches kinds of data of one service and place.
  init(
    _ store: Store, capacity: Int, retry: RetryPolicy, clock: any WallClock,
    fetch: @escaping @Sendable (ProviderRequest) async throws -> ProviderAnswer
  ) async throws(RepositoryError) {
    @Sendable func today(_ place: ForecastPlace, _ dataset: WeatherDataset) -> ProviderRequest {
      // The key has no day. Requests need one, and it must be the day of the place at the time of the fetch.
      ProviderRequest(place, from: LocalDay(containing: clock.now, in: place.zone), days: 1, [dataset])
    }
    @Sendable func days(_ period: ForecastPeriod, _ dataset: WeatherDataset) -> ProviderRequest { period.request([dataset]) }
    func open<Key, Value>(
      _ dataset: WeatherDataset, _ freshness: FreshnessPolicy, _ request: @escaping @Sendable (Key, WeatherDataset) -> ProviderRequest,
      _ part: @escaping @Sendable (ProviderAnswer) -> ProviderAnswer.Part<Value>?
    ) async throws(RepositoryError) -> CachedRepository<Key, Value> {
      CachedRepository(
        storage: try await store.repository(RepositorySchema("weather-\(dataset.rawValue)")), freshness: freshness,
        eviction: EvictionPolicy(countLimit: capacity), retry: retry, clock: clock,
        source: DatasetSource(dataset: dataset, fetch: fetch, part: part) { request($0, dataset) })
    }
    current = try await open(.current, Freshness.current, today) { $0.current }
    alerts = try await open(.alerts, Freshness.alerts, today) { $0.alerts }
    hourly = try await open(.hourly, Freshness.hourly, days) { $0.hourly }
    daily = try await open(.daily, Freshness.daily, days) { $0.daily }
    marine = try await open(.marine, Freshness.marine, days) { $0.marine }
  }

  /// Statistics since the caches were opened, those of the kinds that all spots have first.
  var statistics: [CacheStatistics] { [hourly.statistics, daily.statistics, current.statistics, marine.statistics, alerts.statistics] }
}

extension ProviderRequest {
  /// Requests of the running call of ``WeatherService``, one for each service.
  ///
  /// The source of each cache fetches the whole request of its service. The `GatheredSource` below sends equal requests once.
  @TaskLocal static var together: [ProviderRequest] = []

  /// Request of the running call that includes this one, or this request itself if there is none.
  fileprivate var together: ProviderRequest { Self.together.first { $0.includes(self) } ?? self }

  /// Returns whether an answer to this request is an answer to another one too.
  private func includes(_ other: ProviderRequest) -> Bool {
    // Current conditions and warnings have no range of days, so any range includes them.
    let needsDays = other.datasets != [.current] && other.datasets != [.alerts]
    return place == other.place && datasets.isSuperset(of: other.datasets) && (!needsDays || (day == other.day && days == other.days))
  }
}

extension ForecastPeriod {
  /// Id of the hold on a failed marine forecast.
  var seaID: String { "sea \(place.provider) \(place.cell.row),\(place.cell.column) \(place.timezone) \(day) \(days)" }

  func request(_ datasets: Set<WeatherDataset>) -> ProviderRequest { ProviderRequest(place, from: day, days: days, datasets) }
}

/// Remote source of one kind of data, for the cache of that kind.
private struct DatasetSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  let dataset: WeatherDataset
  let fetch: @Sendable (ProviderRequest) async throws -> ProviderAnswer
  let part: @Sendable (ProviderAnswer) -> ProviderAnswer.Part<Value>?
  let request: @Sendable (Key) -> ProviderRequest

  func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    do {
      // The larger request of the running call, so that all kinds of one service share one fetch.
      switch part(try await fetch(request(key).together)) {
      case .data(let value, let until): return .value(value, freshUntil: until)
      case .noCoverage(let lifetime): return .absent(reason: Self.noCoverage, lifetime: lifetime)
      case .failure(let error): throw error
      // Never as an absence, which would hide a fault of a provider for days.
      case nil: throw ProviderError.malformed("an answer without \(dataset.rawValue)")
      }
    } catch ProviderError.noCoverage {
      // Seven days, where an empty answer holds for one: here the service itself says that it has no data.
      return .absent(reason: Self.noCoverage, lifetime: .hours(7 * 24))
    }
  }

  private static var noCoverage: String { "no coverage" }
}
