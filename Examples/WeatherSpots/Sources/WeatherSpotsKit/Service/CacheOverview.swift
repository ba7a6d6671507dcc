public import Foundation
public import Larder

/// The contents of a store's caches: number, size and age of the entries of each kind.
public struct CacheOverview: Sendable {
  /// One kind of data.
  public struct Kind: Encodable, Sendable {
    /// Its name, as `--kind` takes it.
    public let kind: String
    /// The number of entries.
    public var entries = 0
    /// The number of fresh entries, which answer without a request.
    public var fresh = 0
    /// The number of stale entries, which are shown with their age when there is nothing newer.
    public var stale = 0
    /// The number of entries too old to be shown.
    public var expired = 0
    /// The number of entries that record an absence; they are counted as fresh, stale or expired too.
    public var absent = 0
    /// The number of entries that cannot be decoded; they are fetched again.
    public var unreadable = 0
    /// The size of all values as JSON.
    public var bytes = 0
    /// The age of the newest entry.
    @NullEncoded public var newestAgeSeconds: Int?
    /// The age of the oldest entry.
    @NullEncoded public var oldestAgeSeconds: Int?

    init(_ kind: String) { self.kind = kind }
  }

  /// The kinds, those without entries too.
  public let kinds: [Kind]

  /// The names of all kinds.
  public static let names = Collections.all.map(\.name)

  /// Looks at the caches of a store.
  ///
  /// - Throws: What opening the collections throws. Cost: reads every entry.
  public init(_ storage: SpotStore, at now: Date) async throws(RepositoryError) {
    var kinds: [Kind] = []
    for collection in Collections.all { kinds.append(try await collection.look(storage.store, now)) }
    self.kinds = kinds
  }

  /// Removes the entries of some kinds.
  ///
  /// - Returns: How many there were.
  /// - Throws: `RepositoryError`; kinds that came before it are then empty.
  public static func clear(_ names: Set<String>, of storage: SpotStore) async throws(RepositoryError) -> Int {
    var count = 0
    for collection in Collections.all where names.contains(collection.name) { count += try await collection.clear(storage.store) }
    if names.contains("marine") {
      let holds: LocalRepository<Holds.Hold> = try await storage.store.repository(RepositorySchema("holds"))
      for hold in try await holds.loadAll() where hold.id.hasPrefix("sea ") { try await holds.delete(hold.id) }
    }
    return count
  }
}

/// The collections of the caches, with their types.
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
      try await Self.clear(RepositorySchema<CachedEntry<Key, Value>>(collection), store)
    }
  }

  static func clear<Item>(_ schema: RepositorySchema<Item>, _ store: Store) async throws(RepositoryError) -> Int
  where Item.ID: Hashable & Codable & Sendable {
    let entries = try await store.repository(schema)
    let count = try await entries.count()
    if count > 0 { try await entries.replaceAll(with: [], discardingUndecodable: true) }
    return count
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
      // From the future means that the clock was set back: the cache takes it for stale.
      stale += 1
    } else {
      fresh += 1
    }
  }
}
