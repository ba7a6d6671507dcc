import ArgumentParser
import WeatherSpotsKit

struct Visit: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Counts a visit to a spot, or to several.",
    discussion: """
      Visits that several devices count without a network add up. All spots that are named are counted, or none; one that is named twice \
      is counted twice. Example: weather-spots visit Brest --count 2
      """)

  @Argument(help: "The names or the ids.")
  var names: [String]

  @Option(help: ArgumentHelp("The number of visits to each.", valueName: "number"))
  var count = 1

  @OptionGroup var time: TimeOption
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard (1...1_000_000).contains(count) else { throw ValidationError("--count takes a number from 1 to 1000000.") }
  }

  func execute() async throws {
    // The closure is `@Sendable` and takes the number, not the command.
    let count = count
    let spots = try await globals.withStore(clock: time.clock) { storage in
      var ids: [String] = []
      // All names are looked up before the first visit is counted: an unknown name must change nothing.
      for name in names { ids.append(try await storage.spot(named: name).id) }
      return try await storage.change(ids) { try $0.visited(count) }
    }
    if globals.json { return try writeJSON(spots) }
    try writeText(spots.map { "\($0.id): \(counted($0.visits, "visit")).\n" }.joined())
  }
}
