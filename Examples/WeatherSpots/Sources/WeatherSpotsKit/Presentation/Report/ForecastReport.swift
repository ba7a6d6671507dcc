import Foundation
import Larder

/// A forecast as it is shown: for machines through `Codable`, for people see ``SpotWeather/card(_:with:)``.
///
/// All values are in the units that their names say. Days and clock times are the spot's own.
public struct ForecastReport: Encodable, Sendable {
  let spot: String
  let country: String
  let latitude: Double
  let longitude: Double
  let day: String
  let timezone: String
  let provider: String
  /// The conditions of the moment, when the day is today.
  @NullEncoded var now: Now?
  let noon: Hour
  @NullEncoded var temperatureMinC: Double?
  @NullEncoded var temperatureMaxC: Double?
  @NullEncoded var precipitationMm: Double?
  @NullEncoded var windMaxKmh: Double?
  let sea: Sea
  @NullEncoded var alerts: Alerts?
  /// The asked days, those without data included.
  let days: [Day]
  /// The hours of the asked days, where they were asked for.
  @NullEncoded var hours: [Hour]?
  /// Sun and moon of each asked day, where they were asked for.
  @NullEncoded var astronomy: [AstronomyRow]?
  /// "network", "memory" or "disk".
  let origin: String
  let server: String
  let recorded: Bool
  let fetchedAt: String
  let ageSeconds: Int
  /// Whether the forecast is only the last known one.
  public let stale: Bool
  /// The reason why the forecast was not refreshed, on one line.
  @NullEncoded public private(set) var problem: String?
  let attribution: [String]

  /// The conditions of the moment and their own age.
  struct Now: Encodable {
    /// "available", "no coverage" or "unavailable".
    let state: String
    @NullEncoded var reason: String?
    @NullEncoded var hour: Hour?
    @NullEncoded var ageSeconds: Int?
    @NullEncoded var stale: Bool?
  }

  /// One row.
  struct Hour: Encodable {
    let instant: String
    let day: String
    let time: String
    @NullEncoded var temperatureC: Double?
    @NullEncoded var apparentC: Double?
    @NullEncoded var precipitationMm: Double?
    @NullEncoded var precipitationPercent: Double?
    @NullEncoded var humidityPercent: Double?
    @NullEncoded var cloudPercent: Double?
    @NullEncoded var pressureHpa: Double?
    @NullEncoded var uvIndex: Double?
    @NullEncoded var weather: String?
    @NullEncoded var weatherCode: Int?
    @NullEncoded var windKmh: Double?
    @NullEncoded var gustKmh: Double?
    @NullEncoded var windFromDegrees: Double?
    @NullEncoded var waveM: Double?
    @NullEncoded var waveFromDegrees: Double?
    @NullEncoded var wavePeriodS: Double?
    @NullEncoded var swellM: Double?
    @NullEncoded var swellFromDegrees: Double?
    @NullEncoded var swellPeriodS: Double?
    @NullEncoded var surfaceC: Double?
  }

  /// One day.
  struct Day: Encodable {
    let day: String
    @NullEncoded var temperatureMinC: Double?
    @NullEncoded var temperatureMaxC: Double?
    @NullEncoded var precipitationMm: Double?
    @NullEncoded var precipitationPercent: Double?
    @NullEncoded var windMaxKmh: Double?
    @NullEncoded var gustMaxKmh: Double?
    @NullEncoded var uvIndexMax: Double?
    @NullEncoded var waveMaxM: Double?
    @NullEncoded var weather: String?
    @NullEncoded var weatherCode: Int?
  }

  /// The sea at noon, or why there is none.
  struct Sea: Encodable {
    /// "available", "no coverage", "unavailable" or "unsupported".
    let state: String
    @NullEncoded var reason: String?
    @NullEncoded var waveM: Double?
    @NullEncoded var waveFromDegrees: Double?
    @NullEncoded var wavePeriodS: Double?
    @NullEncoded var surfaceC: Double?
    @NullEncoded var ageSeconds: Int?
    @NullEncoded var stale: Bool?
  }

  /// The warnings in force, or that they are not known.
  struct Alerts: Encodable {
    /// "available", "unavailable" or "unsupported".
    let state: String
    @NullEncoded var reason: String?
    let alerts: [AlertReport]
    /// Those of the last answer, when the present ones are not known.
    @NullEncoded var lastKnownAlerts: [AlertReport]?
    @NullEncoded var lastKnownAgeSeconds: Int?
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
    self.spot = spot.name
    country = spot.country
    latitude = spot.latitude
    longitude = spot.longitude
    day = weather.day.description
    timezone = spot.timezone
    provider = hourly.value.provenance.provider
    now = weather.current.map { Now($0, zone) }
    noon = Hour(summary.noon, zone)
    temperatureMinC = summary.temperatureCelsius?.lowerBound
    temperatureMaxC = summary.temperatureCelsius?.upperBound
    precipitationMm = summary.precipitationMillimeters?.rounded(decimals: 2)
    windMaxKmh = summary.strongestWindKilometersPerHour
    sea = Sea(weather.marine, summary.noon.sea)
    alerts = weather.alerts.map { Alerts($0, weather.lastKnownAlerts) }
    days = (0..<weather.count).map { Day(weather, weather.day.advanced(by: $0), all) }
    hours = showsHours ? Self.hours(of: weather, all).map { Hour($0, zone) } : nil
    astronomy = showsAstronomy ? weather.astronomy.map { AstronomyRow($0, place: spot.name) } : nil
    origin = hourly.origin == .remote ? "network" : hourly.origin.rawValue
    server = hourly.value.provenance.server
    recorded = hourly.value.provenance.isRecorded
    fetchedAt = hourly.fetchedAt.formatted(.iso8601)
    ageSeconds = Int((hourly.age / .seconds(1)).rounded())
    stale = weather.isStale
    problem = weather.hourly.problem?.description
    attribution = weather.attribution + weather.credit
  }

  /// Returns the rows whose instants are in the asked days of the zone.
  private static func hours(of weather: SpotWeather, _ hours: [WeatherHour]) -> [WeatherHour] {
    let start = weather.day.interval(in: weather.spot.zone).start
    let end = weather.day.advanced(by: weather.count - 1).interval(in: weather.spot.zone).end
    return hours.filter { start <= $0.instant && $0.instant < end && ($0.hasValues || $0.sea != nil) }
  }
}
