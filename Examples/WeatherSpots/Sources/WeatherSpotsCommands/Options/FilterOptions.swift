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

  @Option(help: ArgumentHelp("Only spots with this tag; given more than once, with all of them.", valueName: "tag"), transform: tagArgument)
  var tag: [String] = []

  func validate() throws {
    guard minRating.map({ (1...5).contains($0) }) ?? true else { throw ValidationError("--min-rating takes a number from 1 to 5.") }
  }

  var filter: SpotFilter { SpotFilter(country: country, kind: kind, minimumRating: minRating, tags: tag) }
}

/// The option that shows the plan of a query instead of its answer.
struct ExplainOption: ParsableArguments {
  @Flag(help: "Show the query plan instead of the answer: the index, the conditions checked besides, and the number of spots examined.")
  var explain = false
}
