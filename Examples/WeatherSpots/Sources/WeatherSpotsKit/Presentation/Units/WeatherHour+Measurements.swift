public import Foundation

extension WeatherHour {
  /// Air temperature two metres above the ground.
  public var temperature: Measurement<UnitTemperature>? { temperatureCelsius.map { Measurement(value: $0, unit: .celsius) } }
  /// Apparent (felt) temperature.
  public var apparentTemperature: Measurement<UnitTemperature>? { apparentCelsius.map { Measurement(value: $0, unit: .celsius) } }
  /// Precipitation of the preceding hour, with snow as melted water.
  public var precipitation: Measurement<UnitLength>? { precipitationMillimeters.map { Measurement(value: $0, unit: .millimeters) } }
  /// Wind speed ten metres above the ground.
  public var wind: Measurement<UnitSpeed>? { windKilometersPerHour.map { Measurement(value: $0, unit: .kilometersPerHour) } }
  /// Strongest gust of the preceding hour.
  public var gust: Measurement<UnitSpeed>? { gustKilometersPerHour.map { Measurement(value: $0, unit: .kilometersPerHour) } }
  /// Direction that the wind comes from, clockwise from north.
  public var windDirection: Measurement<UnitAngle>? { windDegrees.map { Measurement(value: $0, unit: .degrees) } }
}

extension SeaHour {
  /// Significant height of the waves.
  public var waveHeight: Measurement<UnitLength>? { waveMeters.map { Measurement(value: $0, unit: .meters) } }
  /// Time from one wave to the next.
  public var wavePeriod: Measurement<UnitDuration>? { wavePeriodSeconds.map { Measurement(value: $0, unit: .seconds) } }
  /// Direction that the waves come from, clockwise from north.
  public var waveDirection: Measurement<UnitAngle>? { waveDegrees.map { Measurement(value: $0, unit: .degrees) } }
  /// Temperature of the water's surface.
  public var surfaceTemperature: Measurement<UnitTemperature>? { surfaceCelsius.map { Measurement(value: $0, unit: .celsius) } }
}
