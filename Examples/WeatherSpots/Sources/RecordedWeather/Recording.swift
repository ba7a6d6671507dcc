// RecordedWeather answers requests for any place and day in Open-Meteo's wire format, from two recorded responses of others.
// Invariant: an answer is never the weather of its place and day, and all output from it is marked as recorded.
// Used by the stand-in server and by the provider of recorded weather.

package import Foundation

/// A recorded response of a weather service that answers requests for any place and day.
///
/// Each row of an answer is one hour of the recording. Solar time at the requested longitude selects the hour, so that afternoons are warm
/// everywhere. The place selects the day, so that two places differ. Values are converted to the service's metric units.
package struct Recording: Sendable {
  private let known: Set<String>
  private let columns: [String: [Double?]]
  private let units: [String: String]

  /// Returns the recording of a weather forecast.
  package static func forecast() throws -> Recording {
    try Recording(
      PackageResources.forecast_json, known: ["relative_humidity_2m", "pressure_msl", "cloud_cover", "uv_index", "uv_index_max"])
  }

  /// Returns the recording of a marine forecast.
  package static func marine() throws -> Recording {
    try Recording(PackageResources.marine_json, known: ["wind_wave_height", "ocean_current_velocity"])
  }

  /// Reads a recording from JSON.
  ///
  /// The variables in `unrecorded` exist at the service but not in the recording, and are answered with the unit `undefined` and `null`.
  private init(_ json: [UInt8], known unrecorded: Set<String>) throws {
    let body = try JSONDecoder().decode(Body.self, from: Data(json))
    var columns: [String: [Double?]] = [:]
    var units: [String: String] = [:]
    for (name, column) in body.hourly {
      // The column of times holds texts. Answers get new times, so it is not needed.
      guard case .numbers(let values) = column, let unit = body.units[name] else { continue }
      let metric = Metric(unit)
      columns[name] = values.map { $0.map(metric.convert) }
      units[name] = metric.unit
    }
    self.columns = columns
    self.units = units
    known = unrecorded.union(columns.keys)
  }

  /// Returns the status and body for a request, with a JSON object for one place and an array for several.
  package func answer(_ query: [String: String], at now: Date) -> (status: Int, body: String) {
    do throws(Refusal) {
      let latitudes = (query["latitude"] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      let longitudes = (query["longitude"] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      let zones = (query["timezone"] ?? "GMT").split(separator: ",").map(String.init)
      guard latitudes.count == longitudes.count, zones.count == 1 || zones.count == latitudes.count, !zones.isEmpty else {
        throw Refusal(reason: "Parameter 'latitude' and 'longitude' must have the same number of elements")
      }
      // The service's own limit. A client that sends more must fail here too.
      guard latitudes.count <= 1000 else { throw Refusal(reason: "Only up to 1000 locations can be requested at once") }
      var bodies: [String] = []
      for (index, place) in zip(latitudes, longitudes).enumerated() {
        let query = query.merging(
          // One zone for all places is allowed, as at the service.
          ["latitude": place.0, "longitude": place.1, "timezone": zones[min(index, zones.count - 1)]], uniquingKeysWith: { $1 })
        bodies.append(try Request(query, at: now, index: index).body(self))
      }
      return (200, bodies.count == 1 ? bodies[0] : "[\(bodies.joined(separator: ","))]")
    } catch {
      return (400, #"{"error":true,"reason":"\#(error.reason)"}"#)
    }
  }

  /// Returns the unit and the values of an hourly variable at some instants, as JSON text.
  func values(_ name: String, _ request: Request, _ instants: [Int]) throws(Refusal) -> (unit: String, values: [String]) {
    guard known.contains(name) else {
      // The service's own wording, so that clients are tested against the real message.
      throw Refusal(reason: "Cannot initialize SurfacePressureAndHeightVariable from invalid String value.")
    }
    guard let column = columns[name], let unit = units[name] else { return ("undefined", instants.map { _ in "null" }) }
    return (unit, instants.map { Self.text(column[request.index(at: $0, of: column.count)], unit) })
  }

  /// Returns the unit and the values of a daily variable as JSON text, each computed from the hours that begin in the day.
  func values(ofDays name: String, _ request: Request, _ starts: [Int]) throws(Refusal) -> (unit: String, values: [String]) {
    let rule: (base: String, fold: ([Double]) -> Double?)
    switch name {
    case _ where name.hasSuffix("_max"): rule = (String(name.dropLast(4)), { $0.max() })
    case _ where name.hasSuffix("_min"): rule = (String(name.dropLast(4)), { $0.min() })
    case _ where name.hasSuffix("_sum"): rule = (String(name.dropLast(4)), { ($0.reduce(0, +) * 100).rounded() / 100 })
    // The median stands for the dominant direction, which would need the speeds too.
    case _ where name.hasSuffix("_dominant"): rule = (String(name.dropLast(9)), { $0.sorted()[$0.count / 2] })
    default: rule = (name, { $0.max() })
    }
    guard known.contains(rule.base) else {
      throw Refusal(reason: "Cannot initialize ForecastVariableDaily from invalid String value \(name).")
    }
    guard let column = columns[rule.base], let unit = units[rule.base] else { return ("undefined", starts.map { _ in "null" }) }
    return (
      unit,
      starts.map { start in
        // Answers have one fixed offset for all rows, so each of their days has 24 hours.
        let values = (0..<24).compactMap { column[request.index(at: start + $0 * 3600, of: column.count)] }
        return Self.text(values.isEmpty ? nil : rule.fold(values), unit)
      }
    )
  }

  private static func text(_ value: Double?, _ unit: String) -> String {
    // The service writes these units as integers, and a client may decode them as `Int`.
    let isWhole = unit == "wmo code" || unit == "°" || unit == "%"
    return value.map { isWhole ? "\(Int($0))" : "\($0)" } ?? "null"
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
      // Columns have no type in the JSON, so the numbers are tried first.
      do { self = .numbers(try container.decode([Double?].self)) } catch { self = .texts }
    }
  }
}

/// An error that is answered with status 400 and a reason.
struct Refusal: Error {
  let reason: String
}

/// The metric unit that replaces a recorded unit, with its conversion.
struct Metric {
  let unit: String
  let convert: @Sendable (Double) -> Double

  init(_ recorded: String) {
    switch recorded {
    // Rounded to the decimals of the service, so that no answer shows the conversion.
    case "°F": (unit, convert) = ("°C", { ((($0 - 32) / 1.8) * 10).rounded() / 10 })
    case "mp/h": (unit, convert) = ("km/h", { ($0 * 1.609344 * 10).rounded() / 10 })
    case "inch": (unit, convert) = ("mm", { ($0 * 25.4 * 100).rounded() / 100 })
    case "ft": (unit, convert) = ("m", { ($0 * 0.3048 * 100).rounded() / 100 })
    default: (unit, convert) = (recorded, { $0 })
    }
  }
}
