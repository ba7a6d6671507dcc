import Foundation

/// Open-Meteo's answer for one place, with each section as a table of rows by time.
public struct OpenMeteoResponse: Sendable {
  /// Current conditions, as one row.
  public let current: OpenMeteoTable
  /// Hourly section, with a row for each hour.
  public let hourly: OpenMeteoTable
  /// Daily section, with a row at the start of each day in the requested time zone.
  public let daily: OpenMeteoTable
  /// Time zone of the answer as the service names it.
  public let timezone: String?

  /// Whether any section has a row.
  var hasSections: Bool { [current, hourly, daily].contains { !$0.instants.isEmpty } }

  /// Decodes the answer for one place.
  ///
  /// - Throws: ``ProviderError``, also for error bodies and for broken JSON.
  public init(_ response: TransportResponse) throws(ProviderError) {
    let places = try Self.places(response)
    guard let place = places.first else { throw .malformed("no place") }
    self = place
  }

  /// Decodes the places of a response, in the order of the request.
  ///
  /// The body is an object for one place and an array for several.
  public static func places(_ response: TransportResponse) throws(ProviderError) -> [OpenMeteoResponse] {
    guard let bodies = decode(response.body) else { throw errorOfInvalidJSON(response) }
    // Error bodies first: only their reason tells a rate limit from a refused request.
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
    // No zone is a day away from GMT, so a larger offset would silently move every row to another day.
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
    // By the first byte: decoding as both forms would parse a large answer twice.
    let isArray = data.first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 } == UInt8(ascii: "[")
    do {
      return isArray ? try decoder.decode([Body].self, from: data) : [try decoder.decode(Body.self, from: data)]
    } catch {
      return nil  // `errorOfInvalidJSON` finds the cause in the text.
    }
  }

  static func errorOfInvalidJSON(_ response: TransportResponse) -> ProviderError {
    let text = String(decoding: response.body, as: UTF8.self)
    let start = text.drop { $0.isWhitespace }.first
    guard start == "{" || start == "[" else {
      // HTML comes from a proxy or gateway in front of the service. Only its status is of use.
      return switch response.status {
      case 500...: .serviceFailed(status: response.status, retryAfter: response.retryAfter)
      case 429: .rateLimited(.minute, retryAfter: response.retryAfter, reason: "status 429")
      default: .notJSON(status: response.status)
      }
    }
    // For a point that no model covers the service sends the latitude nan, which is not JSON. A retry gets the same.
    if text.firstMatch(of: /"(latitude|longitude)"\s*:\s*-?[nN]a[nN]/) != nil { return .noCoverage }
    // The service streams: a failure in the middle is written after the first part, when status 200 has been sent.
    if text.contains("Unexpected error while streaming data") || isUnclosed(response.body) { return .interrupted }
    return .malformed("not the expected JSON")
  }

  /// Returns whether a JSON text ends inside an object, an array or a string.
  private static func isUnclosed(_ body: Data) -> Bool {
    var (depth, inString, escaped) = (0, false, false)
    for byte in body {
      if escaped {
        escaped = false
      } else if inString {
        // An escaped quotation mark does not end a string.
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
    // The reason is shown on one line of a terminal: no control characters, and a limited length.
    let reason = String(reason.prefix(200).filter { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" })
    // Before the status: only the text says which window is exhausted, and so how long to wait.
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
