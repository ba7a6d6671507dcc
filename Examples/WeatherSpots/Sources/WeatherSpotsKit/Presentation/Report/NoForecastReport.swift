import Foundation

/// A spot of which there is no forecast, in a list of ``ForecastReport``s: with the same keys, so that a reader of the list need not ask
/// which there are.
public struct NoForecastReport: Encodable, Sendable {
  /// The name of the spot.
  public let spot: String
  private let texts: [CodingKeys: String]
  private let coordinate: Coordinate

  /// Makes the report of a forecast that has no values for the first day.
  public init(_ weather: SpotWeather, provider: String, _ problem: WeatherProblem) {
    spot = weather.spot.name
    coordinate = weather.spot.coordinate
    texts = [
      .spot: spot, .country: weather.spot.country, .day: weather.day.description, .timezone: weather.spot.timezone, .provider: provider,
      .problem: problem.description,
    ]
  }

  private enum CodingKeys: String, CodingKey, CaseIterable {
    case spot, country, latitude, longitude, day, timezone, provider, now, noon, temperatureMinC, temperatureMaxC, precipitationMm,
      windMaxKmh
    case sea, alerts, days, hours, astronomy, origin, server, recorded, fetchedAt, ageSeconds, stale, problem, attribution
  }

  /// Writes what is known, and `null` for all else.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    for key in CodingKeys.allCases { try container.encode(texts[key], forKey: key) }
    try container.encode(coordinate.latitude, forKey: .latitude)
    try container.encode(coordinate.longitude, forKey: .longitude)
  }
}
