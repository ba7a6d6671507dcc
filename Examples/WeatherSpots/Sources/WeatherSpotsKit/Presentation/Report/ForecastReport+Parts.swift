import Foundation
public import Larder

extension ForecastReport {
  /// Returns one row.
  static func hour(_ hour: WeatherHour, _ zone: TimeZone) -> JSONRow {
    [
      "instant": hour.instant.formatted(.iso8601), "day": LocalDay(containing: hour.instant, in: zone).description,
      "time": TimeLabel.clock(hour.instant, in: zone), "temperatureC": hour.temperatureCelsius, "apparentC": hour.apparentCelsius,
      "precipitationMm": hour.precipitationMillimeters, "precipitationPercent": hour.precipitationPercent,
      "humidityPercent": hour.humidityPercent, "cloudPercent": hour.cloudPercent, "pressureHpa": hour.pressureHectopascals,
      "uvIndex": hour.uvIndex, "weather": hour.words, "weatherCode": hour.code?.rawValue, "windKmh": hour.windKilometersPerHour,
      "gustKmh": hour.gustKilometersPerHour, "windFromDegrees": hour.windDegrees, "waveM": hour.sea?.waveMeters,
      "waveFromDegrees": hour.sea?.waveDegrees, "wavePeriodS": hour.sea?.wavePeriodSeconds, "swellM": hour.sea?.swellMeters,
      "swellFromDegrees": hour.sea?.swellDegrees, "swellPeriodS": hour.sea?.swellPeriodSeconds, "surfaceC": hour.sea?.surfaceCelsius,
    ]
  }

  /// Returns the conditions of the moment and their own age; the state is "available", "no coverage" or "unavailable".
  static func now(_ reading: WeatherReading<CurrentWeather>, _ zone: TimeZone) -> JSONRow {
    [
      "state": reading.words.state, "reason": reading.words.reason, "hour": reading.value.map { hour($0.conditions, zone) },
      "ageSeconds": reading.cached?.ageSeconds, "stale": reading.cached?.isOld,
    ]
  }

  /// Returns the sea at noon, or why there is none; the state is "available", "no coverage", "unavailable" or "unsupported".
  static func sea(_ reading: WeatherReading<MarineForecast>, _ hour: SeaHour?) -> JSONRow {
    [
      "state": reading.words.state, "reason": reading.words.reason, "waveM": hour?.waveMeters, "waveFromDegrees": hour?.waveDegrees,
      "wavePeriodS": hour?.wavePeriodSeconds, "surfaceC": hour?.surfaceCelsius, "ageSeconds": reading.cached?.ageSeconds,
      "stale": reading.cached?.isOld,
    ]
  }

  /// Returns the warnings in force, or that they are not known, and then those of the last answer; the state is "available", "unavailable"
  /// or "unsupported".
  static func alerts(_ reading: WeatherReading<WeatherAlerts>, _ known: LastKnownAlerts?) -> JSONRow {
    [
      "state": reading.words.state, "reason": reading.words.reason, "alerts": (reading.value?.alerts ?? []).map(AlertReport.init),
      "lastKnownAlerts": known?.alerts.map(AlertReport.init), "lastKnownAgeSeconds": known?.ageSeconds,
    ]
  }
}

extension ForecastReport.Day {
  /// Makes a day of the provider's own days; what these lack is taken from the hours that are in the day.
  init(_ weather: SpotWeather, _ day: LocalDay, _ hours: [WeatherHour]) {
    let row = weather.daily.value?.days.first { $0.day == day }
    let summary = DaySummary(hours, of: day, in: weather.spot.zone)
    let interval = day.interval(in: weather.spot.zone)
    let ofDay = hours.filter { interval.start <= $0.instant && $0.instant < interval.end }
    // The periods are those of the hours with the highest waves and the highest swell.
    let waves = ofDay.compactMap(\.sea).max { ($0.waveMeters ?? -1) < ($1.waveMeters ?? -1) }
    let swell = ofDay.compactMap(\.sea).max { ($0.swellMeters ?? -1) < ($1.swellMeters ?? -1) }
    self.day = day.description
    skipped = interval.duration == 0
    temperatureMinC = row?.lowestCelsius ?? summary?.temperatureCelsius?.lowerBound
    temperatureMaxC = row?.highestCelsius ?? summary?.temperatureCelsius?.upperBound
    precipitationMm = row?.precipitationMillimeters ?? summary?.precipitationMillimeters?.rounded(decimals: 2)
    precipitationPercent = row?.precipitationPercent
    // Never less than one of its hours.
    windMaxKmh = (ofDay.compactMap(\.windKilometersPerHour) + [row?.windKilometersPerHour].compactMap { $0 }).max()
    gustMaxKmh = row?.gustKilometersPerHour
    uvIndexMax = row?.uvIndex
    waveMaxM = waves?.waveMeters
    wavePeriodS = waves?.waveMeters == nil ? nil : waves?.wavePeriodSeconds
    swellMaxM = swell?.swellMeters
    swellPeriodS = swell?.swellMeters == nil ? nil : swell?.swellPeriodSeconds
    self.weather = row?.words ?? summary?.noon.words
    weatherCode = row.map { $0.code?.rawValue } ?? summary?.noon.code?.rawValue
  }
}

extension WeatherReading {
  /// The state in one word or two, and why where that is worth saying.
  var words: (state: String, reason: String?) {
    switch self {
    case .available(let cached): ("available", cached.refreshError.map { WeatherProblem($0).description })
    case .noCoverage: ("no coverage", nil)
    case .unsupported: ("unsupported", nil)
    case .unavailable(let problem): ("unavailable", problem.description)
    }
  }
}

extension Cached {
  /// The age, in whole seconds.
  public var ageSeconds: Int { Int((age / .seconds(1)).rounded()) }

  /// Whether this is only the last known value: old, or a newer one was asked for and not got.
  public var isOld: Bool { state != .fresh || refreshError != nil }

  /// The origin: "network", "memory" or "disk".
  var originWord: String { origin == .remote ? "network" : origin.rawValue }
}
