import Foundation
import Larder

func readmeIndexes() async throws -> LocalRepository<Spot> {
  let schema = RepositorySchema<Spot>(indexes: [.ordered(\.rating, \.name), .unique(\.name)])
  let spots = try await LocalRepository<Spot>(filename: "spots.json", schema: schema)
  return spots
}

func readmeCache(url: URL, id: String) async throws -> Cached<Forecast> {
  let cache = try await CachedRepository.open(jsonFile: url, freshness: .hours(1)) { id in try await fetchForecast(id) }
  let forecast = try await cache.value(for: id)
  return forecast
}
