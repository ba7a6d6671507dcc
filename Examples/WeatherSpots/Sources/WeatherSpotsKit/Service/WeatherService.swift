// Service/ returns the weather from the store while it is fresh, else from a provider, with one request to each of its services.
// Invariant: only requested data are fetched, and a failed request never removes stored data.
// Called by the commands. Uses ForecastProvider to fetch, and Larder's CachedRepository for freshness and storage.

import Foundation
public import Larder

/// Cached forecast service, which returns the weather of spots from a store or a provider.
public struct WeatherService: Sendable {
  /// Parameters of one call: the place, the days, and the fetch policy.
  struct Question: Sendable {
    let coordinate: Coordinate
    let place: ForecastPlace
    let day: LocalDay
    let count: Int
    let policy: FetchPolicy
    /// Kinds of data that the provider offers at the place.
    ///
    /// Other kinds are not requested.
    let offered: Set<WeatherDataset>
    /// Reason why the provider's availability at the place is unknown, or `nil` if it is known.
    let availabilityProblem: WeatherProblem?

    var days: ForecastPeriod { ForecastPeriod(place, from: day, days: count) }

    /// Same parameters with the policy `cacheFirst`, for the refresh after a stale answer.
    var refreshing: Question {
      Question(
        coordinate: coordinate, place: place, day: day, count: count, policy: .cacheFirst, offered: offered,
        availabilityProblem: availabilityProblem)
    }
  }

  /// Provider that fetches the data.
  public let provider: any ForecastProvider
  let caches: WeatherCaches
  private let availabilities: CachedRepository<ForecastPlace, Set<WeatherDataset>>
  private let holds: Holds
  private let sources: WeatherSources
  private let background = BackgroundTasks()
  let clock: any WallClock

  /// Creates a service that caches a provider's data in a store.
  ///
  /// - Parameters:
  ///   - storage: Store of the caches.
  ///   - provider: Provider that fetches the data.
  ///   - limits: Limits of the provider's requests. Pass the same object to everything that sends requests to this provider.
  ///   - retry: Retry policy of a failed request.
  ///   - gathersPlaces: Whether places that wait at the same time share a request, if the provider accepts several.
  ///   - clock: Clock of the lifetimes.
  /// - Throws: `RepositoryError` if a collection cannot be opened.
  public init(
    _ storage: SpotStore, provider: any ForecastProvider, limits: ProviderLimits, retry: RetryPolicy = .default,
    gathersPlaces: Bool = false, clock: any WallClock = SystemClock()
  ) async throws(RepositoryError) {
    self.provider = provider
    self.clock = clock
    let services = ServiceSources(provider, limits, placesPerRequest: gathersPlaces ? provider.placesPerRequest : 1)
    // With a fixed limit, a store of many spots would evict the forecasts of its own spots.
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

  /// Returns the weather of a spot as a tuple with one reading for each query, in the order of the queries.
  ///
  /// Only the requested kinds of data are fetched. Kinds that belong to one service of the provider share a request.
  /// - Parameters:
  ///   - spot: Spot whose weather is returned.
  ///   - day: First day in the spot's zone. The default is today.
  ///   - days: Number of days, 1 to 16.
  ///   - policy: Fetch policy, which decides between the store and a request.
  ///   - query: Requested kinds of data.
  /// - Throws: `CancellationError`. A failure of the provider is a state of the reading. If the store fails, the data are fetched.
  public func weather<each Value: Sendable>(
    for spot: Spot, on day: LocalDay? = nil, days: Int = 1, policy: FetchPolicy = .cacheFirst,
    including query: repeat WeatherQuery<each Value>
  ) async throws -> (repeat WeatherReading<each Value>) {
    var datasets: Set<WeatherDataset> = []
    for query in repeat each query { datasets.insert(query.dataset) }
    let question = try await question(spot, day, days, policy, datasets)
    // Before the tasks start: each of them must see the same requests to share them.
    let requests = await requests(datasets, question)
    let tasks = begin(repeat each query, for: question, requests)
    let readings = try await withTaskCancellationHandler {
      (repeat try await (each tasks).value)
    } onCancel: {
      // The tasks are unstructured, so the caller's cancellation does not reach them by itself.
      for task in repeat each tasks { task.cancel() }
    }
    // Without the check each call would start refresh tasks even if all data are fresh.
    if policy == .staleWhileRevalidate, await !fetched(datasets.intersection(question.offered), question).isEmpty {
      let refreshes = begin(repeat each query, for: question.refreshing, requests)
      // Not awaited: the stale readings return at once. `settled()` waits for the refreshes.
      for task in repeat each refreshes { background.add { _ = await task.result } }
    }
    return readings
  }

  /// Starts a task for each kind of data to read.
  ///
  /// Kinds of one service that have to be fetched share a request.
  private func begin<each Value: Sendable>(
    _ query: repeat WeatherQuery<each Value>, for question: Question, _ requests: [ProviderRequest]
  ) -> (repeat Task<WeatherReading<each Value>, any Error>) {
    var count = 0
    for _ in repeat each query { count += 1 }
    // The exact number: a group holds its request until that many calls have joined it or need none.
    let group = FetchGroup(count)
    return
      (repeat Task { [self] in
        // A task-local value, because a cache passes nothing but its key to its source.
        try await ProviderRequest.$together.withValue(requests) { try await group.run { try await (each query).read(self, question) } }
      })
  }

  /// Waits until the background refreshes of ``FetchPolicy/staleWhileRevalidate`` have ended.
  public func settled() async { await background.finish() }

  /// Returns the kinds of data that the provider has for a spot.
  ///
  /// The answer stays fresh for a day.
  /// - Throws: The error of the request if no usable answer is stored.
  public func availability(for spot: Spot, policy: FetchPolicy = .cacheFirst) async throws -> Set<WeatherDataset> {
    try await availabilities.value(for: place(spot), policy: policy).value
  }

  func place(_ spot: Spot) -> ForecastPlace { place(spot, of: provider.storageName) }

  private func place(_ spot: Spot, of storageName: String) -> ForecastPlace {
    ForecastPlace(provider: storageName, spot.coordinate, timezone: spot.timezone, country: provider.needsCountry ? spot.country : "")
  }

  /// Returns the cache key of a spot's stored data.
  ///
  /// It is the place of the server in use. If that has no stored forecast, it is the place of the server with the newest one.
  private func storedPlace(_ spot: Spot, _ day: LocalDay) async -> ForecastPlace {
    let own = place(spot)
    // A caller that named a server must not get the data of another one.
    guard provider.storageName == provider.name, await fetchedAt(day, at: own) == nil else { return own }
    var (newest, place): (Date?, ForecastPlace) = (nil, own)
    for name in await sources.names(of: provider.name) {
      let other = self.place(spot, of: name)
      guard let date = await fetchedAt(day, at: other), newest.map({ $0 < date }) ?? true else { continue }
      (newest, place) = (date, other)
    }
    return place
  }

  /// Returns the fetch time of the newest stored hours of a day, expired ones included, or `nil` if there are none.
  func fetchedAt(_ day: LocalDay, at place: ForecastPlace) async -> Date? {
    var newest: Date?
    // Entries are keyed by first day and span, so each first day within the longest span may cover this day.
    for back in 0..<ForecastPeriod.spans.all {
      for days in [ForecastPeriod.spans.week, ForecastPeriod.spans.all] where back < days {
        let key = ForecastPeriod(place, from: day.advanced(by: -back), days: days)
        do {
          guard let entry = try await caches.hourly.storage.find(by: key), entry.value != nil else { continue }
          newest = max(newest ?? entry.fetchedAt, entry.fetchedAt)
        } catch { continue }  // An unreadable entry counts as missing.
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
      // Forecasts exist everywhere. Warnings depend on the country, so the provider's availability decides.
      do { offered.formIntersection(try await availability(for: spot, policy: policy == .cacheOnly ? .cacheOnly : .cacheFirst)) } catch {
        // Otherwise a cancelled caller would get readings with a problem instead of the error.
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
  /// Returns one request for each service, with the kinds of data that have to be fetched.
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
    // Computed from the coordinates and never fetched.
    case .astronomy: false
    }
  }

  /// Returns the kinds of data that have to be fetched, grouped by service.
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
      // An entry from the future means that the clock was set back. The cache fetches it anew as well.
      return entry.fetchedAt <= clock.now && clock.now < entry.freshUntil
    } catch { return false }
  }

  /// Reads one kind of data through its cache, with failures as states of the reading.
  func read<Key, Value>(
    _ dataset: WeatherDataset, _ cache: CachedRepository<Key, Value>, _ key: Key, _ question: Question
  ) async throws -> WeatherReading<Value> {
    guard question.offered.contains(dataset) else { return .unsupported }
    // With an unknown availability, a missing warning must not read as "no warnings".
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

  /// Reads a kind of data that belongs to days through its cache.
  ///
  /// After a failed marine forecast without a stored one, no request for it is sent for three minutes. This hold is not a negative entry of
  /// the cache, since that would replace an older forecast.
  func readNew<Value>(
    _ dataset: WeatherDataset, _ cache: CachedRepository<ForecastPeriod, Value>, _ question: Question
  ) async throws -> WeatherReading<Value> {
    guard dataset == .marine else { return try await read(dataset, cache, question.days, question) }
    let id = question.days.seaID
    // A caller that insists on a request gets one in spite of the hold.
    let isExplicit = question.policy != .cacheFirst && question.policy != .staleWhileRevalidate
    if !isExplicit, let problem = holds.hold(id)?.problem { return .unavailable(problem) }
    let reading = try await read(dataset, cache, question.days, question)
    switch reading {
    case .unavailable(let problem) where question.policy != .cacheOnly && problem.isTransient:
      // Without the hold, each call within the next minutes would send the failing request again.
      await holds.hold(id, because: problem, for: .seconds(180))
    case .available, .noCoverage: await holds.release(id)
    case .unavailable, .unsupported: break
    }
    return reading
  }

  /// Returns sun and moon of the requested days, computed without a request.
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
