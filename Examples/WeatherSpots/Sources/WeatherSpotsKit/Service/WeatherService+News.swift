import Foundation
public import Larder

extension WeatherService {
  /// Async sequences of newer data of a spot, which also report when data become stale.
  public struct News: Sendable {
    /// Updates of the current conditions.
    public let current: CachedUpdates<CurrentWeather>
    /// Updates of the hourly forecast of a week from today on.
    public let hourly: CachedUpdates<HourlyForecast>
    /// Updates of the marine forecast of a week from today on.
    public let marine: CachedUpdates<MarineForecast>
  }

  /// Returns the updates of a spot's data for the week from its present day on.
  ///
  /// Call it again after ``waitForNextDay(at:)``, since the sequences stay with the week of the day of the call.
  public func news(of spot: Spot) -> News {
    let (place, week) = (place(spot), ForecastPeriod(place(spot), from: today(at: spot), days: ForecastPeriod.spans.week))
    return News(
      current: caches.current.updates(for: place), hourly: caches.hourly.updates(for: week), marine: caches.marine.updates(for: week))
  }

  /// Freshness of a spot's stored data for the days from today on.
  public struct Freshness: Sendable {
    /// Seconds until a request is needed, or 0 if some data are stale or missing.
    public let seconds: Int
    /// Text that changes when other data are stored or another day begins.
    public let version: String
  }

  /// Returns the freshness of a spot's stored data for the days from today on.
  ///
  /// Cost: a few microseconds.
  public func freshness(of spot: Spot, days: Int) async throws(RepositoryError) -> Freshness {
    let (place, today) = (place(spot), today(at: spot))
    let period = ForecastPeriod(place, from: today, days: days)
    var entries = [
      try await caches.current.storage.find(by: place).map { ($0.fetchedAt, $0.freshUntil) },
      try await caches.hourly.storage.find(by: period).map { ($0.fetchedAt, $0.freshUntil) },
      try await caches.daily.storage.find(by: period).map { ($0.fetchedAt, $0.freshUntil) },
    ]
    // Without the check a provider without a sea would never count as fresh.
    if provider.service(of: .marine) != nil {
      entries.append(try await caches.marine.storage.find(by: period).map { ($0.fetchedAt, $0.freshUntil) })
    }
    let now = clock.now
    // An entry from the future means that the clock was set back. The cache treats it as stale too.
    let seconds = entries.map { entry in entry.map { $0.0 <= now ? max(0, Int($0.1.timeIntervalSince(now))) : 0 } ?? 0 }
    let fetched = entries.map { entry in entry.map { "\($0.0.timeIntervalSince1970)" } ?? "-" }
    return Freshness(seconds: seconds.min() ?? 0, version: ([today.description] + fetched).joined(separator: " "))
  }

  /// Waits until the present day of a spot is over.
  ///
  /// - Throws: `CancellationError`.
  public func waitForNextDay(at spot: Spot) async throws {
    let left = today(at: spot).interval(in: spot.zone).end.timeIntervalSince(clock.now)
    // At least a second, so that a caller's loop cannot spin around midnight.
    try await clock.sleep(for: .seconds(max(1, left)))
  }

  private func today(at spot: Spot) -> LocalDay { LocalDay(containing: clock.now, in: spot.zone) }
}
