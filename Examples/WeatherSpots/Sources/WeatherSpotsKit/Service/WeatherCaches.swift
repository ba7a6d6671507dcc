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
  ///   - fetch: Fetches one kind of data; its request and that of another kind may be one.
  init(
    _ store: Store, capacity: Int, retry: RetryPolicy, clock: any WallClock,
    fetch: @escaping @Sendable (ProviderRequest, WeatherDataset) async throws -> ProviderAnswer
  ) async throws(RepositoryError) {
    let eviction = EvictionPolicy(countLimit: capacity)
    @Sendable func today(_ place: ForecastPlace) -> LocalDay { LocalDay(containing: clock.now, in: place.zone) }
    current = CachedRepository(
      storage: try await store.repository(RepositorySchema("weather-current")), freshness: Freshness.current, eviction: eviction,
      retry: retry, clock: clock,
      source: DatasetSource(fetch, .current, { $0.current }) { ProviderRequest($0, from: today($0), days: 1, [.current]) })
    alerts = CachedRepository(
      storage: try await store.repository(RepositorySchema("weather-alerts")), freshness: Freshness.alerts, eviction: eviction,
      retry: retry, clock: clock,
      source: DatasetSource(fetch, .alerts, { $0.alerts }) { ProviderRequest($0, from: today($0), days: 1, [.alerts]) })
    hourly = CachedRepository(
      storage: try await store.repository(RepositorySchema("weather-hourly")), freshness: Freshness.hourly, eviction: eviction,
      retry: retry, clock: clock, source: DatasetSource(fetch, .hourly, { $0.hourly }) { $0.request([.hourly]) })
    daily = CachedRepository(
      storage: try await store.repository(RepositorySchema("weather-daily")), freshness: Freshness.daily, eviction: eviction,
      retry: retry, clock: clock, source: DatasetSource(fetch, .daily, { $0.daily }) { $0.request([.daily]) })
    marine = CachedRepository(
      storage: try await store.repository(RepositorySchema("weather-marine")), freshness: Freshness.marine, eviction: eviction,
      retry: retry, clock: clock, source: DatasetSource(fetch, .marine, { $0.marine }) { $0.request([.marine]) })
  }
}

extension ForecastPeriod {
  func request(_ datasets: Set<WeatherDataset>) -> ProviderRequest { ProviderRequest(place, from: day, days: days, datasets) }
}

/// One kind of data of a provider, as a cache asks for it.
private struct DatasetSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  private let fetch: @Sendable (ProviderRequest, WeatherDataset) async throws -> ProviderAnswer
  private let dataset: WeatherDataset
  private let part: @Sendable (ProviderAnswer) -> ProviderAnswer.Part<Value>?
  private let request: @Sendable (Key) -> ProviderRequest

  init(
    _ fetch: @escaping @Sendable (ProviderRequest, WeatherDataset) async throws -> ProviderAnswer, _ dataset: WeatherDataset,
    _ part: @escaping @Sendable (ProviderAnswer) -> ProviderAnswer.Part<Value>?,
    request: @escaping @Sendable (Key) -> ProviderRequest
  ) {
    self.fetch = fetch
    self.dataset = dataset
    self.part = part
    self.request = request
  }

  func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    do {
      switch part(try await fetch(request(key), dataset)) {
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
