import Foundation
import Larder

/// A forecast as it is shown: for machines through `Codable`, for people see ``SpotWeather/card(_:with:)``.
///
/// All values are in the units that their names say. Days and clock times are the spot's own.
public struct ForecastReport: Encodable, Sendable {
  /// Whether the forecast is only the last known one.
  public let stale: Bool
  /// The reason why the forecast was not refreshed, on one line.
  public let problem: String?
  /// The asked days, those without data included.
  let days: [Day]
  private let row: JSONRow

  /// One day.
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

  /// Makes the report of a forecast; `nil` when it has no values for the first day.
  ///
  /// - Parameters:
  ///   - weather: The forecast.
  ///   - showsHours: Whether the report has every hour.
  ///   - showsAstronomy: Whether the report has sun and moon.
  public init?(_ weather: SpotWeather, showsHours: Bool = false, showsAstronomy: Bool = false) {
    let (spot, zone) = (weather.spot, weather.spot.zone)
    let all = weather.hours
    guard let hourly = weather.hourly.cached, let summary = DaySummary(all, of: weather.day, in: zone) else { return nil }
    stale = weather.isStale
    problem = weather.hourly.problem?.description
    days = (0..<weather.count).map { Day(weather, weather.day.advanced(by: $0), all) }
    let provenance = hourly.value.provenance
    row = [
      "spot": spot.name, "country": spot.country, "latitude": spot.latitude, "longitude": spot.longitude,
      "day": weather.day.description, "timezone": spot.timezone,
      // The conditions of the moment, when the day is today.
      "now": weather.current.map { Self.now($0, zone) },
      "noon": Self.hour(summary.noon, zone), "temperatureMinC": summary.temperatureCelsius?.lowerBound,
      "temperatureMaxC": summary.temperatureCelsius?.upperBound,
      "precipitationMm": summary.precipitationMillimeters?.rounded(decimals: 2), "windMaxKmh": summary.strongestWindKilometersPerHour,
      "sea": Self.sea(weather.marine, summary.noon.sea), "alerts": weather.alerts.map { Self.alerts($0, weather.lastKnownAlerts) },
      "days": days, "hours": showsHours ? Self.hours(of: weather, all).map { Self.hour($0, zone) } : nil,
      "astronomy": showsAstronomy ? weather.astronomy.map { AstronomyRow($0, place: spot.name, showsClock: true) } : nil,
      "provider": provenance.provider, "server": provenance.server, "recorded": provenance.isRecorded,
      // "network", "memory" or "disk".
      "origin": hourly.originWord, "fetchedAt": hourly.fetchedAt.formatted(.iso8601), "ageSeconds": hourly.ageSeconds,
      "stale": stale, "problem": problem, "attribution": weather.attribution + weather.credit,
    ]
  }

  /// Writes every key, also those without a value.
  public func encode(to encoder: any Encoder) throws { try row.encode(to: encoder) }

  /// Returns the rows whose instants are in the asked days of the zone.
  private static func hours(of weather: SpotWeather, _ hours: [WeatherHour]) -> [WeatherHour] {
    let start = weather.day.interval(in: weather.spot.zone).start
    let end = weather.day.advanced(by: weather.count - 1).interval(in: weather.spot.zone).end
    return hours.filter { start <= $0.instant && $0.instant < end && ($0.hasValues || $0.sea != nil) }
  }
}
