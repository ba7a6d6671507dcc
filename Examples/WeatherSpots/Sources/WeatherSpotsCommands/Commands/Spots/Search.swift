import ArgumentParser
import Larder
import WeatherSpotsKit

struct Search: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Finds spots by words of their names, notes and kinds, the best match first.",
    discussion: """
      All the words must be there; the last may be the beginning of one. Case and accents make no difference. On a terminal the words \
      that were found stand out, unless NO_COLOR is set. Example: weather-spots search bar harb
      """)

  @Argument(help: "The words.")
  var words: [String]

  @Option(help: ArgumentHelp("The greatest number of spots to list.", valueName: "count"))
  var limit = 20

  @OptionGroup var filters: FilterOptions
  @OptionGroup var explaining: ExplainOption
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard limit > 0 else { throw ValidationError("--limit takes a number from 1.") }
  }

  func execute() async throws {
    try await globals.withStore { storage in
      let filter = filters.filter
      // The shell splits the words, while the index takes one text and treats only its last word as a prefix.
      let query = Query.spots(matching: words.joined(separator: " "), filter).limit(limit)
      if explaining.explain { return try globals.write(storage.spots.explain(query)) }
      let rows = try await storage.spots.matches(query).map { SpotRow($0.item, extract: $0.extract) }
      if globals.json {
        try writeJSON(rows)
      } else {
        try writeTable(SpotTable(rows: rows, style: .ofStandardOutput).description)
      }
      if rows.isEmpty { try await filters.noteUnknown(filter, in: storage) }
    }
  }
}
