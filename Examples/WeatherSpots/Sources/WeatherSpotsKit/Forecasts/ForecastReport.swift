public import Foundation

/// A forecast as it is shown: for machines through `Codable`, for people through ``card``.
public struct ForecastReport: Encodable, Sendable {
  let spot: String
  let country: String
  let day: String
  let timezone: String
  let noon: Noon
  let temperatureMinC: Double?
  let temperatureMaxC: Double?
  let precipitationMm: Double?
  let windMaxKmh: Double?
  let sea: Sea
  /// "network" or "disk".
  let origin: String
  let server: String
  let recorded: Bool
  let fetchedAt: String
  let ageSeconds: Int
  /// Whether the forecast is only the last known one.
  public let stale: Bool
  /// Why the forecast was not refreshed, in one line.
  public let problem: String?
  let attribution: [String]

  struct Noon: Encodable {
    let time: String
    let temperatureC: Double?
    let apparentC: Double?
    let weather: String?
    let weatherCode: Int?
    let windKmh: Double?
    let gustKmh: Double?
    let windFromDegrees: Double?
  }

  struct Sea: Encodable {
    /// "available", "no coverage" or "unavailable".
    let state: String
    let reason: String?
    let waveM: Double?
    let waveFromDegrees: Double?
    let wavePeriodS: Double?
    let surfaceC: Double?
  }

  /// Makes the report of an answer; `nil` when the forecast has no values for the day.
  public init?(_ answer: Forecasts.Answer, of spot: Spot, at now: Date) {
    let forecast = answer.forecast
    guard let summary = DaySummary(forecast.hours, of: forecast.id.day, in: spot.zone) else { return nil }
    self.spot = spot.name
    country = spot.country
    day = forecast.id.day.description
    timezone = spot.timezone
    noon = Noon(summary.noon, spot.zone)
    temperatureMinC = summary.temperatureCelsius?.lowerBound
    temperatureMaxC = summary.temperatureCelsius?.upperBound
    precipitationMm = summary.precipitationMillimeters?.rounded(decimals: 2)
    windMaxKmh = summary.strongestWindKilometersPerHour
    sea = Sea(forecast.sea, summary.noon.sea)
    origin = answer.isFromNetwork ? "network" : "disk"
    server = forecast.server
    recorded = forecast.isRecorded
    fetchedAt = forecast.fetchedAt.formatted(.iso8601)
    ageSeconds = Int(now.timeIntervalSince(forecast.fetchedAt).rounded())
    stale = answer.isStale
    problem = answer.failure?.description
    attribution = Self.attribution(spot, forecast)
  }

  private static func attribution(_ spot: Spot, _ forecast: DayForecast) -> [String] {
    var lines = ["Weather data by Open-Meteo.com (https://open-meteo.com/), CC BY 4.0"]
    if forecast.sea == .available { lines.append("Waves include data of DWD (https://www.dwd.de/)") }
    if spot.source.hasPrefix("GeoNames") {
      lines.append("Spot from GeoNames (https://www.geonames.org/), CC BY 4.0")
    } else if !spot.source.isEmpty {
      lines.append("Spot from \(spot.source)")
    }
    return lines
  }
}

extension ForecastReport.Noon {
  fileprivate init(_ hour: WeatherHour, _ zone: TimeZone) {
    time = TimeLabel.clock(hour.instant, in: zone)
    temperatureC = hour.temperatureCelsius
    apparentC = hour.apparentCelsius
    weather = hour.code?.description
    weatherCode = hour.code?.rawValue
    windKmh = hour.windKilometersPerHour
    gustKmh = hour.gustKilometersPerHour
    windFromDegrees = hour.windDegrees
  }
}

extension ForecastReport.Sea {
  fileprivate init(_ sea: DayForecast.Sea, _ hour: SeaHour?) {
    switch sea {
    case .available: (state, reason) = ("available", nil)
    case .noCoverage: (state, reason) = ("no coverage", nil)
    case .unavailable(let why): (state, reason) = ("unavailable", why)
    }
    waveM = hour?.waveMeters
    waveFromDegrees = hour?.waveDegrees
    wavePeriodS = hour?.wavePeriodSeconds
    surfaceC = hour?.surfaceCelsius
  }
}
