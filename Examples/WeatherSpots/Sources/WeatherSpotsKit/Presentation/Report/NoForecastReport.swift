import Foundation

/// A spot of which there is no forecast, in a list of ``ForecastReport``s: with the same keys, so that a reader of the list need not ask
/// which there are.
public struct NoForecastReport: Encodable, Sendable {
  /// The name of the spot.
  public let spot: String
  private let country: String
  private let latitude: Double
  private let longitude: Double
  private let day: String
  private let timezone: String
  private let provider: String
  private let problem: String

  /// Makes the report of a forecast that has no values for the first day.
  public init(_ weather: SpotWeather, provider: String, _ problem: WeatherProblem) {
    let spot = weather.spot
    (self.spot, country, timezone) = (spot.name, spot.country, spot.timezone)
    (latitude, longitude) = (spot.latitude, spot.longitude)
    (day, self.provider, self.problem) = (weather.day.description, provider, problem.description)
  }

  private enum CodingKeys: String, CodingKey, CaseIterable {
    case spot, country, latitude, longitude, day, timezone, provider, now, noon, temperatureMinC, temperatureMaxC, precipitationMm,
      windMaxKmh
    case sea, alerts, days, hours, astronomy, origin, server, recorded, fetchedAt, ageSeconds, stale, problem, attribution
  }

  /// Writes what is known, and `null` for all else.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    for key in CodingKeys.allCases {
      switch key {
      case .spot: try container.encode(spot, forKey: key)
      case .country: try container.encode(country, forKey: key)
      case .latitude: try container.encode(latitude, forKey: key)
      case .longitude: try container.encode(longitude, forKey: key)
      case .day: try container.encode(day, forKey: key)
      case .timezone: try container.encode(timezone, forKey: key)
      case .provider: try container.encode(provider, forKey: key)
      case .problem: try container.encode(problem, forKey: key)
      default: try container.encodeNil(forKey: key)
      }
    }
  }
}
