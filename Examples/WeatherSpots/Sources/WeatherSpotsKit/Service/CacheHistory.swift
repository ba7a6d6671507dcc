public import Foundation
public import Larder
import Logging

/// The statistics of a store's caches over all runs, by day and kind, in the store itself.
///
/// A run adds its statistics when it ends; those of a run that was killed are lost.
public struct CacheHistory: Sendable {
  /// The statistics of one kind on one day (UTC).
  public struct Page: Codable, Identifiable, Sendable {
    /// The day and the kind.
    public let id: String
    /// The day, as `yyyy-MM-dd`.
    public let day: String
    /// The kind, as ``CacheOverview/Kind/name``.
    public let kind: String
    /// The statistics.
    public internal(set) var counts: CacheStatistics
  }

  private let pages: LocalRepository<Page>

  /// The number of days for which statistics are kept.
  public static let days = 90

  /// Opens the history of a store.
  ///
  /// - Throws: What opening the collection throws.
  public init(_ storage: SpotStore) async throws(RepositoryError) {
    pages = try await storage.store.repository(RepositorySchema("cache-statistics"))
  }

  /// Adds the statistics of a run, and removes old days; writes nothing if there is nothing to add.
  ///
  /// - Throws: `RepositoryError`; the statistics of the run are then lost, and nothing else.
  public func add(_ counts: [String: CacheStatistics], at now: Date) async throws {
    let counts = counts.filter { $0.value != CacheStatistics() }
    guard !counts.isEmpty else { return }
    let day = LocalDay(containing: now, in: .gmt)
    let oldest = day.advanced(by: -Self.days).description
    let old = try await pages.loadAll().filter { $0.day < oldest }.map(\.id)
    try await pages.transaction { [pages] transaction in
      for (kind, counts) in counts {
        let id = "\(day) \(kind)"
        var page = try transaction.find(by: id, in: pages) ?? Page(id: id, day: day.description, kind: kind, counts: CacheStatistics())
        page.counts += counts
        try transaction.save(page, in: pages)
      }
      for id in old { try transaction.delete(id, in: pages) }
    }
  }

  /// Returns the statistics by kind since a day, that one included; of all stored days unless given.
  public func counts(since day: LocalDay? = nil) async throws -> [String: CacheStatistics] {
    var sums: [String: CacheStatistics] = [:]
    for page in try await pages.loadAll() where day.map({ $0.description <= page.day }) ?? true {
      sums[page.kind, default: CacheStatistics()] += page.counts
    }
    return sums
  }

  /// Removes all statistics.
  public func clear() async throws(RepositoryError) { try await pages.replaceAll(with: []) }
}

extension WeatherService {
  /// The statistics of the caches since this value was made, by kind.
  public var counts: [String: CacheStatistics] { caches.statistics }

  /// Adds the statistics of the caches to the history of their store, once, at the end of a run.
  ///
  /// A store that cannot be written fails nothing: only the statistics are lost.
  public func keepCounts(in storage: SpotStore) async { await CacheHistory.keep(counts, in: storage, at: clock.now) }
}

extension Geocoding {
  /// The statistics of the caches since this value was made, by kind.
  public var counts: [String: CacheStatistics] { ["places": places.statistics, "zones": zones.statistics] }

  /// Adds the statistics of the caches to the history of their store, as ``WeatherService/keepCounts(in:)`` does.
  public func keepCounts(in storage: SpotStore) async { await CacheHistory.keep(counts, in: storage, at: clock.now) }
}

extension CacheHistory {
  fileprivate static func keep(_ counts: [String: CacheStatistics], in storage: SpotStore, at now: Date) async {
    let logger = Logger(label: "cache")
    for (kind, count) in counts.sorted(by: { $0.key < $1.key }) where count != CacheStatistics() {
      logger.debug(
        "counted", metadata: ["kind": "\(kind)", "hits": "\(count.hits)", "misses": "\(count.misses)", "stale": "\(count.staleServes)"])
    }
    do { try await CacheHistory(storage).add(counts, at: now) } catch {
      logger.debug("the counts of this run are lost, since the store cannot be written")
    }
  }
}
