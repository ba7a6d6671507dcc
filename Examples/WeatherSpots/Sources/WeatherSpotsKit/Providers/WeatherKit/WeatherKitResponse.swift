import Foundation

/// The answer of WeatherKit: the data sets that were requested and that it has.
///
/// Each data set is read for itself: one with a gap does not sink the others, and says what it lacks.
struct WeatherKitResponse: Decodable {
  let currentWeather: DataSet<Current>
  let forecastHourly: DataSet<Hourly>
  let forecastDaily: DataSet<Daily>
  let weatherAlerts: DataSet<Alerts>

  /// A data set of an answer.
  enum DataSet<Wire: Decodable> {
    case here(Wire)
    /// It was not sent.
    case missing
    /// It cannot be read; what is wrong with it.
    case unreadable(String)
  }

  private enum CodingKeys: CodingKey { case currentWeather, forecastHourly, forecastDaily, weatherAlerts }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func dataSet<Wire>(_ key: CodingKeys) -> DataSet<Wire> {
      do { return try container.decodeIfPresent(Wire.self, forKey: key).map(DataSet.here) ?? .missing } catch {
        return .unreadable(Self.words(error))
      }
    }
    currentWeather = dataSet(.currentWeather)
    forecastHourly = dataSet(.forecastHourly)
    forecastDaily = dataSet(.forecastDaily)
    weatherAlerts = dataSet(.weatherAlerts)
  }

  /// Returns a description of a missing field, such as "forecastHourly.hours[3].forecastStart is missing", without any value.
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
    let readTime: Date?
    let units: String?
  }

  struct Current: Decodable {
    let metadata: Metadata
    let asOf: Date
    let conditions: Conditions

    private enum CodingKeys: CodingKey { case metadata, asOf }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      metadata = try container.decode(Metadata.self, forKey: .metadata)
      asOf = try container.decode(Date.self, forKey: .asOf)
      conditions = try Conditions(from: decoder)
    }
  }

  struct Hourly: Decodable {
    let metadata: Metadata
    let hours: [Hour]
  }

  struct Hour: Decodable {
    let forecastStart: Date
    let precipitationAmount: Double?
    let precipitationChance: Double?
    let conditions: Conditions

    private enum CodingKeys: CodingKey { case forecastStart, precipitationAmount, precipitationChance }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      forecastStart = try container.decode(Date.self, forKey: .forecastStart)
      precipitationAmount = try container.decodeIfPresent(Double.self, forKey: .precipitationAmount)
      precipitationChance = try container.decodeIfPresent(Double.self, forKey: .precipitationChance)
      conditions = try Conditions(from: decoder)
    }
  }

  /// The weather of the moment or of an hour, in whose objects these fields are.
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

  /// Reads the body of an answer with the status 200.
  init(_ body: Data) throws(ProviderError) {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    do {
      self = try decoder.decode(WeatherKitResponse.self, from: body)
    } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
      // Not JSON at all: a page of something in between, or the first part of an answer.
      let start = body.first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }
      throw start == UInt8(ascii: "{") ? .interrupted : .notJSON(status: 200)
    } catch {
      throw .malformed("not the documented JSON")
    }
  }

  /// Returns the error that a status other than 200 means.
  static func error(_ response: TransportResponse, at now: Date) -> ProviderError {
    let body: ErrorBody?
    do { body = try JSONDecoder().decode(ErrorBody.self, from: response.body) } catch { body = nil }
    let text = (body?.message ?? body?.reason ?? body?.error ?? "status \(response.status)")
    let reason = String(text.prefix(200).filter { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" })
    return switch response.status {
    case 401, 403: .unauthorized(reason: reason)
    case 429: .rateLimited(.minute, retryAfter: response.retryAfter, reason: reason).waitingUntilWindowEnds(at: now)
    case 500...: .serviceFailed(status: response.status, retryAfter: response.retryAfter)
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
