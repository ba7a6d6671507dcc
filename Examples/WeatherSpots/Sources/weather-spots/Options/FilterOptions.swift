import ArgumentParser
import WeatherSpotsKit

/// The options that say which spots are meant.
struct FilterOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Only spots of this country (ISO 3166).", valueName: "code"))
  var country: String?

  @Option(help: ArgumentHelp("Only spots of this kind, such as coast or lake.", valueName: "word"))
  var kind: String?

  @Option(help: ArgumentHelp("Only spots rated so or better, 1 to 5.", valueName: "stars"))
  var minRating: Int?

  func validate() throws {
    guard minRating.map({ (1...5).contains($0) }) ?? true else { throw ValidationError("--min-rating takes a number from 1 to 5.") }
  }

  var filter: SpotFilter { SpotFilter(country: country, kind: kind, minimumRating: minRating) }
}

/// The option that asks how instead of what.
struct ExplainOption: ParsableArguments {
  @Flag(help: "Say how the store would answer, instead of the answer: the index, what is checked besides, and how many spots it looks at.")
  var explain = false
}

/// Reads a point on the command line.
func point(_ text: String) throws -> Coordinate {
  let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0.trimmingPrefix(while: \.isWhitespace)) }
  guard parts.count == 2, let latitude = parts[0], let longitude = parts[1],
    let point = Coordinate(latitude: latitude, longitude: longitude)
  else { throw ValidationError("A point is written LAT,LON in degrees.") }
  return point
}
