import Foundation

/// A spot of which there is no forecast, in a list of ``ForecastReport``s: with the same keys, so that a reader of the list need not ask
/// which there are.
public struct NoForecastReport: Encodable, Sendable {
  /// The name of the spot.
  public let spot: String
  private let row: JSONRow

  /// Makes the report of a forecast that has no values for the first day.
  public init(_ weather: SpotWeather, provider: String, _ problem: WeatherProblem) {
    spot = weather.spot.name
    row = [
      "spot": spot, "country": weather.spot.country, "latitude": weather.spot.latitude, "longitude": weather.spot.longitude,
      "day": weather.day.description, "timezone": weather.spot.timezone, "provider": provider, "problem": problem.description,
      "now": nil, "noon": nil, "temperatureMinC": nil, "temperatureMaxC": nil, "precipitationMm": nil, "windMaxKmh": nil, "sea": nil,
      "alerts": nil, "days": nil, "hours": nil, "astronomy": nil, "origin": nil, "server": nil, "recorded": nil, "fetchedAt": nil,
      "ageSeconds": nil, "stale": nil, "attribution": nil,
    ]
  }

  /// Writes what is known, and `null` for all else.
  public func encode(to encoder: any Encoder) throws { try row.encode(to: encoder) }
}
