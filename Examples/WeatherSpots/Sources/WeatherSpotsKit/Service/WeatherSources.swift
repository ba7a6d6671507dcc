import Foundation
import Larder

/// Record of the servers, other than the providers' own, whose data a store has.
struct WeatherSources: Sendable {
  /// A server that got requests in place of a provider's own.
  struct Source: Codable, Identifiable, Sendable {
    /// Name under which the server's data are stored.
    let id: String
    /// Name of the provider whose API the server has.
    let provider: String
    /// Time at which the server was first used.
    let since: Date
  }

  /// Number of servers that are recorded.
  ///
  /// Older ones are removed, since the data of unused servers expire too.
  static let capacity = 20
  private let storage: LocalRepository<Source>

  init(_ store: Store) async throws(RepositoryError) { storage = try await store.repository(RepositorySchema("weather-sources")) }

  /// Records the server of a provider that uses another than its own.
  ///
  /// If the store cannot be written, the server is not recorded.
  func note(_ provider: any ForecastProvider, at now: Date) async {
    guard provider.storageName != provider.name else { return }
    do {
      // Only once for each server, so that a run does not write to the store each time.
      guard try await storage.find(by: provider.storageName) == nil else { return }
      // One less than the capacity, to leave room for the new record.
      let old = try await storage.loadAll().sorted { $0.since > $1.since }.dropFirst(Self.capacity - 1)
      for source in old { try await storage.delete(source.id) }
      try await storage.save(Source(id: provider.storageName, provider: provider.name, since: now))
    } catch {}  // Best effort: without the record, `cacheOnly` does not find this server's data.
  }

  /// Returns the names under which the data of a provider's other servers are stored.
  func names(of provider: String) async -> [String] {
    do { return try await storage.loadAll().filter { $0.provider == provider }.map(\.id).sorted() } catch { return [] }
  }
}
