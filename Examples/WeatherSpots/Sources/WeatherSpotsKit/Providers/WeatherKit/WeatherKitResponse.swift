import Foundation

/// WeatherKit's answer, with the data sets that were requested and are available.
///
/// Each data set is decoded on its own. One that lacks a field is unreadable, names that field, and leaves the others intact.
struct WeatherKitResponse: Decodable {
  let currentWeather: DataSet<Joined<Current>>
  let forecastHourly: DataSet<Hourly>
  let forecastDaily: DataSet<Daily>
  let weatherAlerts: DataSet<Alerts>

  /// A data set of the answer, with the outcome of its decoding.
  enum DataSet<Wire: Decodable> {
    case here(Wire)
    /// The answer does not have the data set.
    case missing
    /// The data set cannot be decoded, for the given reason.
    case unreadable(String)
  }

  private enum CodingKeys: CodingKey { case currentWeather, forecastHourly, forecastDaily, weatherAlerts }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func dataSet<Wire>(_ key: CodingKeys) -> DataSet<Wire> {
      // The error stays in its data set: thrown, it would fail all others too.
      do { return try container.decodeIfPresent(Wire.self, forKey: key).map(DataSet.here) ?? .missing } catch {
        return .unreadable(Self.words(error))
      }
    }
    currentWeather = dataSet(.currentWeather)
    forecastHourly = dataSet(.forecastHourly)
    forecastDaily = dataSet(.forecastDaily)
    weatherAlerts = dataSet(.weatherAlerts)
  }

  /// Returns a description of a decoding error, such as "forecastHourly.hours[3].forecastStart is missing".
  ///
  /// It has no value of the answer.
  private static func words(_ error: any Error) -> String {
    func name(_ path: [any CodingKey]) -> String {
      path.reduce("") { $0 + ($1.intValue.map { "[\($0)]" } ?? ($0.isEmpty ? "" : ".") + $1.stringValue) }
    }
    return switch error {
    case DecodingError.keyNotFound(let key, let context): "\(name(context.codingPath + [key])) is missing"
    case DecodingError.valueNotFound(_, let context): "\(name(context.codingPath)) is missing"
    case DecodingError.typeMismatch(_, let context), DecodingError.dataCorrupted(let context):
      "\(name(context.codingPath)) is not as documented"
    default: "not the documented JSON"
    }
  }

  struct Metadata: Decodable {
    let expireTime: Date
    let units: String?
  }

  /// An object with fields of its own and the conditions beside them.
  struct Joined<Own: Decodable>: Decodable {
    let own: Own
    let conditions: Conditions

    init(from decoder: any Decoder) throws {
      own = try Own(from: decoder)
      // From the same object: the API puts these fields beside the others, not into an object of their own.
      conditions = try Conditions(from: decoder)
    }
  }

  struct Current: Decodable {
    let metadata: Metadata
    let asOf: Date
  }

  struct Hourly: Decodable {
    let metadata: Metadata
    let hours: [Joined<Hour>]
  }

  struct Hour: Decodable {
    let forecastStart: Date
    let precipitationAmount: Double?
    let precipitationChance: Double?
  }

  /// Fields that the JSON objects of the current weather and of an hour have in common.
  struct Conditions: Decodable {
    let conditionCode: String?
    let temperature: Double?
    let temperatureApparent: Double?
    let humidity: Double?
    let cloudCover: Double?
    let pressure: Double?
    let windSpeed: Double?
    let windGust: Double?
    let windDirection: Double?
    let uvIndex: Double?
  }

  struct Daily: Decodable {
    let metadata: Metadata
    let days: [Day]
  }

  struct Day: Decodable {
    let forecastStart: Date
    let conditionCode: String?
    let temperatureMax: Double?
    let temperatureMin: Double?
    let precipitationAmount: Double?
    let precipitationChance: Double?
    let maxUvIndex: Double?
    let windSpeedMax: Double?
    let windGustSpeedMax: Double?
    let daytimeForecast: Part?
  }

  struct Part: Decodable {
    let windDirection: Double?
  }

  struct Alerts: Decodable {
    let metadata: Metadata
    let alerts: [Alert]
  }

  struct Alert: Decodable {
    let id: String
    let areaName: String?
    let description: String
    let effectiveTime: Date
    let expireTime: Date
    let issuedTime: Date
    let eventOnsetTime: Date?
    let eventEndTime: Date?
    let severity: String?
    let urgency: String?
    let certainty: String?
    let source: String?
    let detailsUrl: String?
  }

  /// Decodes the body of a response with status 200.
  init(_ body: Data) throws(ProviderError) {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    do {
      self = try decoder.decode(WeatherKitResponse.self, from: body)
    } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
      // No JSON: the page of a proxy, or an answer that was cut off.
      let start = body.first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }
      throw start == UInt8(ascii: "{") ? .interrupted : .notJSON(status: 200)
    } catch {
      throw .malformed("not the documented JSON")
    }
  }

  /// Returns the error for a response with another status than 200.
  static func error(_ response: TransportResponse, at now: Date) -> ProviderError {
    let body: ErrorBody?
    do { body = try JSONDecoder().decode(ErrorBody.self, from: response.body) } catch { body = nil }
    let text = (body?.message ?? body?.reason ?? body?.error ?? "status \(response.status)")
    // The reason is shown on one line of a terminal: no control characters, and a limited length.
    let reason = String(text.prefix(200).filter { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" })
    return switch response.status {
    case 401, 403: .unauthorized(reason: reason)
    // A 429 without `Retry-After` needs a window: `Holds` keeps later commands from a host only after an error with a wait.
    case 429: .rateLimited(.minute, retryAfter: response.retryAfter, reason: reason).waitingUntilWindowEnds(at: now)
    case 500...: .serviceFailed(status: response.status, retryAfter: response.retryAfter)
    // A 404 without the service's JSON is a wrong server, not a refused place.
    case 404 where body == nil: .notJSON(status: 404)
    default: .rejected(status: response.status, reason: reason)
    }
  }

  private struct ErrorBody: Decodable {
    let message: String?
    let reason: String?
    let error: String?
  }
}
