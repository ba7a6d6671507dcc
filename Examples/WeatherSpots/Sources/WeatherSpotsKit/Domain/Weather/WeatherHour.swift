// Weather/ holds the values of a forecast, the keys under which forecasts are cached, and the summary of a day.
// Invariant: every value carries its unit in its name, every row its instant, and no row of one day is ever shown for another.

public import Foundation

/// The weather at one instant.
///
/// A value that the service did not give is `nil`, never 0.
public struct WeatherHour: Codable, Hashable, Sendable {
  /// Instant to which the values apply.
  public var instant: Date
  /// Air temperature two metres above the ground, in degrees Celsius.
  public var temperatureCelsius: Double?
  /// Apparent temperature, in degrees Celsius.
  public var apparentCelsius: Double?
  /// Rain, showers and snow of the hour before, in millimetres of water.
  public var precipitationMillimeters: Double?
  /// Probability of precipitation, 0 to 100.
  public var precipitationPercent: Double?
  /// Wind ten metres above the ground, in kilometres per hour.
  public var windKilometersPerHour: Double?
  /// Strongest gust of the hour before, in kilometres per hour.
  public var gustKilometersPerHour: Double?
  /// Direction that the wind comes from, in degrees clockwise from north.
  public var windDegrees: Double?
  /// Relative humidity, 0 to 100.
  public var humidityPercent: Double?
  /// Cloud cover, 0 to 100.
  public var cloudPercent: Double?
  /// Air pressure at sea level, in hectopascals.
  public var pressureHectopascals: Double?
  /// UV index.
  public var uvIndex: Double?
  /// Kind of weather.
  public var code: WeatherCode?
  /// Kind of weather in the words of a provider that has no WMO codes.
  public var condition: String?
  /// Sea conditions at the same instant, if the place is at the sea.
  public var sea: SeaHour?

  init(instant: Date) { self.instant = instant }

  /// Whether the hour has any value to show.
  var hasValues: Bool {
    let numbers = [
      temperatureCelsius, apparentCelsius, precipitationMillimeters, windKilometersPerHour, cloudPercent, pressureHectopascals,
    ]
    return code != nil || condition != nil || numbers.contains { $0 != nil }
  }

  /// Kind of weather in words.
  public var words: String? { code?.description ?? condition }
}

/// The sea conditions at one instant.
public struct SeaHour: Codable, Hashable, Sendable {
  /// Instant to which the values apply.
  public var instant: Date
  /// Significant height of the waves, in metres.
  public var waveMeters: Double?
  /// Direction that the waves come from, in degrees clockwise from north.
  public var waveDegrees: Double?
  /// Time from wave to wave, in seconds.
  public var wavePeriodSeconds: Double?
  /// Temperature of the water's surface, in degrees Celsius.
  public var surfaceCelsius: Double?

  /// Significant height of the swell, in metres.
  public var swellMeters: Double?
  /// Direction that the swell comes from, in degrees clockwise from north.
  public var swellDegrees: Double?
  /// Time from swell to swell, in seconds.
  public var swellPeriodSeconds: Double?

  init(instant: Date) { self.instant = instant }

  /// Whether the hour has any value to show.
  var hasValues: Bool { waveMeters != nil || surfaceCelsius != nil || swellMeters != nil }
}
