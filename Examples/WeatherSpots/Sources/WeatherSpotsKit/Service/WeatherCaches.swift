import Foundation
import Larder

/// The caches of a provider's data, one for each kind, in the collections of one store.
///
/// Freshness is theirs, as the provider's models and the limits of its service make sensible; what the provider says itself goes first.
struct WeatherCaches: Sendable {
  let current: CachedRepository<ForecastPlace, CurrentWeather>
  let alerts: CachedRepository<ForecastPlace, WeatherAlerts>
  let hourly: CachedRepository<ForecastPeriod, HourlyForecast>
  let daily: CachedRepository<ForecastPeriod, DailyForecast>
  let marine: CachedRepository<ForecastPeriod, MarineForecast>

  /// The lifetimes of each kind: fresh, and usable with its age when there is nothing newer.
  enum Freshness {
    static let current = FreshnessPolicy(fresh: .seconds(600), usable: .hours(2))
    static let hourly = FreshnessPolicy(fresh: .hours(1), usable: .hours(48))
    static let daily = FreshnessPolicy(fresh: .hours(1), usable: .hours(48))
    static let marine = FreshnessPolicy(fresh: .hours(3), usable: .hours(48))
    /// A warning that may have been lifted is never shown as one in force.
    static let alerts = FreshnessPolicy(fresh: .seconds(300), usable: .seconds(300))
  }

  /// Returns how many entries are kept of each kind: those of today and of yesterday of every spot, and some of other points.
  static func capacity(spots: Int) -> Int { 500 + 2 * spots }

  /// Opens the caches.
  ///
  /// - Parameters:
  ///   - store: The store of the collections.
  ///   - capacity: The number of entries that are kept of each kind.
  ///   - retry: The retries of a failed fetch.
  ///   - clock: The time.
  ///   - fetch: Fetches kinds of data of one service and place.
  init(
    _ store: Store, capacity: Int, retry: RetryPolicy, clock: any WallClock,
    fetch: @escaping @Sendable (ProviderRequest) async throws -> ProviderAnswer
  ) async throws(RepositoryError) {
    @Sendable func today(_ place: ForecastPlace, _ dataset: WeatherDataset) -> ProviderRequest {
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

  /// The statistics since the caches were opened, by kind.
  var statistics: [String: CacheStatistics] {
    [
      "current": current.statistics, "hourly": hourly.statistics, "daily": daily.statistics, "marine": marine.statistics,
      "alerts": alerts.statistics,
    ]
  }
}

extension ProviderRequest {
  /// The requests of the call that runs, one for each service.
  ///
  /// The sources of the caches ask for all kinds of such a request, and the `GatheredSource` below them sends equal ones once.
  @TaskLocal static var together: [ProviderRequest] = []

  /// This request, or that of the call that runs if that has its kinds of data too.
  fileprivate var together: ProviderRequest { Self.together.first { $0.includes(self) } ?? self }

  /// Returns whether an answer to this request answers another one too.
  private func includes(_ other: ProviderRequest) -> Bool {
    let needsDays = other.datasets != [.current] && other.datasets != [.alerts]
    return place == other.place && datasets.isSuperset(of: other.datasets) && (!needsDays || (day == other.day && days == other.days))
  }
}

extension ForecastPeriod {
  /// The id of a failure of the sea.
  var seaID: String { "sea \(place.provider) \(place.cell.row),\(place.cell.column) \(place.timezone) \(day) \(days)" }

  func request(_ datasets: Set<WeatherDataset>) -> ProviderRequest { ProviderRequest(place, from: day, days: days, datasets) }
}

/// One kind of data of a provider, as a cache asks for it.
private struct DatasetSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  let dataset: WeatherDataset
  let fetch: @Sendable (ProviderRequest) async throws -> ProviderAnswer
  let part: @Sendable (ProviderAnswer) -> ProviderAnswer.Part<Value>?
  let request: @Sendable (Key) -> ProviderRequest

  func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    do {
      switch part(try await fetch(request(key).together)) {
      case .data(let value, let until): return .value(value, freshUntil: until)
      case .noCoverage(let lifetime): return .absent(reason: Self.noCoverage, lifetime: lifetime)
      case .failure(let error): throw error
      case nil: throw ProviderError.malformed("an answer without \(dataset.rawValue)")
      }
    } catch ProviderError.noCoverage {
      // The service says so itself, which is surer than an empty answer.
      return .absent(reason: Self.noCoverage, lifetime: .hours(7 * 24))
    }
  }

  private static var noCoverage: String { "no coverage" }
}
