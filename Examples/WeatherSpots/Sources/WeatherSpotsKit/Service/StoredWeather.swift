import Foundation
public import Larder

/// Read-only access to the stored weather, for a process such as a widget that reads while another process fetches.
///
/// It sends no request and writes nothing. Its data have their age, and data that the caches consider expired are not returned.
public struct StoredWeather: Sendable {
  private let caches: WeatherCaches
  private let clock: any WallClock
  private let sources: WeatherSources
  private let availabilities: LocalRepository<CachedEntry<ForecastPlace, Set<WeatherDataset>>>

  /// Opens the caches of a store for reading.
  ///
  /// - Throws: `RepositoryError` if a collection cannot be opened.
  public init(_ storage: SpotStore, clock: any WallClock = SystemClock()) async throws(RepositoryError) {
    let capacity = WeatherCaches.capacity(spots: try await storage.spots.count())
    caches = try await WeatherCaches(storage.store, capacity: capacity, retry: .never, clock: clock) { _ in
      throw ProviderError.unsupported  // Never reached, because all reads have the policy `cacheOnly`.
    }
    sources = try await WeatherSources(storage.store)
    availabilities = try await storage.store.repository(RepositorySchema("weather-availability"))
    self.clock = clock
  }

  /// Returns the newest stored forecast that covers a spot's present day, or `nil` if there is none or all are expired.
  ///
  /// - Parameter providers: Providers whose data are considered. Each has data of its own.
  /// - Throws: `RepositoryError` of the store.
  public func forecast(for spot: Spot, of providers: [StoredProvider]) async throws -> SpotWeather? {
    // The day of the spot's zone, which may differ from the day of this device.
    let today = LocalDay(containing: clock.now, in: spot.zone)
    var newest: SpotWeather?
    for provider in providers {
      for name in await [provider.name] + sources.names(of: provider.name) {
        let place = ForecastPlace(
          provider: name, spot.coordinate, timezone: spot.timezone, country: provider.needsCountry ? spot.country : "")
        for key in ForecastPeriod.mayHold(today, at: place) {
          guard let found = try await forecast(for: spot, on: today, key, provider) else { continue }
          // By fetch time, across all providers and servers.
          if let other = newest?.hourly.cached, let this = found.hourly.cached, other.fetchedAt >= this.fetchedAt { continue }
          newest = found
        }
      }
    }
    return newest
  }

  private func forecast(for spot: Spot, on day: LocalDay, _ key: ForecastPeriod, _ provider: StoredProvider) async throws -> SpotWeather? {
    let hourly = try await reading(caches.hourly, key)
    // A forecast of another first day may be fresh and still have no hour of today.
    guard hourly.value?.hours.contains(where: { LocalDay(containing: $0.instant, in: spot.zone) == day }) ?? false else { return nil }
    let hasAlerts = try await offers(.alerts, provider, at: key.place)
    let alerts: WeatherReading<WeatherAlerts> = hasAlerts ? try await reading(caches.alerts, key.place) : .unsupported
    var weather = SpotWeather(
      spot: spot, day: day, count: 1, current: try await reading(caches.current, key.place), hourly: hourly,
      daily: try await reading(caches.daily, key), alerts: alerts,
      marine: provider.offered.contains(.marine) ? try await reading(caches.marine, key) : .unsupported,
      astronomy: [Astronomy(at: spot.coordinate, on: day, in: spot.zone)], attribution: provider.attribution)
    // Expired warnings must not look like "no warnings", so the last known ones go along, marked as such.
    if case .unavailable = alerts { weather.lastKnownAlerts = await LastKnownAlerts(caches.alerts, key.place, at: clock.now) }
    return weather
  }

  /// Returns whether the provider offers a kind of data at a place.
  ///
  /// True if the availability at the place is not stored.
  private func offers(_ dataset: WeatherDataset, _ provider: StoredProvider, at place: ForecastPlace) async throws(RepositoryError) -> Bool
  {
    guard provider.offered.contains(dataset), provider.needsCountry else { return provider.offered.contains(dataset) }
    // `true` if unknown: the reading is then "unavailable", where `false` would say "not offered here".
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

/// Description of a provider whose data a store may have.
public struct StoredProvider: Sendable {
  /// Name under which the provider's data are stored.
  public let name: String
  let needsCountry: Bool
  let attribution: [String]
  /// Kinds of data that the provider offers in at least one place.
  let offered: Set<WeatherDataset>

  /// Descriptions of all providers of the program.
  public static let all = [
    StoredProvider(OpenMeteoProvider()),
    StoredProvider(
      // Written out, because a `WeatherKitProvider` cannot be made without a key.
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
