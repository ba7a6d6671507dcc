// Service/ answers what the weather is: from the store while it is fresh, else from a provider, with one request to each of its services.
// Invariant: nothing is fetched that was not asked for, and what could not be fetched never takes away what is stored.
// Called by the commands; uses ForecastProvider, and CachedRepository of Larder for everything about age.

import Foundation
public import Larder

/// The weather of spots, each kind of data with its age.
public struct WeatherService: Sendable {
  /// A request for the weather: a place, some days, and a policy.
  struct Question: Sendable {
    let coordinate: Coordinate
    let place: ForecastPlace
    let day: LocalDay
    let count: Int
    let policy: FetchPolicy
    /// The kinds of data that the provider has; others are not requested.
    let offered: Set<WeatherDataset>
    /// The reason why it is not known which kinds of data the provider has.
    let availabilityProblem: WeatherProblem?

    var days: ForecastPeriod { ForecastPeriod(place, from: day, days: count) }

    /// The same question of someone who waits for newer data.
    var refreshing: Question {
      Question(
        coordinate: coordinate, place: place, day: day, count: count, policy: .cacheFirst, offered: offered,
        availabilityProblem: availabilityProblem)
    }
  }

  /// The provider.
  public let provider: any ForecastProvider
  let caches: WeatherCaches
  private let availabilities: CachedRepository<ForecastPlace, Set<WeatherDataset>>
  private let holds: Holds
  private let sources: WeatherSources
  private let background = BackgroundTasks()
  let clock: any WallClock

  /// Makes the weather of a store.
  ///
  /// - Parameters:
  ///   - storage: Where what was fetched is kept.
  ///   - provider: Who is asked.
  ///   - limits: What all requests to the provider have in common; shared with everything else that asks it.
  ///   - retry: How often a failed request is tried again.
  ///   - gathersPlaces: Whether places that wait for a request at the same time share one, where the provider takes several.
  ///   - clock: The time.
  /// - Throws: What opening the collections throws.
  public init(
    _ storage: SpotStore, provider: any ForecastProvider, limits: ProviderLimits, retry: RetryPolicy = .default,
    gathersPlaces: Bool = false, clock: any WallClock = SystemClock()
  ) async throws(RepositoryError) {
    self.provider = provider
    self.clock = clock
    let services = ServiceSources(provider, limits, placesPerRequest: gathersPlaces ? provider.placesPerRequest : 1)
    let capacity = WeatherCaches.capacity(spots: try await storage.spots.count())
    caches = try await WeatherCaches(storage.store, capacity: capacity, retry: retry, clock: clock, fetch: services.fetch)
    availabilities = CachedRepository(
      storage: try await storage.store.repository(RepositorySchema("weather-availability")),
      freshness: FreshnessPolicy(fresh: .hours(24), usable: .hours(24 * 30)), eviction: EvictionPolicy(countLimit: capacity),
      retry: retry, clock: clock, source: AvailabilitySource(provider: provider, limits: limits))
    holds = try await Holds(storage, clock: clock)
    sources = try await WeatherSources(storage.store)
    await sources.note(provider, at: clock.now)
  }

  /// Returns the weather of a spot: a tuple of exactly what was asked for, in that order.
  ///
  /// What is not asked for is not fetched. What is asked for together and is on one service of the provider is fetched with one request.
  /// - Parameters:
  ///   - spot: Whose weather.
  ///   - day: The first day in the spot's zone; today unless given.
  ///   - days: How many days, 1 to 16.
  ///   - policy: Where the answer may come from.
  ///   - query: The kinds of data.
  /// - Throws: `CancellationError`. A failure of the provider is a state of the reading, and one of the store costs a request.
  public func weather<each Value: Sendable>(
    for spot: Spot, on day: LocalDay? = nil, days: Int = 1, policy: FetchPolicy = .cacheFirst,
    including query: repeat WeatherQuery<each Value>
  ) async throws -> (repeat WeatherReading<each Value>) {
    var datasets: Set<WeatherDataset> = []
    for query in repeat each query { datasets.insert(query.dataset) }
    let question = try await question(spot, day, days, policy, datasets)
    let requests = await requests(datasets, question)
    let tasks = begin(repeat each query, for: question, requests)
    let readings = try await withTaskCancellationHandler {
      (repeat try await (each tasks).value)
    } onCancel: {
      for task in repeat each tasks { task.cancel() }
    }
    if policy == .staleWhileRevalidate, await !fetched(datasets.intersection(question.offered), question).isEmpty {
      let refreshes = begin(repeat each query, for: question.refreshing, requests)
      for task in repeat each refreshes { background.add { _ = await task.result } }
    }
    return readings
  }

  /// Begins to read some kinds of data.
  ///
  /// Those of one service that have to be fetched share a request.
  private func begin<each Value: Sendable>(
    _ query: repeat WeatherQuery<each Value>, for question: Question, _ requests: [ProviderRequest]
  ) -> (repeat Task<WeatherReading<each Value>, any Error>) {
    var count = 0
    for _ in repeat each query { count += 1 }
    let group = FetchGroup(count)
    return
      (repeat Task { [self] in
        try await ProviderRequest.$together.withValue(requests) { try await group.run { try await (each query).read(self, question) } }
      })
  }

  /// Waits until the refreshes that ``FetchPolicy/staleWhileRevalidate`` began are done.
  public func settled() async { await background.finish() }

  /// Returns the kinds of data that the provider has for a spot; fetched once a day where the provider has to be asked.
  ///
  /// - Throws: What asking throws when nothing is known.
  public func availability(for spot: Spot, policy: FetchPolicy = .cacheFirst) async throws -> Set<WeatherDataset> {
    try await availabilities.value(for: place(spot), policy: policy).value
  }

  func place(_ spot: Spot) -> ForecastPlace { place(spot, of: provider.storageName) }

  private func place(_ spot: Spot, of storageName: String) -> ForecastPlace {
    ForecastPlace(provider: storageName, spot.coordinate, timezone: spot.timezone, country: provider.needsCountry ? spot.country : "")
  }

  /// Returns the place under which data of a spot are stored: that of the server in use, or, if that has none, that of the
  /// server with the newest forecast.
  private func storedPlace(_ spot: Spot, _ day: LocalDay) async -> ForecastPlace {
    let own = place(spot)
    guard provider.storageName == provider.name, await fetchedAt(day, at: own) == nil else { return own }
    var (newest, place): (Date?, ForecastPlace) = (nil, own)
    for name in await sources.names(of: provider.name) {
      let other = self.place(spot, of: name)
      guard let date = await fetchedAt(day, at: other), newest.map({ $0 < date }) ?? true else { continue }
      (newest, place) = (date, other)
    }
    return place
  }

  /// Returns when the newest stored hours of a day were fetched, however old they are; `nil` when there are none.
  func fetchedAt(_ day: LocalDay, at place: ForecastPlace) async -> Date? {
    var newest: Date?
    for back in 0..<ForecastPeriod.spans.all {
      for days in [ForecastPeriod.spans.week, ForecastPeriod.spans.all] where back < days {
        let key = ForecastPeriod(place, from: day.advanced(by: -back), days: days)
        do {
          guard let entry = try await caches.hourly.storage.find(by: key), entry.value != nil else { continue }
          newest = max(newest ?? entry.fetchedAt, entry.fetchedAt)
        } catch { continue }  // what cannot be read is not there
      }
    }
    return newest
  }

  private func question(
    _ spot: Spot, _ day: LocalDay?, _ days: Int, _ policy: FetchPolicy, _ asked: Set<WeatherDataset>
  ) async throws -> Question {
    let day = day ?? LocalDay(containing: clock.now, in: spot.zone)
    let place = policy == .cacheOnly ? await storedPlace(spot, day) : place(spot)
    var offered = Set(WeatherDataset.allCases.filter { provider.service(of: $0) != nil })
    var problem: WeatherProblem?
    if !asked.isDisjoint(with: offered), provider.needsCountry {
      // Forecasts are everywhere; what a country may lack is promised only after asking.
      do { offered.formIntersection(try await availability(for: spot, policy: policy == .cacheOnly ? .cacheOnly : .cacheFirst)) } catch {
        if error is CancellationError { throw error }
        problem = WeatherProblem(error)
      }
    }
    return Question(
      coordinate: spot.coordinate, place: place, day: day, count: min(max(days, 1), 16),
      policy: policy, offered: offered, availabilityProblem: problem)
  }
}

extension WeatherService {
  /// Returns the requests for kinds of data that are not fresh, one for each service.
  private func requests(_ datasets: Set<WeatherDataset>, _ question: Question) async -> [ProviderRequest] {
    await fetched(datasets.intersection(question.offered), question).values.map(question.days.request)
  }

  private func needsFetch(_ dataset: WeatherDataset, _ question: Question) async -> Bool {
    switch question.policy {
    case .cacheOnly: return false
    case .networkOnly, .networkFirst: return true
    case .cacheFirst, .staleWhileRevalidate: break
    }
    return switch dataset {
    case .current: await !isFresh(caches.current, question.place)
    case .alerts: await !isFresh(caches.alerts, question.place)
    case .hourly: await !isFresh(caches.hourly, question.days)
    case .daily: await !isFresh(caches.daily, question.days)
    case .marine: await !isFresh(caches.marine, question.days)
    case .astronomy: false
    }
  }

  /// Returns the kinds of data that have to be fetched, by service.
  private func fetched(_ datasets: Set<WeatherDataset>, _ question: Question) async -> [String: Set<WeatherDataset>] {
    var byService: [String: Set<WeatherDataset>] = [:]
    for dataset in datasets {
      if let service = provider.service(of: dataset), await needsFetch(dataset, question) {
        byService[service, default: []].insert(dataset)
      }
    }
    return byService
  }

  private func isFresh<Key, Value>(_ cache: CachedRepository<Key, Value>, _ key: Key) async -> Bool {
    do {
      guard let entry = try await cache.storage.find(by: key) else { return false }
      return entry.fetchedAt <= clock.now && clock.now < entry.freshUntil
    } catch { return false }
  }

  /// Reads one kind of data.
  func read<Key, Value>(
    _ dataset: WeatherDataset, _ cache: CachedRepository<Key, Value>, _ key: Key, _ question: Question
  ) async throws -> WeatherReading<Value> {
    guard question.offered.contains(dataset) else { return .unsupported }
    if dataset == .alerts, let problem = question.availabilityProblem { return .unavailable(problem) }
    do {
      return .available(try await cache.value(for: key, policy: question.policy))
    } catch CacheError.absent(_, let since) {
      return .noCoverage(since: since)
    } catch ProviderError.unsupported {
      return .unsupported
    } catch let error as CancellationError {
      throw error
    } catch {
      return .unavailable(WeatherProblem(error))
    }
  }

  /// Reads a kind of data of days.
  ///
  /// A failure of the sea with nothing to show in its place holds for three minutes. It is no negative entry of the cache, since that would
  /// take the place of an older sea.
  func readNew<Value>(
    _ dataset: WeatherDataset, _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question
  ) async throws -> WeatherReading<Value> {
    guard dataset == .marine else { return try await read(dataset, cache, question.days, question) }
    let id = question.days.seaID
    let isExplicit = question.policy != .cacheFirst && question.policy != .staleWhileRevalidate
    if !isExplicit, let problem = holds.hold(id)?.problem { return .unavailable(problem) }
    let reading = try await read(dataset, cache, question.days, question)
    switch reading {
    case .unavailable(let problem) where question.policy != .cacheOnly && problem.isTransient:
      await holds.hold(id, because: problem, for: .seconds(180))
    case .available, .noCoverage: await holds.release(id)
    case .unavailable, .unsupported: break
    }
    return reading
  }

  /// Sun and moon of the asked days.
  func astronomy(_ question: Question) -> WeatherReading<[Astronomy]> {
    let days = (0..<question.count).map {
      Astronomy(at: question.coordinate, on: question.day.advanced(by: $0), in: question.place.zone)
    }
    return .available(Cached(value: days, fetchedAt: clock.now, age: .zero, state: .fresh, origin: .memory))
  }
}

private struct AvailabilitySource: RemoteSource {
  let provider: any ForecastProvider
  let limits: ProviderLimits

  func fetch(_ place: ForecastPlace, validator: String?) async throws -> Fetched<Set<WeatherDataset>> {
    .value(try await limits.of("availability").run { try await provider.loggedAvailability(at: place) })
  }
}
