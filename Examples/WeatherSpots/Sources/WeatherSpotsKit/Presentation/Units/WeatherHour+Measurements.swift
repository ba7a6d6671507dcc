public import Foundation

extension WeatherHour {
  /// The air temperature two metres above the ground.
  public var temperature: Measurement<UnitTemperature>? { temperatureCelsius.map { Measurement(value: $0, unit: .celsius) } }
  /// The apparent temperature.
  public var apparentTemperature: Measurement<UnitTemperature>? { apparentCelsius.map { Measurement(value: $0, unit: .celsius) } }
  /// Rain, showers and snow of the hour before, as water.
  public var precipitation: Measurement<UnitLength>? { precipitationMillimeters.map { Measurement(value: $0, unit: .millimeters) } }
  /// The wind ten metres above the ground.
  public var wind: Measurement<UnitSpeed>? { windKilometersPerHour.map { Measurement(value: $0, unit: .kilometersPerHour) } }
  /// The strongest gust of the hour before.
  public var gust: Measurement<UnitSpeed>? { gustKilometersPerHour.map { Measurement(value: $0, unit: .kilometersPerHour) } }
  /// The direction that the wind comes from, clockwise from north.
  public var windDirection: Measurement<UnitAngle>? { windDegrees.map { Measurement(value: $0, unit: .degrees) } }
}

extension SeaHour {
  /// The significant height of the waves.
  public var waveHeight: Measurement<UnitLength>? { waveMeters.map { Measurement(value: $0, unit: .meters) } }
  /// The time from wave to wave.
  public var wavePeriod: Measurement<UnitDuration>? { wavePeriodSeconds.map { Measurement(value: $0, unit: .seconds) } }
  /// The direction that the waves come from, clockwise from north.
  public var waveDirection: Measurement<UnitAngle>? { waveDegrees.map { Measurement(value: $0, unit: .degrees) } }
  /// The temperature of the water's surface.
  public var surfaceTemperature: Measurement<UnitTemperature>? { surfaceCelsius.map { Measurement(value: $0, unit: .celsius) } }
}
