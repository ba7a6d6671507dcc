import ArgumentParser
import WeatherSpotsKit

/// The options that say which spots are meant.
struct FilterOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Only spots of this country (ISO 3166).", valueName: "code"))
  var country: String?

  @Option(help: ArgumentHelp("Only spots of this kind, such as coast or lake.", valueName: "word"))
  var kind: String?

  @Option(help: ArgumentHelp("Only spots with at least this rating, 1 to 5.", valueName: "stars"))
  var minRating: Int?

  func validate() throws {
    guard minRating.map({ (1...5).contains($0) }) ?? true else { throw ValidationError("--min-rating takes a number from 1 to 5.") }
  }

  var filter: SpotFilter { SpotFilter(country: country, kind: kind, minimumRating: minRating) }
}

/// The option that asks how instead of what.
struct ExplainOption: ParsableArguments {
  @Flag(help: "Show the query plan instead of the answer: the index, the conditions checked besides, and the number of spots examined.")
  var explain = false
}

/// Reads a point on the command line.
func point(_ text: String) throws -> Coordinate {
  let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0.trimmingPrefix(while: \.isWhitespace)) }
  guard parts.count == 2, let latitude = parts[0], let longitude = parts[1],
    let point = Coordinate(latitude: latitude, longitude: longitude)
  else { throw ValidationError("Expected a point LAT,LON in degrees, such as 48.39,-4.49.") }
  return point
}
