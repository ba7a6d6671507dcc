import ArgumentParser
import Larder
import WeatherSpotsKit

/// Command-line options that filter spots by country, kind, rating and tags.
struct FilterOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Only spots of this country: its ISO 3166 code, or its English name.", valueName: "country"))
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

  /// The filter with all given conditions.
  var filter: SpotFilter { SpotFilter(country: country, kind: kind, minimumRating: minRating, tags: tag) }

  /// Reports each filter condition that no spot fulfils, with similar values of the stored spots.
  ///
  /// Call it when a query returned no spots.
  func noteUnknown(_ filter: SpotFilter, in storage: SpotStore) async throws {
    func isUnknown(_ filter: SpotFilter) async throws -> Bool { try await storage.spots.count(.spots(filter)) == 0 }
    func similar(_ text: String, _ values: (Spot) -> [String]) async throws -> String {
      // The limit bounds the time of a hint in a large store. A hint from 20,000 spots is good enough.
      let near = NearNames.names(near: text, in: try await storage.spots.fetch(Query().limit(20_000)).flatMap(values))
      return near.isEmpty ? "" : "; similar: \(near.map { "\"\($0)\"" }.joined(separator: ", "))"
    }
    // Each condition is counted alone: together they may fail although each of them fits some spot.
    if let country, let code = filter.country, try await isUnknown(SpotFilter(country: code)) {
      // A known country without spots needs no correction, only an unknown word does.
      let near = CountryNames.code(for: code) == nil ? CountryNames.labels(near: country) : []
      let place = code.isEmpty ? "without a country" : "in \(CountryNames.label(code))"
      note("no spot is \(place)" + (near.isEmpty ? "" : "; did you mean \(near.joined(separator: " or "))?"))
    }
    if let kind = filter.kind, try await isUnknown(SpotFilter(kind: kind)) {
      note("no spot has the kind \"\(kind)\"\(try await similar(kind) { [$0.kind] })")
    }
    for tag in filter.tags where try await isUnknown(SpotFilter(tags: [tag])) {
      note("no spot has the tag \"\(tag)\"\(try await similar(tag, \.tags))")
    }
  }
}

/// The option that shows the plan of a query instead of its answer.
struct ExplainOption: ParsableArguments {
  @Flag(help: "Show the query plan instead of the answer: the index, the conditions checked besides, and the number of spots examined.")
  var explain = false
}
