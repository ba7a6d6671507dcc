import ArgumentParser
import Larder
import WeatherSpotsKit

struct Near: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lists the spots around a point, the nearest first.",
    discussion: "Distances are great-circle distances in kilometres. Example: weather-spots near -33.9,18.4 --within 100 --kind coast")

  @Argument(help: ArgumentHelp("The point, in degrees north and east.", valueName: "lat,lon"), transform: point)
  var place: Coordinate

  @Option(help: ArgumentHelp("Only spots within this distance.", valueName: "km"))
  var within: Double?

  @Option(help: ArgumentHelp("The greatest number of spots to list.", valueName: "count"))
  var limit = 10

  @OptionGroup var filters: FilterOptions
  @OptionGroup var explaining: ExplainOption
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard limit > 0 else { throw ValidationError("--limit takes a number from 1.") }
    // The parser accepts inf and nan as numbers, which are no distances.
    guard within.map({ $0 >= 0 && $0.isFinite }) ?? true else { throw ValidationError("--within takes a number of kilometres from 0.") }
  }

  func execute() async throws {
    try await globals.withStore { storage in
      let filter = filters.filter
      let query = Query.spots(near: place, within: within.map(Distance.kilometers), filter).limit(limit)
      if explaining.explain { return try globals.write(storage.spots.explain(query)) }
      let rows = try await storage.spots.matches(query).map { match in
        SpotRow(match.item, kilometers: match.distance.map { $0.meters / 1000 })
      }
      if globals.json { try writeJSON(rows) } else { try writeTable(SpotTable(rows: rows).description) }
      if rows.isEmpty { try await filters.noteUnknown(filter, in: storage) }
    }
  }
}
