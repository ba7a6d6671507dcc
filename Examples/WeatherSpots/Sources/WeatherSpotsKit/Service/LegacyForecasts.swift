import Foundation
import Larder

/// A forecast as the first versions stored it, for one place and day: the weather with the sea in its rows.
struct LegacyForecast: Codable, Identifiable, Sendable {
  struct Key: Hashable, Codable, Sendable {
    let cell: GridCell
    let day: LocalDay
  }

  enum Sea: Codable, Sendable {
    case available
    case noCoverage
    case unavailable(reason: String)
  }

  let id: Key
  let fetchedAt: Date
  let server: String
  let isRecorded: Bool
  let hours: [WeatherHour]
  let sea: Sea
}

/// Forecasts that the first versions stored become entries of the caches when they are asked for.
struct LegacyForecasts: Sendable {
  private let old: LocalRepository<LegacyForecast>
  private let caches: WeatherCaches
  private let store: Store

  init(_ store: Store, _ caches: WeatherCaches) async throws(RepositoryError) {
    old = try await store.repository(RepositorySchema("forecasts"))
    self.caches = caches
    self.store = store
  }

  /// Takes over what is stored of a place and day, with its age; in one transaction, so that it is never in neither place.
  func adopt(_ key: ForecastPeriod) async throws {
    try await moveFormer(key)
    guard (key.place.former?.place ?? key.place).provider == "open-meteo",
      let found = try await old.find(by: .init(cell: key.place.cell, day: key.day)),
      key.place.former.map({ $0.server == found.server }) ?? true
    else { return }
    let provenance = Provenance(provider: "open-meteo", server: found.server, isRecorded: found.isRecorded)
    let hours = found.hours.map { hour in
      var hour = hour
      hour.sea = nil
      return hour
    }
    func entry<Value>(_ value: Value, _ freshness: FreshnessPolicy) -> CachedEntry<ForecastPeriod, Value> {
      CachedEntry(
        key: key, content: .value(value), fetchedAt: found.fetchedAt, freshUntil: found.fetchedAt + freshness.fresh / .seconds(1),
        usableUntil: found.fetchedAt + freshness.usable / .seconds(1))
    }
    let hourly = entry(HourlyForecast(hours: hours, provenance: provenance), WeatherCaches.Freshness.hourly)
    let sea = found.hours.compactMap(\.sea)
    let marine = sea.isEmpty ? nil : entry(MarineForecast(hours: sea, provenance: provenance), WeatherCaches.Freshness.marine)
    let (old, hourlyStorage, marineStorage) = (old, caches.hourly.storage, caches.marine.storage)
    try await store.transaction { transaction in
      if try transaction.find(by: key, in: hourlyStorage) == nil { try transaction.save(hourly, in: hourlyStorage) }
      if let marine, try transaction.find(by: key, in: marineStorage) == nil { try transaction.save(marine, in: marineStorage) }
      try transaction.delete(found.id, in: old)
    }
  }

  /// Takes over what an earlier version stored of a server that was asked in the provider's place; what others answered stays.
  private func moveFormer(_ key: ForecastPeriod) async throws {
    guard let (former, server) = key.place.former else { return }
    for key in Set(ForecastPeriod.mayHold(key.day, at: key.place) + [key]) {
      let old = ForecastPeriod(former, from: key.day, days: key.days)
      try await move(caches.hourly, from: old, to: key) { $0.provenance.server == server }
      try await move(caches.daily, from: old, to: key) { $0.provenance.server == server }
      try await move(caches.marine, from: old, to: key) { $0.provenance.server == server }
    }
    try await move(caches.current, from: former, to: key.place) { $0.provenance.server == server }
    try await move(caches.alerts, from: former, to: key.place) { $0.provenance.server == server }
  }

  private func move<Key, Value>(
    _ cache: CachedRepository<Key, Value>, from old: Key, to new: Key, _ isOfServer: (Value) -> Bool
  ) async throws {
    guard let found = try await cache.storage.find(by: old), let value = found.value, isOfServer(value) else { return }
    if try await cache.storage.find(by: new) == nil {
      try await cache.storage.save(
        CachedEntry(
          key: new, content: .value(value), fetchedAt: found.fetchedAt, freshUntil: found.freshUntil, usableUntil: found.usableUntil,
          byteCount: found.byteCount))
    }
    try await cache.storage.delete(old)
  }
}
