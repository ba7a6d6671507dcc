// Report/ turns the answers of WeatherService into output: a report in JSON for programs, a card of text for people.
// Invariant: every shown value belongs to the requested day, and old, recorded or missing data are marked as such.

import Foundation
public import Larder

/// Everything that a forecast of a spot shows for one or more days.
public struct SpotWeather: Sendable {
  /// Spot of the forecast.
  public let spot: Spot
  /// First day of the forecast.
  public let day: LocalDay
  /// Number of days.
  public let count: Int
  /// Current conditions, or `nil` if the first day is not today.
  public let current: WeatherReading<CurrentWeather>?
  /// Hourly forecast.
  public let hourly: WeatherReading<HourlyForecast>
  /// Daily forecast of the provider.
  public let daily: WeatherReading<DailyForecast>
  /// Warnings in force, or `nil` if the first day is not today.
  public let alerts: WeatherReading<WeatherAlerts>?
  /// Marine forecast.
  public let marine: WeatherReading<MarineForecast>
  /// Sun and Moon of each day.
  public let astronomy: [Astronomy]
  /// Credits that the provider requires.
  public let attribution: [String]
  /// Warnings of the last successful answer, if ``alerts`` are unavailable now.
  public internal(set) var lastKnownAlerts: LastKnownAlerts?

  /// Hourly forecast merged with the sea of the same hours.
  public var hours: [WeatherHour] { hourly.value?.merged(with: marine.value) ?? [] }

  /// Whether all shown readings are fresh, with none expired or unavailable.
  public var isFresh: Bool { current?.isFresh ?? true && hourly.isFresh && daily.isFresh && marine.isFresh }

  /// Whether the hourly forecast is expired, or a refresh was tried and failed.
  public var isStale: Bool { hourly.cached?.isOld ?? false }
}

extension WeatherService {
  /// Returns everything that a forecast of a spot shows, with at most one request to each service of the provider.
  public func forecast(
    for spot: Spot, on day: LocalDay? = nil, days: Int = 1, policy: FetchPolicy = .cacheFirst
  ) async throws -> SpotWeather {
    let today = LocalDay(containing: clock.now, in: spot.zone)
    let day = day ?? today
    // Current conditions and warnings in force describe today only, so no request is spent on them for another day.
    guard day == today else {
      let (hourly, daily, marine, astronomy) = try await weather(
        for: spot, on: day, days: days, policy: policy, including: .hourly, .daily, .marine, .astronomy)
      return SpotWeather(
        spot: spot, day: day, count: days, current: nil, hourly: hourly, daily: daily, alerts: nil, marine: marine,
        astronomy: astronomy.value ?? [], attribution: provider.attribution)
    }
    let (current, hourly, daily, alerts, marine, astronomy) = try await weather(
      for: spot, on: day, days: days, policy: policy, including: .current, .hourly, .daily, .alerts, .marine, .astronomy)
    var weather = SpotWeather(
      spot: spot, day: day, count: days, current: current, hourly: hourly, daily: daily, alerts: alerts, marine: marine,
      astronomy: astronomy.value ?? [], attribution: provider.attribution)
    // `noCoverage` and `unsupported` are answers, and old warnings beside them would be misleading.
    if case .unavailable = alerts { weather.lastKnownAlerts = await lastKnownAlerts(at: place(spot)) }
    return weather
  }
}
