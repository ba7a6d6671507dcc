public import Foundation
public import Larder

/// Statistics of a store's caches, with the number, size and age of the entries of each kind.
public struct CacheOverview: Sendable {
  /// Statistics of one kind of data.
  public struct Kind: Encodable, Sendable {
    /// Name of the kind as the option `--kind` takes it.
    public let kind: String
    /// Number of entries that can be decoded.
    public var entries = 0
    /// Number of fresh entries, which are returned without a request.
    public var fresh = 0
    /// Number of stale entries, which are shown with their age if nothing newer is available.
    public var stale = 0
    /// Number of entries too old to be shown.
    public var expired = 0
    /// Number of entries that record an absence.
    ///
    /// They are counted as fresh, stale or expired too.
    public var absent = 0
    /// Number of entries that cannot be decoded.
    ///
    /// Their data are fetched again.
    public var unreadable = 0
    /// Size of all values as JSON, in bytes.
    public var bytes = 0
    /// Age of the newest entry in seconds, or `nil` without entries.
    @NullEncoded public var newestAgeSeconds: Int?
    /// Age of the oldest entry in seconds, or `nil` without entries.
    @NullEncoded public var oldestAgeSeconds: Int?

    init(_ kind: String) { self.kind = kind }
  }

  /// Statistics of all kinds, including those without entries.
  public let kinds: [Kind]

  /// Names of all kinds.
  public static let names = Collections.all.map(\.name)

  /// Reads the statistics of a store's caches.
  ///
  /// Cost: reads every entry.
  /// - Throws: `RepositoryError` if a collection cannot be opened or read.
  public init(_ storage: SpotStore, at now: Date) async throws(RepositoryError) {
    var kinds: [Kind] = []
    for collection in Collections.all { kinds.append(try await collection.look(storage.store, now)) }
    self.kinds = kinds
  }

  /// Removes the entries of the named kinds.
  ///
  /// - Returns: Number of removed entries that could be decoded.
  /// - Throws: `RepositoryError`. The kinds before the one that failed are then empty.
  public static func clear(_ names: Set<String>, of storage: SpotStore) async throws(RepositoryError) -> Int {
    var count = 0
    for collection in Collections.all where names.contains(collection.name) { count += try await collection.clear(storage.store) }
    if names.contains("marine") {
      // A failed marine forecast is on hold for minutes. Left there, the cleared sea would not be fetched at once.
      let holds: LocalRepository<Holds.Hold> = try await storage.store.repository(RepositorySchema("holds"))
      for hold in try await holds.loadAll() where hold.id.hasPrefix("sea ") { try await holds.delete(hold.id) }
    }
    return count
  }
}

/// Collection of a cache, with closures that know the type of its entries.
private struct Collections: Sendable {
  let name: String
  let look: @Sendable (Store, Date) async throws(RepositoryError) -> CacheOverview.Kind
  let clear: @Sendable (Store) async throws(RepositoryError) -> Int

  static let all = [
    Self("current", "weather-current", CachedEntry<ForecastPlace, CurrentWeather>.self),
    Self("hourly", "weather-hourly", CachedEntry<ForecastPeriod, HourlyForecast>.self),
    Self("daily", "weather-daily", CachedEntry<ForecastPeriod, DailyForecast>.self),
    Self("marine", "weather-marine", CachedEntry<ForecastPeriod, MarineForecast>.self),
    Self("alerts", "weather-alerts", CachedEntry<ForecastPlace, WeatherAlerts>.self),
    Self("availability", "weather-availability", CachedEntry<ForecastPlace, Set<WeatherDataset>>.self),
    Self("places", "geocoding", CachedEntry<Geocoding.Question, [FoundPlace]>.self),
    Self("zones", "timezones", CachedEntry<Geocoding.ZoneKey, String>.self),
  ]

  private init<Key, Value>(_ name: String, _ collection: String, _ type: CachedEntry<Key, Value>.Type) {
    self.name = name
    look = { (store, now) throws(RepositoryError) in
      let entries: LocalRepository<CachedEntry<Key, Value>> = try await store.repository(RepositorySchema(collection))
      var kind = CacheOverview.Kind(name)
      for entry in try await entries.loadAll() { kind.add(entry, at: now) }
      kind.unreadable = entries.snapshot.undecodable.count
      return kind
    }
    clear = { (store) throws(RepositoryError) in
      let entries: LocalRepository<CachedEntry<Key, Value>> = try await store.repository(RepositorySchema(collection))
      let count = try await entries.count()
      // Nothing is written for a cache without entries, so clearing twice costs no commit.
      if count > 0 { try await entries.replaceAll(with: [], discardingUndecodable: true) }
      return count
    }
  }
}

extension CacheOverview.Kind {
  fileprivate mutating func add<Key, Value>(_ entry: CachedEntry<Key, Value>, at now: Date) {
    entries += 1
    bytes += entry.byteCount
    if entry.value == nil { absent += 1 }
    let age = Int(now.timeIntervalSince(entry.fetchedAt).rounded())
    newestAgeSeconds = min(newestAgeSeconds ?? age, age)
    oldestAgeSeconds = max(oldestAgeSeconds ?? age, age)
    if entry.usableUntil <= now {
      expired += 1
    } else if entry.freshUntil <= now || entry.fetchedAt > now {
      // An entry from the future means that the clock was set back. The cache treats it as stale too.
      stale += 1
    } else {
      fresh += 1
    }
  }
}
