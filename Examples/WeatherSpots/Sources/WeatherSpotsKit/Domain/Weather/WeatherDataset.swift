/// The kinds of data that can be asked for, each fetched and kept by itself.
public enum WeatherDataset: String, Codable, CaseIterable, Sendable {
  /// The conditions of the moment.
  case current
  /// A row for each hour.
  case hourly
  /// A row for each day.
  case daily
  /// Warnings of the authorities.
  case alerts
  /// The sea, hour by hour.
  case marine
  /// Sun and moon, which are computed here.
  case astronomy
}

/// The origin of data.
public struct Provenance: Codable, Hashable, Sendable {
  /// The name of the provider.
  public var provider: String
  /// The host that answered.
  public var server: String
  /// Whether the data were recorded earlier and dated anew: then they are not the weather.
  public var isRecorded: Bool

  /// Makes a provenance.
  public init(provider: String, server: String, isRecorded: Bool) {
    self.provider = provider
    self.server = server
    self.isRecorded = isRecorded
  }
}

/// The conditions of the moment.
public struct CurrentWeather: Codable, Sendable {
  /// The conditions, at their instant.
  public var conditions: WeatherHour
  /// The origin of the data.
  public var provenance: Provenance
}

/// The weather hour by hour.
public struct HourlyForecast: Codable, Sendable {
  /// The hours, in order; some more than the days asked for, so that none of their ends is missing.
  public var hours: [WeatherHour]
  /// The origin of the data.
  public var provenance: Provenance

  /// Returns the hours with the sea beside them, instant by instant: the two services do not reach equally far.
  public func merged(with sea: MarineForecast?) -> [WeatherHour] {
    guard let sea else { return hours }
    let byInstant = Dictionary(sea.hours.map { ($0.instant, $0) }, uniquingKeysWith: { first, _ in first })
    return hours.map { hour in
      var hour = hour
      hour.sea = byInstant[hour.instant]
      return hour
    }
  }
}

/// The weather day by day.
public struct DailyForecast: Codable, Sendable {
  /// The days, in order.
  public var days: [WeatherDay]
  /// The origin of the data.
  public var provenance: Provenance
}

/// The sea hour by hour.
public struct MarineForecast: Codable, Sendable {
  /// The hours that have values, in order.
  public var hours: [SeaHour]
  /// The origin of the data.
  public var provenance: Provenance
}

/// The warnings in force.
public struct WeatherAlerts: Codable, Sendable {
  /// The warnings; none is an answer too.
  public var alerts: [WeatherAlert]
  /// The origin of the data.
  public var provenance: Provenance
}
