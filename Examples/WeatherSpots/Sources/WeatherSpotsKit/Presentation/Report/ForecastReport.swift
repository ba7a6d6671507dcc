import Foundation
import Larder

/// A forecast of a spot in the form that the commands write as JSON.
///
/// Names of values end in their units. Days and clock times are those of the spot's time zone. For text, use
/// ``SpotWeather/card(_:with:)``.
public struct ForecastReport: Encodable, Sendable {
  /// Whether the forecast is expired, or a refresh was tried and failed.
  public let stale: Bool
  /// Reason for a failed refresh of the forecast, on one line.
  public let problem: String?
  /// Requested days, including days without data.
  let days: [Day]
  private let row: JSONRow

  /// Daily values of a forecast, in the units of their names.
  struct Day: Encodable {
    let day: String
    let skipped: Bool
    @NullEncoded var temperatureMinC: Double?
    @NullEncoded var temperatureMaxC: Double?
    @NullEncoded var precipitationMm: Double?
    @NullEncoded var precipitationPercent: Double?
    @NullEncoded var windMaxKmh: Double?
    @NullEncoded var gustMaxKmh: Double?
    @NullEncoded var uvIndexMax: Double?
    @NullEncoded var waveMaxM: Double?
    @NullEncoded var wavePeriodS: Double?
    @NullEncoded var swellMaxM: Double?
    @NullEncoded var swellPeriodS: Double?
    @NullEncoded var weather: String?
    @NullEncoded var weatherCode: Int?
  }

  /// Creates the report of a forecast, or returns `nil` if the forecast has no values for the first day.
  ///
  /// - Parameters:
  ///   - weather: The forecast.
  ///   - showsHours: Whether the report lists every hour.
  ///   - showsAstronomy: Whether the report lists Sun and Moon of each day.
  public init?(_ weather: SpotWeather, showsHours: Bool = false, showsAstronomy: Bool = false) {
    let (spot, zone) = (weather.spot, weather.spot.zone)
    let all = weather.hours
    // Without hours there is no noon and no origin to report. The caller then writes a `NoForecastReport`.
    guard let hourly = weather.hourly.cached, let summary = DaySummary(all, of: weather.day, in: zone) else { return nil }
    stale = weather.isStale
    problem = weather.hourly.problem?.description
    days = (0..<weather.count).map { Day(weather, weather.day.advanced(by: $0), all) }
    let provenance = hourly.value.provenance
    row = [
      "spot": spot.name, "country": spot.country, "latitude": spot.latitude, "longitude": spot.longitude,
      "day": weather.day.description, "timezone": spot.timezone,
      // Null unless the first day is today: current conditions say nothing about another day.
      "now": weather.current.map { Self.now($0, zone) },
      "noon": Self.hour(summary.noon, zone), "temperatureMinC": summary.temperatureCelsius?.lowerBound,
      "temperatureMaxC": summary.temperatureCelsius?.upperBound,
      "precipitationMm": summary.precipitationMillimeters?.rounded(decimals: 2), "windMaxKmh": summary.strongestWindKilometersPerHour,
      "sea": Self.sea(weather.marine, summary.noon.sea), "alerts": weather.alerts.map { Self.alerts($0, weather.lastKnownAlerts) },
      "days": days, "hours": showsHours ? Self.hours(of: weather, all).map { Self.hour($0, zone) } : nil,
      "astronomy": showsAstronomy ? weather.astronomy.map { AstronomyRow($0, place: spot.name, showsClock: true) } : nil,
      "provider": provenance.provider, "server": provenance.server, "recorded": provenance.isRecorded,
      // One of "network", "memory" and "disk".
      "origin": hourly.originWord, "fetchedAt": hourly.fetchedAt.formatted(.iso8601), "ageSeconds": hourly.ageSeconds,
      "stale": stale, "problem": problem, "attribution": weather.attribution + weather.credit,
    ]
  }

  /// Writes every key, with `null` where it has no value.
  public func encode(to encoder: any Encoder) throws { try row.encode(to: encoder) }

  /// Returns the hours that lie in the requested days of the spot's zone and have values.
  private static func hours(of weather: SpotWeather, _ hours: [WeatherHour]) -> [WeatherHour] {
    let start = weather.day.interval(in: weather.spot.zone).start
    let end = weather.day.advanced(by: weather.count - 1).interval(in: weather.spot.zone).end
    // Rows of neighbouring days can be among them, since a provider's days need not be those of the zone.
    return hours.filter { start <= $0.instant && $0.instant < end && ($0.hasValues || $0.sea != nil) }
  }
}
