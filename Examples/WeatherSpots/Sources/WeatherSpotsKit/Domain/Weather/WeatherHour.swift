// Forecasts/ holds what a forecast is, what a provider of forecasts is asked and answers, and the summary of a day for reading.
// Invariant: every value carries its unit in its name, every row its instant, and no row of one day is ever shown for another.

public import Foundation

/// The weather at one instant; a value that the service did not give is `nil`, never 0.
public struct WeatherHour: Codable, Hashable, Sendable {
  /// The instant.
  public var instant: Date
  /// The air temperature two metres above the ground, in degrees Celsius.
  public var temperatureCelsius: Double?
  /// The apparent temperature, in degrees Celsius.
  public var apparentCelsius: Double?
  /// Rain, showers and snow of the hour before, in millimetres of water.
  public var precipitationMillimeters: Double?
  /// The probability of precipitation, 0 to 100.
  public var precipitationPercent: Double?
  /// The wind ten metres above the ground, in kilometres per hour.
  public var windKilometersPerHour: Double?
  /// The strongest gust of the hour before, in kilometres per hour.
  public var gustKilometersPerHour: Double?
  /// The direction that the wind comes from, in degrees clockwise from north.
  public var windDegrees: Double?
  /// The relative humidity, 0 to 100.
  public var humidityPercent: Double?
  /// The cloud cover, 0 to 100.
  public var cloudPercent: Double?
  /// The air pressure at sea level, in hectopascals.
  public var pressureHectopascals: Double?
  /// The UV index.
  public var uvIndex: Double?
  /// The kind of weather.
  public var code: WeatherCode?
  /// The kind of weather in the words of a provider that has no WMO codes.
  public var condition: String?
  /// The sea at the same instant, where there is one.
  public var sea: SeaHour?

  init(instant: Date) { self.instant = instant }

  /// Whether there is anything to show.
  var hasValues: Bool {
    let numbers = [
      temperatureCelsius, apparentCelsius, precipitationMillimeters, windKilometersPerHour, cloudPercent, pressureHectopascals,
    ]
    return code != nil || condition != nil || numbers.contains { $0 != nil }
  }

  /// The kind of weather in words.
  public var words: String? { code?.description ?? condition }
}

/// The sea at one instant.
public struct SeaHour: Codable, Hashable, Sendable {
  /// The instant.
  public var instant: Date
  /// The significant height of the waves, in metres.
  public var waveMeters: Double?
  /// The direction that the waves come from, in degrees clockwise from north.
  public var waveDegrees: Double?
  /// The time from wave to wave, in seconds.
  public var wavePeriodSeconds: Double?
  /// The temperature of the water's surface, in degrees Celsius.
  public var surfaceCelsius: Double?

  /// The significant height of the swell, in metres.
  public var swellMeters: Double?
  /// The direction that the swell comes from, in degrees clockwise from north.
  public var swellDegrees: Double?
  /// The time from swell to swell, in seconds.
  public var swellPeriodSeconds: Double?

  init(instant: Date) { self.instant = instant }

  /// Whether there is anything to show.
  var hasValues: Bool { waveMeters != nil || surfaceCelsius != nil || swellMeters != nil }
}
