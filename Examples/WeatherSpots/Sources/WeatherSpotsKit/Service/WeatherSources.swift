import Foundation
import Larder

/// The servers that a store has data of, besides the providers' own.
struct WeatherSources: Sendable {
  /// A server that was asked in a provider's place.
  struct Source: Codable, Identifiable, Sendable {
    /// The name that its data are stored under.
    let id: String
    /// The provider as which it was asked.
    let provider: String
    /// The time of the first request to it.
    let since: Date
  }

  /// The number of servers that are remembered; the data of servers that are not used any more expire too.
  static let capacity = 20
  private let storage: LocalRepository<Source>

  init(_ store: Store) async throws(RepositoryError) { storage = try await store.repository(RepositorySchema("weather-sources")) }

  /// Remembers that a provider asks another server than its own; a store that cannot be written forgets it.
  func note(_ provider: any ForecastProvider, at now: Date) async {
    guard provider.storageName != provider.name else { return }
    do {
      guard try await storage.find(by: provider.storageName) == nil else { return }
      let old = try await storage.loadAll().sorted { $0.since > $1.since }.dropFirst(Self.capacity - 1)
      for source in old { try await storage.delete(source.id) }
      try await storage.save(Source(id: provider.storageName, provider: provider.name, since: now))
    } catch {}  // see above
  }

  /// Returns the names under which data of a provider's other servers are stored.
  func names(of provider: String) async -> [String] {
    do { return try await storage.loadAll().filter { $0.provider == provider }.map(\.id).sorted() } catch { return [] }
  }
}
