import Foundation
public import Larder

/// The weather that is stored, for a process that reads beside the one that fetches: a widget.
///
/// It asks nobody and writes nothing. What it shows is at most as old as the caches allow, and says how old it is.
public struct StoredWeather: Sendable {
  private let caches: WeatherCaches
  private let clock: any WallClock

  /// Makes the stored weather of a store.
  ///
  /// - Throws: What opening the collections throws.
  public init(_ storage: SpotStore, clock: any WallClock = SystemClock()) async throws(RepositoryError) {
    let nobody = Nobody()
    let limits = HostLimits()
    caches = try await WeatherCaches(storage.store, RequestCombiner(nobody) { _ in limits }, retry: .never, clock: clock)
    self.clock = clock
  }

  /// The newest forecast that is stored of a spot and has its present day; `nil` when there is none that may be shown.
  ///
  /// - Parameter providers: Whose; what they fetched is kept apart.
  /// - Throws: `RepositoryError` of the store.
  public func forecast(for spot: Spot, of providers: [StoredProvider]) async throws -> SpotWeather? {
    let today = LocalDay(containing: clock.now, in: spot.zone)
    var newest: SpotWeather?
    for provider in providers {
      let place = Place(
        provider: provider.name, spot.coordinate, timezone: spot.timezone, country: provider.needsCountry ? spot.country : "")
      for key in PlaceDays.mayHold(today, at: place) {
        guard let found = try await forecast(for: spot, on: today, key, provider.attribution) else { continue }
        if let other = newest?.hourly.cached, let this = found.hourly.cached, other.fetchedAt >= this.fetchedAt { continue }
        newest = found
      }
    }
    return newest
  }

  private func forecast(for spot: Spot, on day: LocalDay, _ key: PlaceDays, _ attribution: [String]) async throws -> SpotWeather? {
    let hourly = try await reading(caches.hourly, key)
    guard hourly.value?.hours.contains(where: { LocalDay(containing: $0.instant, in: spot.zone) == day }) ?? false else { return nil }
    return SpotWeather(
      spot: spot, day: day, count: 1, current: try await reading(caches.current, key.place), hourly: hourly,
      daily: try await reading(caches.daily, key), alerts: try await reading(caches.alerts, key.place),
      marine: try await reading(caches.marine, key),
      astronomy: [Astronomy(at: spot.coordinate, on: day, in: spot.zone)], attribution: attribution)
  }

  private func reading<Key, Value>(_ cache: CachedRepository<Key, Value>, _ key: Key) async throws -> Reading<Value> {
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

  /// Says of a provider what reading its stored data takes.
  public init(name: String, needsCountry: Bool, attribution: [String]) {
    self.name = name
    self.needsCountry = needsCountry
    self.attribution = attribution
  }

  /// All providers of the program.
  public static let all = [
    StoredProvider(OpenMeteoProvider()), StoredProvider(name: "weatherkit", needsCountry: true, attribution: WeatherKitProvider.credit),
    StoredProvider(RecordedProvider()),
  ]

  private init(_ provider: some ForecastProvider) {
    self.init(name: provider.name, needsCountry: provider.needsCountry, attribution: provider.attribution)
  }
}

/// A provider that has nothing, and is never asked.
private struct Nobody: ForecastProvider {
  var name: String { "" }
  var attribution: [String] { [] }
  var needsCountry: Bool { false }
  func availability(at place: Place) async throws(ProviderError) -> Set<WeatherDataset> { [] }
  func service(of dataset: WeatherDataset) -> String? { nil }
  func weight(of request: ProviderRequest) -> Double { 0 }
  func fetch(_ request: ProviderRequest) async -> ProviderAnswer { ProviderAnswer(failure: .unsupported, of: request.datasets) }
}
