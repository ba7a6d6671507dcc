internal import Foundation
internal import Larder
internal import LarderSQLite

struct Forecast: Codable, Sendable {
  var degrees: [Double]
}

// MARK: A source

struct ForecastServer: RemoteSource {
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

struct ServerError: RemoteSourceError {
  let status: Int
  let retryAfter: Duration?
  var isTransient: Bool { status == 408 || status == 429 || status >= 500 }
}

// MARK: A cache

func makeCache(_ url: URL, _ server: ForecastServer) async throws -> CachedRepository<String, Forecast> {
  let opened = try await CachedRepository<String, Forecast>.open(jsonFile: url)
  if let healing = opened.healing { print("the cache begins anew: \(healing.error)") }
  let cache = CachedRepository(
    storage: opened.storage,
    freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48), negative: .seconds(60), jitter: 0.1),
    eviction: EvictionPolicy(countLimit: 1_000, byteLimit: 50 << 20),
    source: server)
  return cache
}

func openInSQLite(_ url: URL) async throws -> LocalRepository<CachedEntry<String, Forecast>> {
  let opened = try await CachedRepository<String, Forecast>.open(file: url) { SQLiteBackend(file: $0) }
  return opened.storage
}

func show(_ cache: CachedRepository<String, Forecast>, spot: String) async throws {
  let forecast = try await cache.value(for: spot)
  print(forecast.value.degrees, forecast.age, forecast.state)
  if let error = forecast.refreshError { print("not newer, because: \(error)") }
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

// MARK: Following

func follow(_ cache: CachedRepository<String, Forecast>, show: @MainActor (Cached<Forecast>) -> Void) async {
  for await forecast in cache.updates(for: "jogashima") {
    await show(forecast)  // now, when it is refreshed, when it becomes stale, when it expires
  }
}
