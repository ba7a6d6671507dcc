import BoundedHTTP
import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import WeatherSpotsKit

extension WebResponder {
  /// Returns the forecast of a spot: the stored one at once, or with `wait=true` after newer data have been fetched.
  func forecast(of id: String, _ query: RequestQuery, _ request: Request) async throws -> Response {
    guard let (spot, revision) = try stored(id) else { throw Self.noSpot }
    let days = try query.number("days") ?? 7
    guard (1...16).contains(days) else { throw HTTPProblem(.badRequest, detail: "Expected 1 to 16 for days.") }
    let policy = try waits(query) ? options.waitingPolicy : options.policy
    let freshness = try await weather.freshness(of: spot, days: days)
    // With stale data these policies start a fetch, and a cached body would prevent it.
    guard freshness.seconds > 0, policy == .cacheFirst || policy == .staleWhileRevalidate else {
      return kept(try await self.body(of: spot, revision, days, policy), request)
    }
    // While all data are fresh, no fetch is due, and a report of some seconds ago differs from a new one only in its ages. The field
    // Age corrects them. Encoding a week of hours takes some ten milliseconds, which a cached body saves.
    let version = "\(freshness.version) \(revision)"
    let body = try await answers.body(of: "\(days) \(id)", version: version, lifetime: Self.lifetime) {
      try await self.body(of: spot, revision, days, policy)
    }
    var response = kept(body, request)
    response.headers[.age] = String(Int(body.age / .seconds(1)))
    return response
  }

  /// Age below which a cached report is sent again.
  private static let lifetime = Duration.seconds(10)

  private func body(of spot: Spot, _ revision: Revision, _ days: Int, _ policy: FetchPolicy) async throws -> AnswerCache.Body {
    let found = try await weather.forecast(for: spot, days: days, policy: policy)
    // Data that are stored while this body is made must not lend it their freshness: a stale reading gets no max-age.
    let seconds = found.isFresh ? try await weather.freshness(of: spot, days: days).seconds : 0
    let fields: HTTPFields = [
      .cacheControl: seconds > 0 ? "private, max-age=\(seconds)" : "no-cache", .eTag: Self.tag(of: found, revision, days),
    ]
    let name = weather.provider.name
    // Encoding takes milliseconds. It runs on the pool for large work, so that it does not hold up other requests.
    return try await bounds.work { () throws in
      if let report = ForecastReport(found, showsHours: true, showsAstronomy: true) {
        return AnswerCache.Body(try ReportJSON.data(report), fields)
      }
      let nothing = WeatherProblem("the weather service has no forecast for this place", "no forecast", isTransient: false)
      return AnswerCache.Body(try ReportJSON.data(NoForecastReport(found, provider: name, found.hourly.problem ?? nothing)))
    }
  }

  /// Returns an entity tag of the shown data.
  ///
  /// It is weak, since the ages in the report grow while the data stay the same.
  private static func tag(of weather: SpotWeather, _ revision: Revision, _ days: Int) -> String {
    func part<Value>(_ reading: WeatherReading<Value>?) -> String {
      guard let reading else { return "-" }
      // `state` is part of the tag: data that became stale look different on the page, though their time is the same.
      let state = reading.cached.map { "\($0.fetchedAt.timeIntervalSince1970) \($0.state) \($0.origin)" }
      return "\(state ?? "none") \(reading.problem?.description ?? "")"
    }
    let parts = [
      "\(revision)", "\(weather.day)", "\(days)", part(weather.current), part(weather.hourly), part(weather.daily),
      part(weather.marine), part(weather.alerts),
    ]
    return "W/\"\(Data(SHA256.hash(data: Data(parts.joined(separator: "\n").utf8)).prefix(12)).base64URL)\""
  }
}
