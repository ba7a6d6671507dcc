import Foundation

/// A column of the service, the unit it must be in, and where its values go.
struct OpenMeteoVariable<Row>: Sendable {
  let name: String
  let unit: String
  let put: @Sendable (Double?, inout Row) -> Void

  init(_ name: String, _ unit: String, _ property: any WritableKeyPath<Row, Double?> & Sendable) {
    self.name = name
    self.unit = unit
    put = { value, row in row[keyPath: property] = value }
  }

  init(code name: String, _ property: any WritableKeyPath<Row, WeatherCode?> & Sendable) {
    self.name = name
    unit = "wmo code"
    put = { value, row in row[keyPath: property] = value.flatMap { Int(exactly: $0) }.map(WeatherCode.init(rawValue:)) }
  }
}

extension WeatherHour {
  /// The requested variables of the moment.
  static let currentVariables: [OpenMeteoVariable<WeatherHour>] = [
    OpenMeteoVariable("temperature_2m", "°C", \.temperatureCelsius), OpenMeteoVariable("apparent_temperature", "°C", \.apparentCelsius),
    OpenMeteoVariable("relative_humidity_2m", "%", \.humidityPercent), OpenMeteoVariable("precipitation", "mm", \.precipitationMillimeters),
    OpenMeteoVariable(code: "weather_code", \.code), OpenMeteoVariable("cloud_cover", "%", \.cloudPercent),
    OpenMeteoVariable("pressure_msl", "hPa", \.pressureHectopascals), OpenMeteoVariable("wind_speed_10m", "km/h", \.windKilometersPerHour),
    OpenMeteoVariable("wind_gusts_10m", "km/h", \.gustKilometersPerHour), OpenMeteoVariable("wind_direction_10m", "°", \.windDegrees),
  ]

  /// The requested variables of each hour, with the unit in which they must come.
  static let hourlyVariables =
    currentVariables + [
      OpenMeteoVariable("precipitation_probability", "%", \.precipitationPercent), OpenMeteoVariable("uv_index", "", \.uvIndex),
    ]
}

extension WeatherDay {
  /// The requested variables of each day.
  static let variables: [OpenMeteoVariable<WeatherDay>] = [
    OpenMeteoVariable(code: "weather_code", \.code), OpenMeteoVariable("temperature_2m_max", "°C", \.highestCelsius),
    OpenMeteoVariable("temperature_2m_min", "°C", \.lowestCelsius),
    OpenMeteoVariable("precipitation_sum", "mm", \.precipitationMillimeters),
    OpenMeteoVariable("precipitation_probability_max", "%", \.precipitationPercent),
    OpenMeteoVariable("wind_speed_10m_max", "km/h", \.windKilometersPerHour),
    OpenMeteoVariable("wind_gusts_10m_max", "km/h", \.gustKilometersPerHour),
    OpenMeteoVariable("wind_direction_10m_dominant", "°", \.windDegrees), OpenMeteoVariable("uv_index_max", "", \.uvIndex),
  ]
}

extension SeaHour {
  /// The requested variables of each hour of the sea.
  static let variables: [OpenMeteoVariable<SeaHour>] = [
    OpenMeteoVariable("wave_height", "m", \.waveMeters), OpenMeteoVariable("wave_direction", "°", \.waveDegrees),
    OpenMeteoVariable("wave_period", "s", \.wavePeriodSeconds), OpenMeteoVariable("swell_wave_height", "m", \.swellMeters),
    OpenMeteoVariable("swell_wave_direction", "°", \.swellDegrees), OpenMeteoVariable("swell_wave_period", "s", \.swellPeriodSeconds),
    OpenMeteoVariable("sea_surface_temperature", "°C", \.surfaceCelsius),
  ]
}

extension OpenMeteoTable {
  /// Turns columns into rows.
  func rows<Row>(_ make: (Date) -> Row, _ variables: [OpenMeteoVariable<Row>]) throws(ProviderError) -> [Row] {
    var rows = instants.map(make)
    for variable in variables {
      for (index, value) in try column(variable.name, unit: variable.unit).enumerated() { variable.put(value, &rows[index]) }
    }
    return rows
  }
}
