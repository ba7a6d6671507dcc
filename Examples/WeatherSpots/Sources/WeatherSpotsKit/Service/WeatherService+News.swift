import Foundation
public import Larder

extension WeatherService {
  /// The sequences that tell of newer data of a spot, and of data that have become old.
  public struct News: Sendable {
    /// The conditions of the moment.
    public let current: CachedUpdates<CurrentWeather>
    /// The hours of a week from today on.
    public let hourly: CachedUpdates<HourlyForecast>
    /// The sea of a week from today on.
    public let marine: CachedUpdates<MarineForecast>
  }

  /// Returns what tells of newer data of a spot, as long as its present day lasts.
  public func news(of spot: Spot) -> News {
    let (place, week) = (place(spot), ForecastPeriod(place(spot), from: today(at: spot), days: ForecastPeriod.spans.week))
    return News(
      current: caches.current.updates(for: place), hourly: caches.hourly.updates(for: week), marine: caches.marine.updates(for: week))
  }

  /// The age of what is stored of a spot's days from today on.
  public struct Freshness: Sendable {
    /// The seconds for which nothing newer would be asked for; 0 where something is old or missing.
    public let seconds: Int
    /// A text that is another one as soon as something else is stored, or another day begins.
    public let version: String
  }

  /// Looks at what is stored of a spot's days from today on.
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
    if provider.service(of: .marine) != nil {
      entries.append(try await caches.marine.storage.find(by: period).map { ($0.fetchedAt, $0.freshUntil) })
    }
    let now = clock.now
    // From the future means that the clock was set back: the cache takes it for stale.
    let seconds = entries.map { entry in entry.map { $0.0 <= now ? max(0, Int($0.1.timeIntervalSince(now))) : 0 } ?? 0 }
    let fetched = entries.map { entry in entry.map { "\($0.0.timeIntervalSince1970)" } ?? "-" }
    return Freshness(seconds: seconds.min() ?? 0, version: ([today.description] + fetched).joined(separator: " "))
  }

  /// Waits until the present day of a spot is over.
  ///
  /// - Throws: `CancellationError`.
  public func waitForNextDay(at spot: Spot) async throws {
    let left = today(at: spot).interval(in: spot.zone).end.timeIntervalSince(clock.now)
    try await clock.sleep(for: .seconds(max(1, left)))
  }

  private func today(at spot: Spot) -> LocalDay { LocalDay(containing: clock.now, in: spot.zone) }
}
