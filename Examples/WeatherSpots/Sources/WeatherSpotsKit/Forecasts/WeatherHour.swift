// Forecasts/ holds what a forecast is, keeps one per place and day in the store for an hour, and sums a day up for reading.
// Invariant: every value carries its unit in its name, every row its instant, and no row of one day is ever shown for another.

public import Foundation

/// The weather at one instant; a value that the service did not give is `nil`, never 0.
public struct WeatherHour: Codable, Hashable, Sendable {
  /// When.
  public var instant: Date
  /// The air temperature two metres above the ground, in degrees Celsius.
  public var temperatureCelsius: Double?
  /// What it feels like, in degrees Celsius.
  public var apparentCelsius: Double?
  /// Rain, showers and snow of the hour before, in millimetres of water.
  public var precipitationMillimeters: Double?
  /// How likely precipitation is, 0 to 100.
  public var precipitationPercent: Double?
  /// The wind ten metres above the ground, in kilometres per hour.
  public var windKilometersPerHour: Double?
  /// The strongest gust of the hour before, in kilometres per hour.
  public var gustKilometersPerHour: Double?
  /// Where the wind comes from, in degrees clockwise from north.
  public var windDegrees: Double?
  /// The kind of weather.
  public var code: WeatherCode?
  /// The sea at the same instant, where there is one.
  public var sea: SeaHour?

  init(instant: Date) { self.instant = instant }

  /// The variables that are asked for, and the unit in which each must come.
  static var variables: [Variable<WeatherHour>] {
    [
      Variable("temperature_2m", "°C", \.temperatureCelsius), Variable("apparent_temperature", "°C", \.apparentCelsius),
      Variable("precipitation", "mm", \.precipitationMillimeters), Variable("precipitation_probability", "%", \.precipitationPercent),
      Variable("wind_speed_10m", "km/h", \.windKilometersPerHour), Variable("wind_gusts_10m", "km/h", \.gustKilometersPerHour),
      Variable("wind_direction_10m", "°", \.windDegrees), Variable("weather_code", "wmo code", \.codeNumber),
    ]
  }

  private var codeNumber: Double? {
    get { code.map { Double($0.rawValue) } }
    set { code = newValue.flatMap { Int(exactly: $0) }.map(WeatherCode.init(rawValue:)) }
  }

  static func hours(_ response: OpenMeteoResponse) throws(OpenMeteoError) -> [WeatherHour] {
    try response.rows(WeatherHour.init(instant:), variables)
  }
}

/// The sea at one instant.
public struct SeaHour: Codable, Hashable, Sendable {
  /// When.
  public var instant: Date
  /// The significant height of the waves, in metres.
  public var waveMeters: Double?
  /// Where the waves come from, in degrees clockwise from north.
  public var waveDegrees: Double?
  /// The time from wave to wave, in seconds.
  public var wavePeriodSeconds: Double?
  /// The temperature of the water's surface, in degrees Celsius.
  public var surfaceCelsius: Double?

  init(instant: Date) { self.instant = instant }

  static var variables: [Variable<SeaHour>] {
    [
      Variable("wave_height", "m", \.waveMeters), Variable("wave_direction", "°", \.waveDegrees),
      Variable("wave_period", "s", \.wavePeriodSeconds), Variable("sea_surface_temperature", "°C", \.surfaceCelsius),
    ]
  }

  static func hours(_ response: OpenMeteoResponse) throws(OpenMeteoError) -> [SeaHour] {
    let hours = try response.rows(SeaHour.init(instant:), variables)
    return hours.filter { $0.waveMeters != nil || $0.surfaceCelsius != nil }
  }
}

/// A column of the service, the unit it must be in, and where its values go.
struct Variable<Row> {
  let name: String
  let unit: String
  let property: WritableKeyPath<Row, Double?>

  init(_ name: String, _ unit: String, _ property: WritableKeyPath<Row, Double?>) {
    self.name = name
    self.unit = unit
    self.property = property
  }
}

extension OpenMeteoResponse {
  /// Turns columns into rows.
  func rows<Row>(_ make: (Date) -> Row, _ variables: [Variable<Row>]) throws(OpenMeteoError) -> [Row] {
    var rows = instants.map(make)
    for variable in variables {
      for (index, value) in try column(variable.name, unit: variable.unit).enumerated() { rows[index][keyPath: variable.property] = value }
    }
    return rows
  }
}
