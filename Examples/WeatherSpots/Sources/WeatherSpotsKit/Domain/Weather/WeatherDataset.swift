/// The kinds of weather data, each of which is fetched and cached separately.
public enum WeatherDataset: String, Codable, CaseIterable, Sendable {
  /// Current conditions.
  case current
  /// A row for each hour.
  case hourly
  /// A row for each day.
  case daily
  /// Warnings of the authorities.
  case alerts
  /// Sea, hour by hour.
  case marine
  /// Sun and Moon, which are computed on the device.
  case astronomy
}

/// The origin of weather data.
public struct Provenance: Codable, Hashable, Sendable {
  /// Name of the provider.
  public var provider: String
  /// Host that answered the request.
  public var server: String
  /// Whether the data are an old recording with new dates, and thus not the real weather.
  public var isRecorded: Bool
}

/// The current weather of a place, with its origin.
public struct CurrentWeather: Codable, Sendable {
  /// Conditions, with the instant at which they hold.
  public var conditions: WeatherHour
  /// Origin of the data.
  public var provenance: Provenance
}

/// An hourly weather forecast, with its origin.
public struct HourlyForecast: Codable, Sendable {
  /// Hours in order, with some before and after the requested days, so that every day is complete.
  public var hours: [WeatherHour]
  /// Origin of the data.
  public var provenance: Provenance

  /// Returns the hours with the sea conditions of the same instants, where the marine forecast has them.
  public func merged(with sea: MarineForecast?) -> [WeatherHour] {
    guard let sea else { return hours }
    // Joined by instant and not by position: the two services do not cover the same hours.
    // `uniquingKeysWith:`, since `Dictionary(uniqueKeysWithValues:)` traps if a marine forecast repeats an instant.
    let byInstant = Dictionary(sea.hours.map { ($0.instant, $0) }, uniquingKeysWith: { first, _ in first })
    return hours.map { hour in
      var hour = hour
      hour.sea = byInstant[hour.instant]
      return hour
    }
  }
}

/// A daily weather forecast, with its origin.
public struct DailyForecast: Codable, Sendable {
  /// Days in order.
  public var days: [WeatherDay]
  /// Origin of the data.
  public var provenance: Provenance
}

/// An hourly marine forecast, with its origin.
public struct MarineForecast: Codable, Sendable {
  /// Hours that have values, in order.
  public var hours: [SeaHour]
  /// Origin of the data.
  public var provenance: Provenance
}

/// The weather warnings in force at a place, with their origin.
public struct WeatherAlerts: Codable, Sendable {
  /// Warnings in force, or an empty array if the provider answered that there are none.
  public var alerts: [WeatherAlert]
  /// Origin of the data.
  public var provenance: Provenance
}
