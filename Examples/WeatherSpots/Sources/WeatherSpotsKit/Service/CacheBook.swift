public import Foundation
public import Larder
import Logging

/// The statistics of a store's caches over all runs, by day and kind, in the store itself.
///
/// A run adds what it has counted when it ends. A run that was killed is not in it.
public struct CacheBook: Sendable {
  /// The counts of one kind on one day (UTC).
  public struct Page: Codable, Identifiable, Sendable {
    /// The day and the kind.
    public let id: String
    /// The day, as `yyyy-MM-dd`.
    public let day: String
    /// The kind, as ``CacheOverview/Kind/name``.
    public let kind: String
    /// The statistics.
    public internal(set) var counts: CacheCounts
  }

  private let pages: LocalRepository<Page>

  /// For how many days counts are kept.
  public static let days = 90

  /// Opens the book of a store.
  ///
  /// - Throws: What opening the collection throws.
  public init(_ storage: SpotStore) async throws(RepositoryError) {
    pages = try await storage.store.repository(RepositorySchema("cache-statistics"))
  }

  /// Adds what a run has counted, and forgets old days; writes nothing if there is nothing to add.
  ///
  /// - Throws: `RepositoryError`; what was counted is then lost, and nothing else.
  public func add(_ counts: [String: CacheCounts], at now: Date) async throws {
    let counts = counts.filter { $0.value != CacheCounts() }
    guard !counts.isEmpty else { return }
    let day = LocalDay(containing: now, in: .gmt)
    let oldest = day.advanced(by: -Self.days).description
    let old = try await pages.loadAll().filter { $0.day < oldest }.map(\.id)
    try await pages.transaction { [pages] transaction in
      for (kind, counts) in counts {
        let id = "\(day) \(kind)"
        var page = try transaction.find(by: id, in: pages) ?? Page(id: id, day: day.description, kind: kind, counts: CacheCounts())
        page.counts.add(counts)
        try transaction.save(page, in: pages)
      }
      for id in old { try transaction.delete(id, in: pages) }
    }
  }

  /// Returns the counts by kind since a day, that one included; of all days that are kept unless given.
  public func counts(since day: LocalDay? = nil) async throws -> [String: CacheCounts] {
    var sums: [String: CacheCounts] = [:]
    for page in try await pages.loadAll() where day.map({ $0.description <= page.day }) ?? true {
      sums[page.kind, default: CacheCounts()].add(page.counts)
    }
    return sums
  }

  /// Forgets everything.
  public func clear() async throws(RepositoryError) { try await pages.replaceAll(with: []) }
}

/// The statistics of a cache, as they are added up.
public struct CacheCounts: Codable, Hashable, Sendable {
  /// Answers from storage with a fresh value.
  public internal(set) var hits = 0
  /// Calls that found nothing usable.
  public internal(set) var misses = 0
  /// Answers from storage with a stale value.
  public internal(set) var staleServes = 0
  /// Calls that were answered "there is none" without asking.
  public internal(set) var negativeHits = 0
  /// Questions to the provider, retries included.
  public internal(set) var fetches = 0
  /// Questions that failed.
  public internal(set) var fetchErrors = 0
  /// Failures of the store.
  public internal(set) var storageErrors = 0
  /// Entries that were removed, by cause.
  public internal(set) var evictions: [String: Int] = [:]

  /// Starts with zeros.
  public init() {}

  /// Takes over what a cache has counted.
  public init(_ statistics: CacheStatistics) {
    hits = statistics.hits
    misses = statistics.misses
    staleServes = statistics.staleServes
    negativeHits = statistics.negativeHits
    fetches = statistics.fetches
    fetchErrors = statistics.fetchErrors
    storageErrors = statistics.storageErrors
    for (cause, count) in statistics.evictions where count > 0 { evictions[cause.rawValue] = count }
  }

  mutating func add(_ other: CacheCounts) {
    hits += other.hits
    misses += other.misses
    staleServes += other.staleServes
    negativeHits += other.negativeHits
    fetches += other.fetches
    fetchErrors += other.fetchErrors
    storageErrors += other.storageErrors
    evictions.merge(other.evictions) { $0 + $1 }
  }
}

extension WeatherService {
  /// The statistics of the caches since this value was made, by kind.
  public var counts: [String: CacheCounts] {
    [
      "current": CacheCounts(caches.current.statistics), "hourly": CacheCounts(caches.hourly.statistics),
      "daily": CacheCounts(caches.daily.statistics), "marine": CacheCounts(caches.marine.statistics),
      "alerts": CacheCounts(caches.alerts.statistics),
    ]
  }

  /// Adds what the caches have counted to the book of their store, once, at the end of a run.
  ///
  /// A store that fails here fails nothing: only the counts are lost.
  public func keepCounts(in storage: SpotStore) async { await CacheBook.keep(counts, in: storage, at: clock.now) }
}

extension Geocoding {
  /// The statistics of the caches since this value was made, by kind.
  public var counts: [String: CacheCounts] {
    ["places": CacheCounts(places.statistics), "zones": CacheCounts(zones.statistics)]
  }

  /// Adds what the caches have counted to the book of their store, as ``WeatherService/keepCounts(in:)`` does.
  public func keepCounts(in storage: SpotStore) async { await CacheBook.keep(counts, in: storage, at: clock.now) }
}

extension CacheBook {
  fileprivate static func keep(_ counts: [String: CacheCounts], in storage: SpotStore, at now: Date) async {
    let logger = Logger(label: "cache")
    for (kind, count) in counts.sorted(by: { $0.key < $1.key }) where count != CacheCounts() {
      logger.debug(
        "counted", metadata: ["kind": "\(kind)", "hits": "\(count.hits)", "misses": "\(count.misses)", "stale": "\(count.staleServes)"])
    }
    do { try await CacheBook(storage).add(counts, at: now) } catch {
      logger.debug("the counts of this run are lost, since the store cannot be written")
    }
  }
}
