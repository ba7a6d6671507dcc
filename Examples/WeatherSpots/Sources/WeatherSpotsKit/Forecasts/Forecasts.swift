public import Foundation
import Larder

/// Forecasts from the store while they are fresh, from the service when they are not, and the last known one when the service is out.
public struct Forecasts: Sendable {
  /// How many forecasts are kept; past it, the older half goes.
  static let capacity = 500
  /// The part of a forecast's life in which it is fresh: an hour.
  static let freshFor: TimeInterval = 3600

  private let storage: SpotStore
  private let client: OpenMeteoClient

  /// Makes the forecasts of a store.
  public init(_ storage: SpotStore, client: OpenMeteoClient) {
    self.storage = storage
    self.client = client
  }

  /// A forecast and what a reader must know of it.
  public struct Answer: Sendable {
    /// The forecast.
    public let forecast: DayForecast
    /// Whether it was fetched for this answer.
    public let isFromNetwork: Bool
    /// Whether it is too old, or newer data were asked for and not got.
    public let isStale: Bool
    /// Why it was not fetched anew, where that was tried.
    public let failure: OpenMeteoError?
  }

  /// The forecast of a spot's day.
  ///
  /// - Parameter refresh: Whether to ask the service although a fresh forecast is stored.
  /// - Throws: `OpenMeteoError` when the service is out and nothing is stored; `RepositoryError` of the store.
  public func forecast(for spot: Spot, on day: LocalDay, at now: Date, refresh: Bool = false) async throws -> Answer {
    let key = DayForecast.Key(spot.coordinate, day)
    let stored = try await storage.forecasts.find(by: key)
    if let stored, !refresh, !stored.isOlder(than: stored.freshFor, at: now) {
      return Answer(forecast: stored, isFromNetwork: false, isStale: false, failure: nil)
    }
    let fetched: DayForecast
    do throws(OpenMeteoError) { fetched = try await client.fetch(key, at: now) } catch {
      guard let stored else { throw error }
      let isStale = refresh || stored.isOlder(than: Self.freshFor, at: now)
      return Answer(forecast: stored, isFromNetwork: false, isStale: isStale, failure: error)
    }
    try await keep(fetched)
    return Answer(forecast: fetched, isFromNetwork: true, isStale: false, failure: nil)
  }

  private func keep(_ forecast: DayForecast) async throws {
    let forecasts = storage.forecasts
    try await storage.store.transaction { transaction in
      try transaction.save(forecast, in: forecasts)
      guard try transaction.count(in: forecasts) > Self.capacity else { return }
      let oldestFirst = try transaction.loadAll(in: forecasts).sorted { $0.fetchedAt < $1.fetchedAt }
      for old in oldestFirst.prefix(Self.capacity / 2) { try transaction.delete(old.id, in: forecasts) }
    }
  }
}
