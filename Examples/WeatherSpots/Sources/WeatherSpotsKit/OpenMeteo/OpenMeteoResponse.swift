public import Foundation

/// The hourly part of an answer: columns of equal length over instants.
public struct OpenMeteoResponse: Sendable {
  /// The instant of each row.
  public let instants: [Date]
  private let columns: [String: [Double?]]
  private let units: [String: String]

  /// Reads an answer, error bodies and broken ones included.
  public init(_ response: TransportResponse) throws(OpenMeteoError) {
    guard let body = Self.decode(response.body) else { throw Self.errorOfInvalidJSON(response) }
    if let reason = body.reason, body.error == true || response.status != 200 {
      throw Self.error(status: response.status, reason: reason)
    }
    guard response.status == 200 else { throw Self.error(status: response.status, reason: "no reason given") }
    try self.init(body)
  }

  private init(_ body: Body) throws(OpenMeteoError) {
    guard let offset = body.offset else { throw .malformed("no utc_offset_seconds") }
    var columns: [String: [Double?]] = [:]
    var instants: [Date] = []
    for (name, column) in body.hourly ?? [:] {
      switch column {
      case .texts(let labels) where name == "time":
        for label in labels {
          guard let label, let instant = TimeLabel.instant(label, offset: offset) else {
            throw .malformed("a time is not yyyy-MM-ddTHH:mm")
          }
          instants.append(instant)
        }
      case .numbers(let values): columns[name] = values
      case .texts: break
      }
    }
    guard columns.values.allSatisfy({ $0.count == instants.count }) else { throw .malformed("columns of different lengths") }
    self.instants = instants
    self.columns = columns
    units = body.units ?? [:]
  }

  /// The values of a variable, `nil` where there are none.
  ///
  /// - Throws: ``OpenMeteoError/unexpectedUnit(column:unit:)`` rather than showing knots as kilometres per hour.
  public func column(_ name: String, unit: String) throws(OpenMeteoError) -> [Double?] {
    let none = [Double?](repeating: nil, count: instants.count)
    guard let values = columns[name], let found = units[name], found != "undefined" else { return none }
    guard found == unit else { throw .unexpectedUnit(column: name, unit: found) }
    return values.map { $0?.withoutNegativeZero }
  }
}

extension OpenMeteoResponse {
  private struct Body: Decodable {
    let offset: Int?
    let hourly: [String: Column]?
    let units: [String: String]?
    let error: Bool?
    let reason: String?

    enum CodingKeys: String, CodingKey {
      case offset = "utc_offset_seconds"
      case units = "hourly_units"
      case hourly, error, reason
    }
  }

  private enum Column: Decodable {
    case numbers([Double?])
    case texts([String?])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      do { self = .numbers(try container.decode([Double?].self)) } catch DecodingError.typeMismatch {
        self = .texts(try container.decode([String?].self))
      }
    }
  }

  /// One place is answered with an object, several with an array of them; this app asks for one.
  private static func decode(_ data: Data) -> Body? {
    let decoder = JSONDecoder()
    let isArray = data.first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 } == UInt8(ascii: "[")
    do {
      return isArray ? try decoder.decode([Body].self, from: data).first : try decoder.decode(Body.self, from: data)
    } catch {
      return nil  // what is wrong with it is told from its text, below
    }
  }

  private static func errorOfInvalidJSON(_ response: TransportResponse) -> OpenMeteoError {
    let text = String(decoding: response.body, as: UTF8.self)
    let start = text.drop { $0.isWhitespace }.first
    guard start == "{" || start == "[" else {
      return response.status >= 500 ? .serviceFailed(status: response.status) : .notJSON(status: response.status)
    }
    // A point that no model covers is answered with latitude nan, which is not JSON.
    if text.contains("\"latitude\":nan") { return .noCoverage }
    // An error in the middle of an answer is written behind its first part; the status was sent already.
    if text.contains("Unexpected error while streaming data") || !text.hasSuffix(start == "{" ? "}" : "]") { return .interrupted }
    return .malformed("not the expected JSON")
  }

  private static func error(status: Int, reason: String) -> OpenMeteoError {
    let reason = String(reason.prefix(200).filter { !$0.isNewline && $0 >= " " })
    return switch status {
    case 429: .rateLimited(RateWindow(reason: reason), reason: reason)
    case 500...: .serviceFailed(status: status)
    case _ where reason.hasPrefix("No data is available for this location"): .noCoverage
    default: .rejected(status: status, reason: reason)
    }
  }
}
