import ArgumentParser
import WeatherSpotsKit

struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the spots by name, or by distance from a point.",
    discussion: "Distances are great-circle distances in kilometres. Example: weather-spots list --near 48.4,-4.5 --limit 5")

  @Option(
    parsing: .unconditional, help: ArgumentHelp("List the nearest to this point first.", valueName: "lat,lon"), transform: Self.point)
  var near: Coordinate?

  @Option(help: ArgumentHelp("List at most so many.", valueName: "count"))
  var limit: Int?

  @OptionGroup var globals: Globals

  func validate() throws {
    guard limit.map({ $0 > 0 }) ?? true else { throw ValidationError("--limit takes a number from 1.") }
  }

  func run() async throws {
    try await reportingFailures {
      let spots = try await globals.withStore { storage in try await storage.allSpots() }
      let rows = ordered(spots).prefix(limit ?? .max)
      if globals.json { try writeJSON(Array(rows)) } else { try writeText(Self.table(rows)) }
    }
  }

  private static func point(_ text: String) throws -> Coordinate {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
    guard parts.count == 2, let latitude = parts[0], let longitude = parts[1],
      let point = Coordinate(latitude: latitude, longitude: longitude)
    else { throw ValidationError("A point is written LAT,LON in degrees.") }
    return point
  }

  private func ordered(_ spots: [Spot]) -> [Row] {
    guard let near else { return spots.sorted(by: Spot.listedBefore).map { Row($0, nil) } }
    return spots.map { Row($0, near.kilometers(to: $0.coordinate)) }
      .sorted { ($0.kilometers ?? 0, $0.spot.id) < ($1.kilometers ?? 0, $1.spot.id) }
  }

  private static func table(_ rows: ArraySlice<Row>) -> String {
    guard !rows.isEmpty else { return "No spots.\n" }
    let width = min(40, rows.map(\.spot.name.count).max() ?? 0)
    return rows.map { row in
      let spot = row.spot
      var line = spot.name + String(repeating: " ", count: max(0, width - spot.name.count))
      if let kilometers = row.kilometers { line += "  \(pad(kilometers.text(decimals: 1), 8)) km" }
      line += "  \(pad(spot.latitude.text(decimals: 4), 8))  \(pad(spot.longitude.text(decimals: 4), 9))  \(spot.timezone)"
      return line + (spot.country.isEmpty ? "" : "  \(spot.country)") + (spot.kind.isEmpty ? "" : "  \(spot.kind)") + "\n"
    }.joined()
  }

  private static func pad(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }

  private struct Row: Encodable {
    let spot: Spot
    let kilometers: Double?

    init(_ spot: Spot, _ kilometers: Double?) {
      self.spot = spot
      self.kilometers = kilometers
    }

    enum CodingKeys: CodingKey { case distanceKm }

    func encode(to encoder: any Encoder) throws {
      try spot.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encodeIfPresent(kilometers.map { ($0 * 1000).rounded() / 1000 }, forKey: .distanceKm)
    }
  }
}
