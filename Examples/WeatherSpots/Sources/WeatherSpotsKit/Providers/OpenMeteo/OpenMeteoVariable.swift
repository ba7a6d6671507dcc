import Foundation

/// A variable of Open-Meteo, with the required unit and the property that its values are stored in.
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
    // `Int(exactly:)`: `Int(_:)` traps on a number out of range, and the number is the server's.
    put = { value, row in row[keyPath: property] = value.flatMap { Int(exactly: $0) }.map(WeatherCode.init(rawValue:)) }
  }
}

extension WeatherHour {
  /// Requested variables of the current conditions, each with its required unit.
  static let currentVariables: [OpenMeteoVariable<WeatherHour>] = [
    OpenMeteoVariable("temperature_2m", "°C", \.temperatureCelsius), OpenMeteoVariable("apparent_temperature", "°C", \.apparentCelsius),
    OpenMeteoVariable("relative_humidity_2m", "%", \.humidityPercent), OpenMeteoVariable("precipitation", "mm", \.precipitationMillimeters),
    OpenMeteoVariable(code: "weather_code", \.code), OpenMeteoVariable("cloud_cover", "%", \.cloudPercent),
    OpenMeteoVariable("pressure_msl", "hPa", \.pressureHectopascals), OpenMeteoVariable("wind_speed_10m", "km/h", \.windKilometersPerHour),
    OpenMeteoVariable("wind_gusts_10m", "km/h", \.gustKilometersPerHour), OpenMeteoVariable("wind_direction_10m", "°", \.windDegrees),
  ]

  /// Requested variables of the hourly forecast, each with its required unit.
  static let hourlyVariables =
    currentVariables + [
      OpenMeteoVariable("precipitation_probability", "%", \.precipitationPercent), OpenMeteoVariable("uv_index", "", \.uvIndex),
    ]
}

extension WeatherDay {
  /// Requested variables of the daily forecast, each with its required unit.
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
  /// Requested variables of the marine forecast, each with its required unit.
  static let variables: [OpenMeteoVariable<SeaHour>] = [
    OpenMeteoVariable("wave_height", "m", \.waveMeters), OpenMeteoVariable("wave_direction", "°", \.waveDegrees),
    OpenMeteoVariable("wave_period", "s", \.wavePeriodSeconds), OpenMeteoVariable("swell_wave_height", "m", \.swellMeters),
    OpenMeteoVariable("swell_wave_direction", "°", \.swellDegrees), OpenMeteoVariable("swell_wave_period", "s", \.swellPeriodSeconds),
    OpenMeteoVariable("sea_surface_temperature", "°C", \.surfaceCelsius),
  ]
}

extension OpenMeteoTable {
  /// Converts the columns of a table into rows.
  ///
  /// - Throws: ``ProviderError/unexpectedUnit(column:unit:)`` if a column has another unit than its variable requires.
  func rows<Row>(_ make: (Date) -> Row, _ variables: [OpenMeteoVariable<Row>]) throws(ProviderError) -> [Row] {
    var rows = instants.map(make)
    for variable in variables {
      // The table checked at its creation that all columns have as many values as there are rows.
      for (index, value) in try column(variable.name, unit: variable.unit).enumerated() { variable.put(value, &rows[index]) }
    }
    return rows
  }
}
