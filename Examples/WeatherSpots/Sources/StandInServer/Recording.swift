import Foundation

/// A recorded answer, from which answers for any place and day are made.
///
/// The hour of the recording that an answer's row shows is chosen by the sun's time at the asked longitude, so that afternoons are warm
/// everywhere, and its day by the place, so that two places differ. Values are converted to the metric units that the service answers in.
struct Recording: Sendable {
  private let known: Set<String>
  private let columns: [String: [Double?]]
  private let units: [String: String]

  static func forecast() throws -> Recording {
    try Recording(PackageResources.forecast_json, known: ["relative_humidity_2m", "pressure_msl", "cloud_cover"])
  }

  static func marine() throws -> Recording {
    try Recording(PackageResources.marine_json, known: ["wind_wave_height", "ocean_current_velocity"])
  }

  /// Reads a recording; variables that the service knows and the recording lacks are answered as undefined.
  private init(_ json: [UInt8], known unrecorded: Set<String>) throws {
    let body = try JSONDecoder().decode(Body.self, from: Data(json))
    var columns: [String: [Double?]] = [:]
    var units: [String: String] = [:]
    for (name, column) in body.hourly {
      guard case .numbers(let values) = column, let unit = body.units[name] else { continue }
      let metric = Metric(unit)
      columns[name] = values.map { $0.map(metric.convert) }
      units[name] = metric.unit
    }
    self.columns = columns
    self.units = units
    known = unrecorded.union(columns.keys)
  }

  /// Answers a request as the service does.
  func answer(_ query: [String: String], at now: Date) -> Answer {
    do throws(Refusal) {
      return Answer(status: 200, body: try Request(query, at: now).body(self))
    } catch {
      return Answer(status: 400, body: #"{"error":true,"reason":"\#(error.reason)"}"#)
    }
  }

  /// The text of a column's values at some instants of a place.
  func values(_ name: String, _ request: Request, _ instants: [Int]) throws(Refusal) -> (unit: String, values: [String]) {
    guard known.contains(name) else {
      throw Refusal(reason: "Cannot initialize SurfacePressureAndHeightVariable from invalid String value.")
    }
    guard let column = columns[name], let unit = units[name] else { return ("undefined", instants.map { _ in "null" }) }
    let isWhole = unit == "wmo code" || unit == "°" || unit == "%"
    return (
      unit,
      instants.map { instant in column[request.index(at: instant, of: column.count)].map { isWhole ? "\(Int($0))" : "\($0)" } ?? "null" }
    )
  }

  private struct Body: Decodable {
    let hourly: [String: Column]
    let units: [String: String]

    enum CodingKeys: String, CodingKey {
      case hourly
      case units = "hourly_units"
    }
  }

  private enum Column: Decodable {
    case numbers([Double?])
    case texts

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      do { self = .numbers(try container.decode([Double?].self)) } catch { self = .texts }
    }
  }
}

/// Why the service answers 400.
struct Refusal: Error {
  let reason: String
}

/// The metric unit in which the service answers by default, and the way there.
struct Metric {
  let unit: String
  let convert: @Sendable (Double) -> Double

  init(_ recorded: String) {
    switch recorded {
    case "°F": (unit, convert) = ("°C", { ((($0 - 32) / 1.8) * 10).rounded() / 10 })
    case "mp/h": (unit, convert) = ("km/h", { ($0 * 1.609344 * 10).rounded() / 10 })
    case "inch": (unit, convert) = ("mm", { ($0 * 25.4 * 100).rounded() / 100 })
    case "ft": (unit, convert) = ("m", { ($0 * 0.3048 * 100).rounded() / 100 })
    default: (unit, convert) = (recorded, { $0 })
    }
  }
}
