import Larder

func policies(cache: CachedRepository<String, Forecast>, spot: String) async throws {
  let forecast = try await cache.value(for: spot)
  let newest = try await cache.value(for: spot, policy: .networkFirst(timeout: .seconds(3)))
  let offline = try await cache.value(for: spot, policy: .cacheOnly)

  print(forecast, newest, offline)
}
