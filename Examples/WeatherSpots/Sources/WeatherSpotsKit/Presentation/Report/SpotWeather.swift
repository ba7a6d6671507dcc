// Report/ turns what WeatherService answers into what is shown: one Codable report for machines, a card of text for people.
// Invariant: every value shown is of the asked day, and what is old, recorded or missing says so.

import Foundation
public import Larder

/// The weather of a spot for some days, as a forecast shows it.
public struct SpotWeather: Sendable {
  /// The spot.
  public let spot: Spot
  /// The first day.
  public let day: LocalDay
  /// The number of days.
  public let count: Int
  /// The conditions of the moment; `nil` when the first day is not today.
  public let current: WeatherReading<CurrentWeather>?
  /// The hours.
  public let hourly: WeatherReading<HourlyForecast>
  /// The days.
  public let daily: WeatherReading<DailyForecast>
  /// The warnings in force; `nil` when the first day is not today.
  public let alerts: WeatherReading<WeatherAlerts>?
  /// The sea.
  public let marine: WeatherReading<MarineForecast>
  /// Sun and moon of each day.
  public let astronomy: [Astronomy]
  /// The credits to show.
  public let attribution: [String]
  /// The warnings of the last answer, when ``alerts`` are not known now.
  public internal(set) var lastKnownAlerts: LastKnownAlerts?

  /// The hours with the sea beside them.
  public var hours: [WeatherHour] { hourly.value?.merged(with: marine.value) ?? [] }

  /// Whether nothing that is shown is old or could not be had.
  public var isFresh: Bool { current?.isFresh ?? true && hourly.isFresh && daily.isFresh && marine.isFresh }

  /// Whether the forecast is only the last known one: old, or newer data were asked for and not got.
  public var isStale: Bool { hourly.cached?.isOld ?? false }
}

extension WeatherService {
  /// Everything that a forecast of a spot shows, with one request to each service of the provider.
  public func forecast(
    for spot: Spot, on day: LocalDay? = nil, days: Int = 1, policy: FetchPolicy = .cacheFirst
  ) async throws -> SpotWeather {
    let today = LocalDay(containing: clock.now, in: spot.zone)
    let day = day ?? today
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
    if case .unavailable = alerts { weather.lastKnownAlerts = await lastKnownAlerts(at: place(spot)) }
    return weather
  }
}
