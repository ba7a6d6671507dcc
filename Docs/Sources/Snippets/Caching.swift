import Foundation
import Larder
import LarderSQLite

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

nonisolated struct Forecast: Codable, Sendable {
  var degrees: [Double]
}

// MARK: A function

func fetchForecast(_ id: String) async throws -> Forecast {
  guard let url = URL(string: "https://example.org/forecast/\(id)") else { throw URLError(.badURL) }
  let (data, _) = try await URLSession.shared.data(from: url)
  return try JSONDecoder().decode(Forecast.self, from: data)
}

func openWithFunction(_ url: URL) async throws {
  let cache = try await CachedRepository.open(jsonFile: url, freshness: .hours(1)) { id in try await fetchForecast(id) }
  let forecast = try await cache.value(for: "jogashima")
  print(forecast.value.degrees, forecast.age, forecast.state)
}

// MARK: A source

nonisolated struct ForecastServer: RemoteSource {
  let get: @Sendable (_ path: String, _ etag: String?) async throws -> (status: Int, body: Data, headers: [String: String])

  func fetch(_ spot: String, validator: String?) async throws -> Fetched<Forecast> {
    let (status, body, headers) = try await get("/forecast/\(spot)", validator)
    switch status {
    case 200: return .value(try JSONDecoder().decode(Forecast.self, from: body), validator: headers["ETag"])
    case 304: return .notModified()
    case 404: return .absent(reason: "no forecast for this place", lifetime: .hours(24))
    default: throw ServerError(status: status, retryAfter: headers["Retry-After"].flatMap(Int.init).map { .seconds($0) })
    }
  }
}

nonisolated struct ServerError: RemoteSourceError {
  let status: Int
  let retryAfter: Duration?
  var isTransient: Bool { status == 408 || status == 429 || status >= 500 }
}

// MARK: A cache

func openCache(_ url: URL, _ server: ForecastServer) async throws -> CachedRepository<String, Forecast> {
  let cache = try await CachedRepository.open(
    jsonFile: url, freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48)),
    eviction: EvictionPolicy(countLimit: 1_000, byteLimit: 50 << 20), source: server)
  if let healing = cache.healing { print("The file was damaged, the cache begins anew: \(healing.error)") }
  return cache
}

func openInSQLite(_ url: URL, _ server: ForecastServer) async throws -> CachedRepository<String, Forecast> {
  let cache = try await CachedRepository.open(
    sqliteFile: url, freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48)), source: server)
  return cache
}

func makeInStore(_ store: Store, _ server: ForecastServer) async throws -> CachedRepository<String, Forecast> {
  let cache = CachedRepository(
    storage: try await store.repository(RepositorySchema("forecasts")),
    freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48), negative: .seconds(60), jitter: 0.1), source: server)
  return cache
}

func show(_ cache: CachedRepository<String, Forecast>, spot: String) async throws {
  let forecast = try await cache.value(for: spot)
  print(forecast.value.degrees, forecast.age, forecast.state)
  if let error = forecast.refreshError { print("not newer, because: \(error)") }
}

func showAtOnce(_ cache: CachedRepository<String, Forecast>, spot: String) async throws -> Cached<Forecast> {
  let forecast = try await cache.value(for: spot, policy: .staleWhileRevalidate)
  return forecast
}

// MARK: Several keys

nonisolated struct ForecastBatches: BatchRemoteSource {
  let get: @Sendable (_ path: String) async throws -> Data
  var maxKeysPerRequest: Int { 50 }

  func fetch(_ requests: [FetchRequest<String>]) async throws -> [String: Result<Fetched<Forecast>, any Error>] {
    let spots = requests.map(\.key).joined(separator: ",")
    let found = try JSONDecoder().decode([String: Forecast].self, from: try await get("/forecasts?spots=" + spots))
    var answers: [String: Result<Fetched<Forecast>, any Error>] = [:]
    for request in requests {
      answers[request.key] = .success(found[request.key].map { .value($0) } ?? .absent(reason: "no forecast for this place"))
    }
    return answers
  }
}

func fetchAll(_ cache: CachedRepository<String, Forecast>, spots: [String]) async {
  let forecasts = await cache.values(for: spots)  // one request for every fifty that are not fresh
  for (spot, result) in forecasts {
    switch result {
    case .success(let forecast): print(spot, forecast.value.degrees)
    case .failure(let error): print(spot, error)
    }
  }
}

func together(
  _ forecasts: CachedRepository<String, Forecast>, _ tides: CachedRepository<String, Forecast>, spot: String
) async throws -> (Cached<Forecast>, Cached<Forecast>) {
  let group = FetchGroup(2)
  async let forecast = group.run { try await forecasts.value(for: spot) }
  async let tide = group.run { try await tides.value(for: spot) }
  return try await (forecast, tide)
}

// MARK: One host

func limits() -> HostLimits {
  HostLimits(
    concurrency: ConcurrencyLimit(4),
    quotas: [TokenBucket(480, per: .seconds(60)), TokenBucket(8_000, per: .hours(24))],
    breaker: CircuitBreaker())
}

func limited(_ server: ForecastServer, _ host: HostLimits) -> some RemoteSource<String, Forecast> {
  server.limited(by: host) { spot in spot.hasPrefix("detailed") ? 1.2 : 1 }
}

func limited(_ batches: ForecastBatches, _ host: HostLimits) -> GatheredSource<String, Forecast> {
  batches.limited(by: host)
}

// MARK: Following

func follow(_ cache: CachedRepository<String, Forecast>, show: (Cached<Forecast>) -> Void) async {
  for await forecast in cache.updates(for: "jogashima") {
    show(forecast)  // now, when it is refreshed, when it becomes stale, when it expires
  }
}
