import Foundation

/// The row of a spot without a forecast in a list of ``ForecastReport``s.
///
/// The row has the same keys as a ``ForecastReport``, so that a program can read all rows of the list in one way.
public struct NoForecastReport: Encodable, Sendable {
  /// Name of the spot.
  public let spot: String
  private let row: JSONRow

  /// Creates the row of a forecast that has no values for the first day.
  public init(_ weather: SpotWeather, provider: String, _ problem: WeatherProblem) {
    spot = weather.spot.name
    row = [
      "spot": spot, "country": weather.spot.country, "latitude": weather.spot.latitude, "longitude": weather.spot.longitude,
      "day": weather.day.description, "timezone": weather.spot.timezone, "provider": provider, "problem": problem.description,
      // Listed one by one, so that the keys are those of `ForecastReport`.
      "now": nil, "noon": nil, "temperatureMinC": nil, "temperatureMaxC": nil, "precipitationMm": nil, "windMaxKmh": nil, "sea": nil,
      "alerts": nil, "days": nil, "hours": nil, "astronomy": nil, "origin": nil, "server": nil, "recorded": nil, "fetchedAt": nil,
      "ageSeconds": nil, "stale": nil, "attribution": nil,
    ]
  }

  /// Writes the spot, the day and the problem, and `null` for every other key.
  public func encode(to encoder: any Encoder) throws { try row.encode(to: encoder) }
}
