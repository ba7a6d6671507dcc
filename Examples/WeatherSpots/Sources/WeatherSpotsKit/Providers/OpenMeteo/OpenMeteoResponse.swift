import Foundation

/// The answer of Open-Meteo for one place: its sections as tables over instants.
public struct OpenMeteoResponse: Sendable {
  /// One row, of the moment of the request.
  public let current: OpenMeteoTable
  /// A row for each hour.
  public let hourly: OpenMeteoTable
  /// A row for each day of the asked zone, at the instant at which it begins.
  public let daily: OpenMeteoTable
  /// The zone of the labels, as the service names it.
  public let timezone: String?

  /// Whether there is a row in any of the sections.
  var hasSections: Bool { [current, hourly, daily].contains { !$0.instants.isEmpty } }

  /// Reads the answer for one place, error bodies and broken ones included.
  public init(_ response: TransportResponse) throws(ProviderError) {
    let places = try Self.places(response)
    guard let place = places.first else { throw .malformed("no place") }
    self = place
  }

  /// Reads an answer: an object for one place, an array for several, in the order in which they were asked for.
  public static func places(_ response: TransportResponse) throws(ProviderError) -> [OpenMeteoResponse] {
    guard let bodies = decode(response.body) else { throw errorOfInvalidJSON(response) }
    if let failed = bodies.first(where: { $0.error == true || ($0.reason != nil && response.status != 200) }) {
      throw error(response, reason: failed.reason ?? "no reason given")
    }
    guard response.status == 200 else { throw error(response, reason: "no reason given") }
    var places: [OpenMeteoResponse] = []
    for body in bodies { places.append(try OpenMeteoResponse(body)) }
    return places
  }

  private init(_ body: Body) throws(ProviderError) {
    guard let offset = body.offset else { throw .malformed("no utc_offset_seconds") }
    guard (-86400...86400).contains(offset) else { throw .malformed("utc_offset_seconds is more than a day") }
    current = try OpenMeteoTable(body.current, body.currentUnits, offset: offset, isDaily: false)
    hourly = try OpenMeteoTable(body.hourly, body.hourlyUnits, offset: offset, isDaily: false)
    daily = try OpenMeteoTable(body.daily, body.dailyUnits, offset: offset, isDaily: true)
    timezone = body.timezone
  }
}

extension OpenMeteoResponse {
  private struct Body: Decodable {
    let offset: Int?
    let timezone: String?
    let current: [String: OpenMeteoTable.Column]?
    let currentUnits: [String: String]?
    let hourly: [String: OpenMeteoTable.Column]?
    let hourlyUnits: [String: String]?
    let daily: [String: OpenMeteoTable.Column]?
    let dailyUnits: [String: String]?
    let error: Bool?
    let reason: String?

    enum CodingKeys: String, CodingKey {
      case offset = "utc_offset_seconds"
      case currentUnits = "current_units"
      case hourlyUnits = "hourly_units"
      case dailyUnits = "daily_units"
      case timezone, current, hourly, daily, error, reason
    }
  }

  private static func decode(_ data: Data) -> [Body]? {
    let decoder = JSONDecoder()
    let isArray = data.first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 } == UInt8(ascii: "[")
    do {
      return isArray ? try decoder.decode([Body].self, from: data) : [try decoder.decode(Body.self, from: data)]
    } catch {
      return nil  // what is wrong with it is told from its text, below
    }
  }

  static func errorOfInvalidJSON(_ response: TransportResponse) -> ProviderError {
    let text = String(decoding: response.body, as: UTF8.self)
    let start = text.drop { $0.isWhitespace }.first
    guard start == "{" || start == "[" else {
      // A page of HTML is from something in front of the service: its status says what to do, its text nothing.
      return switch response.status {
      case 500...: .serviceFailed(status: response.status, retryAfter: response.retryAfter)
      case 429: .rateLimited(.minute, retryAfter: response.retryAfter, reason: "status 429")
      default: .notJSON(status: response.status)
      }
    }
    // A point that no model covers is answered with latitude nan, which is not JSON; it would be again.
    if text.firstMatch(of: /"(latitude|longitude)"\s*:\s*-?[nN]a[nN]/) != nil { return .noCoverage }
    // An error in the middle of an answer is written behind its first part; the status was sent already.
    if text.contains("Unexpected error while streaming data") || isUnclosed(response.body) { return .interrupted }
    return .malformed("not the expected JSON")
  }

  /// Returns whether a text ends inside an object, an array or a string.
  private static func isUnclosed(_ body: Data) -> Bool {
    var (depth, inString, escaped) = (0, false, false)
    for byte in body {
      if escaped {
        escaped = false
      } else if inString {
        escaped = byte == UInt8(ascii: "\\")
        inString = byte != UInt8(ascii: "\"")
      } else {
        switch byte {
        case UInt8(ascii: "\""): inString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        default: break
        }
      }
    }
    return depth > 0 || inString
  }

  static func error(_ response: TransportResponse, reason: String) -> ProviderError {
    // The reason is shown on one line of a terminal.
    let reason = String(reason.prefix(200).filter { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" })
    if let window = RateWindow(reason: reason) { return .rateLimited(window, retryAfter: response.retryAfter, reason: reason) }
    return switch response.status {
    case 429: .rateLimited(.minute, retryAfter: response.retryAfter, reason: reason)
    case 500...: .serviceFailed(status: response.status, retryAfter: response.retryAfter)
    case 401, 403: .unauthorized(reason: reason)
    case _ where reason.hasPrefix("No data is available for this location"): .noCoverage
    default: .rejected(status: response.status, reason: reason)
    }
  }
}
