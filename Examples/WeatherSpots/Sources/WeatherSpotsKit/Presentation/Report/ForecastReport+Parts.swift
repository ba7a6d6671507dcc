import Foundation
public import Larder

extension ForecastReport {
  /// Returns the weather and the sea of one hour as a JSON object.
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

  /// Returns the current conditions and their age as a JSON object.
  ///
  /// The state is "available", "no coverage" or "unavailable".
  static func now(_ reading: WeatherReading<CurrentWeather>, _ zone: TimeZone) -> JSONRow {
    [
      "state": reading.words.state, "reason": reading.words.reason, "hour": reading.value.map { hour($0.conditions, zone) },
      "ageSeconds": reading.cached?.ageSeconds, "stale": reading.cached?.isOld,
    ]
  }

  /// Returns the sea at noon as a JSON object, or the reason why there is none.
  ///
  /// The state is "available", "no coverage", "unavailable" or "unsupported".
  static func sea(_ reading: WeatherReading<MarineForecast>, _ hour: SeaHour?) -> JSONRow {
    [
      "state": reading.words.state, "reason": reading.words.reason, "waveM": hour?.waveMeters, "waveFromDegrees": hour?.waveDegrees,
      "wavePeriodS": hour?.wavePeriodSeconds, "surfaceC": hour?.surfaceCelsius, "ageSeconds": reading.cached?.ageSeconds,
      "stale": reading.cached?.isOld,
    ]
  }

  /// Returns the warnings in force as a JSON object, or those of the last answer if the present ones are not available.
  ///
  /// The state is "available", "unavailable" or "unsupported".
  static func alerts(_ reading: WeatherReading<WeatherAlerts>, _ known: LastKnownAlerts?) -> JSONRow {
    [
      "state": reading.words.state, "reason": reading.words.reason, "alerts": (reading.value?.alerts ?? []).map(AlertReport.init),
      "lastKnownAlerts": known?.alerts.map(AlertReport.init), "lastKnownAgeSeconds": known?.ageSeconds,
    ]
  }
}

extension ForecastReport.Day {
  /// Creates the report of a day from the provider's daily values, with gaps filled from the hours of that day.
  init(_ weather: SpotWeather, _ day: LocalDay, _ hours: [WeatherHour]) {
    let row = weather.daily.value?.days.first { $0.day == day }
    let summary = DaySummary(hours, of: day, in: weather.spot.zone)
    let interval = day.interval(in: weather.spot.zone)
    let ofDay = hours.filter { interval.start <= $0.instant && $0.instant < interval.end }
    // A period belongs to its wave, so it is taken from the hour with the highest waves or swell and not computed for itself.
    let waves = ofDay.compactMap(\.sea).max { ($0.waveMeters ?? -1) < ($1.waveMeters ?? -1) }
    let swell = ofDay.compactMap(\.sea).max { ($0.swellMeters ?? -1) < ($1.swellMeters ?? -1) }
    self.day = day.description
    skipped = interval.duration == 0
    temperatureMinC = row?.lowestCelsius ?? summary?.temperatureCelsius?.lowerBound
    temperatureMaxC = row?.highestCelsius ?? summary?.temperatureCelsius?.upperBound
    // A sum of binary fractions would be written like 0.30000000000000004.
    precipitationMm = row?.precipitationMillimeters ?? summary?.precipitationMillimeters?.rounded(decimals: 2)
    precipitationPercent = row?.precipitationPercent
    // A daily maximum below one of the shown hours would contradict them.
    windMaxKmh = (ofDay.compactMap(\.windKilometersPerHour) + [row?.windKilometersPerHour].compactMap { $0 }).max()
    gustMaxKmh = row?.gustKilometersPerHour
    uvIndexMax = row?.uvIndex
    waveMaxM = waves?.waveMeters
    // `max` also returns an hour without waves if no hour has any. Its period must not be shown alone.
    wavePeriodS = waves?.waveMeters == nil ? nil : waves?.wavePeriodSeconds
    swellMaxM = swell?.swellMeters
    swellPeriodS = swell?.swellMeters == nil ? nil : swell?.swellPeriodSeconds
    self.weather = row?.words ?? summary?.noon.words
    // The code of a daily row stays missing where the row has none, and is not replaced by that of noon.
    weatherCode = row.map { $0.code?.rawValue } ?? summary?.noon.code?.rawValue
  }
}

extension WeatherReading {
  /// Name of the reading's state and, where a request failed, the reason.
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
  /// Age of the value, rounded to whole seconds.
  public var ageSeconds: Int { Int((age / .seconds(1)).rounded()) }

  /// Whether the value is expired, or a refresh was tried and failed.
  public var isOld: Bool { state != .fresh || refreshError != nil }

  /// Name of the value's origin: "network", "memory" or "disk".
  var originWord: String { origin == .remote ? "network" : origin.rawValue }
}
