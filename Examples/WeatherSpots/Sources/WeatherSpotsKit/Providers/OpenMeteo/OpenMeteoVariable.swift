import Foundation

/// A column of the service, the unit it must be in, and where its values go.
struct Variable<Row>: Sendable {
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
  /// What is asked for of the moment.
  static let currentVariables: [Variable<WeatherHour>] = [
    Variable("temperature_2m", "°C", \.temperatureCelsius), Variable("apparent_temperature", "°C", \.apparentCelsius),
    Variable("relative_humidity_2m", "%", \.humidityPercent), Variable("precipitation", "mm", \.precipitationMillimeters),
    Variable(code: "weather_code", \.code), Variable("cloud_cover", "%", \.cloudPercent),
    Variable("pressure_msl", "hPa", \.pressureHectopascals), Variable("wind_speed_10m", "km/h", \.windKilometersPerHour),
    Variable("wind_gusts_10m", "km/h", \.gustKilometersPerHour), Variable("wind_direction_10m", "°", \.windDegrees),
  ]

  /// What is asked for of each hour, and the unit in which it must come.
  static let hourlyVariables =
    currentVariables + [
      Variable("precipitation_probability", "%", \.precipitationPercent), Variable("uv_index", "", \.uvIndex),
    ]
}

extension WeatherDay {
  /// What is asked for of each day.
  static let variables: [Variable<WeatherDay>] = [
    Variable(code: "weather_code", \.code), Variable("temperature_2m_max", "°C", \.highestCelsius),
    Variable("temperature_2m_min", "°C", \.lowestCelsius), Variable("precipitation_sum", "mm", \.precipitationMillimeters),
    Variable("precipitation_probability_max", "%", \.precipitationPercent),
    Variable("wind_speed_10m_max", "km/h", \.windKilometersPerHour), Variable("wind_gusts_10m_max", "km/h", \.gustKilometersPerHour),
    Variable("wind_direction_10m_dominant", "°", \.windDegrees), Variable("uv_index_max", "", \.uvIndex),
  ]
}

extension SeaHour {
  /// What is asked for of each hour of the sea.
  static let variables: [Variable<SeaHour>] = [
    Variable("wave_height", "m", \.waveMeters), Variable("wave_direction", "°", \.waveDegrees),
    Variable("wave_period", "s", \.wavePeriodSeconds), Variable("swell_wave_height", "m", \.swellMeters),
    Variable("swell_wave_direction", "°", \.swellDegrees), Variable("swell_wave_period", "s", \.swellPeriodSeconds),
    Variable("sea_surface_temperature", "°C", \.surfaceCelsius),
  ]
}

extension OpenMeteoTable {
  /// Turns columns into rows.
  func rows<Row>(_ make: (Date) -> Row, _ variables: [Variable<Row>]) throws(ProviderError) -> [Row] {
    var rows = instants.map(make)
    for variable in variables {
      for (index, value) in try column(variable.name, unit: variable.unit).enumerated() { variable.put(value, &rows[index]) }
    }
    return rows
  }
}
