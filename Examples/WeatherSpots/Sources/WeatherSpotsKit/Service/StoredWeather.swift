import Foundation
public import Larder

/// The weather that is stored, for a process that reads beside the one that fetches: a widget.
///
/// It makes no request and writes nothing. What it shows is at most as old as the caches allow, and says how old it is.
public struct StoredWeather: Sendable {
  private let caches: WeatherCaches
  private let clock: any WallClock
  private let sources: WeatherSources
  private let availabilities: LocalRepository<CachedEntry<ForecastPlace, Set<WeatherDataset>>>

  /// Makes the stored weather of a store.
  ///
  /// - Throws: What opening the collections throws.
  public init(_ storage: SpotStore, clock: any WallClock = SystemClock()) async throws(RepositoryError) {
    let capacity = WeatherCaches.capacity(spots: try await storage.spots.count())
    caches = try await WeatherCaches(storage.store, capacity: capacity, retry: .never, clock: clock) { _ in
      throw ProviderError.unsupported  // never reached: everything is read with the policy `cacheOnly`
    }
    sources = try await WeatherSources(storage.store)
    availabilities = try await storage.store.repository(RepositorySchema("weather-availability"))
    self.clock = clock
  }

  /// Returns the newest forecast that is stored of a spot and has its present day; `nil` when there is none that may be shown.
  ///
  /// - Parameter providers: Whose; what they fetched is kept apart.
  /// - Throws: `RepositoryError` of the store.
  public func forecast(for spot: Spot, of providers: [StoredProvider]) async throws -> SpotWeather? {
    let today = LocalDay(containing: clock.now, in: spot.zone)
    var newest: SpotWeather?
    for provider in providers {
      for name in await [provider.name] + sources.names(of: provider.name) {
        let place = ForecastPlace(
          provider: name, spot.coordinate, timezone: spot.timezone, country: provider.needsCountry ? spot.country : "")
        for key in ForecastPeriod.mayHold(today, at: place) {
          guard let found = try await forecast(for: spot, on: today, key, provider) else { continue }
          if let other = newest?.hourly.cached, let this = found.hourly.cached, other.fetchedAt >= this.fetchedAt { continue }
          newest = found
        }
      }
    }
    return newest
  }

  private func forecast(for spot: Spot, on day: LocalDay, _ key: ForecastPeriod, _ provider: StoredProvider) async throws -> SpotWeather? {
    let hourly = try await reading(caches.hourly, key)
    guard hourly.value?.hours.contains(where: { LocalDay(containing: $0.instant, in: spot.zone) == day }) ?? false else { return nil }
    let hasAlerts = try await offers(.alerts, provider, at: key.place)
    let alerts: WeatherReading<WeatherAlerts> = hasAlerts ? try await reading(caches.alerts, key.place) : .unsupported
    var weather = SpotWeather(
      spot: spot, day: day, count: 1, current: try await reading(caches.current, key.place), hourly: hourly,
      daily: try await reading(caches.daily, key), alerts: alerts,
      marine: provider.offered.contains(.marine) ? try await reading(caches.marine, key) : .unsupported,
      astronomy: [Astronomy(at: spot.coordinate, on: day, in: spot.zone)], attribution: provider.attribution)
    if case .unavailable = alerts { weather.lastKnownAlerts = await LastKnownAlerts(caches.alerts, key.place, at: clock.now) }
    return weather
  }

  /// Returns whether the provider has a kind of data at a place, as far as it is known.
  private func offers(_ dataset: WeatherDataset, _ provider: StoredProvider, at place: ForecastPlace) async throws(RepositoryError) -> Bool
  {
    guard provider.offered.contains(dataset), provider.needsCountry else { return provider.offered.contains(dataset) }
    return try await availabilities.find(by: place)?.value?.contains(dataset) ?? true
  }

  private func reading<Key, Value>(_ cache: CachedRepository<Key, Value>, _ key: Key) async throws -> WeatherReading<Value> {
    do {
      return .available(try await cache.value(for: key, policy: .cacheOnly))
    } catch CacheError.absent(_, let since) {
      return .noCoverage(since: since)
    } catch let error as RepositoryError {
      throw error
    } catch {
      return .unavailable(WeatherProblem(error))
    }
  }
}

/// A provider whose data may be stored.
public struct StoredProvider: Sendable {
  /// The name that its data are kept under.
  public let name: String
  let needsCountry: Bool
  let attribution: [String]
  /// The kinds of data that it has, at least somewhere.
  let offered: Set<WeatherDataset>

  /// All providers of the program.
  public static let all = [
    StoredProvider(OpenMeteoProvider()),
    StoredProvider(
      name: "weatherkit", needsCountry: true, attribution: WeatherKitProvider.credit,
      offered: [.current, .hourly, .daily, .alerts]),
    StoredProvider(OpenMeteoProvider.recorded()),
  ]
}

extension StoredProvider {
  private init(_ provider: some ForecastProvider) {
    self.init(
      name: provider.name, needsCountry: provider.needsCountry, attribution: provider.attribution,
      offered: Set(WeatherDataset.allCases.filter { provider.service(of: $0) != nil }))
  }
}
