import ArgumentParser
import WeatherSpotsKit

struct Edit: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Changes values of a spot, and leaves the others as they are.",
    discussion: """
      Name and coordinates make the spot, and do not change; its tags are changed by `tag`. Two devices that have each changed another value \
      agree without a conflict. Example: weather-spots edit Brest --rating 5 --notes "by the lighthouse"
      """)

  @Argument(help: "The name or the id.")
  var name: String

  @Option(help: "The time zone, such as Europe/Paris.")
  var zone: String?

  @Option(help: "The country: its ISO 3166 code, or its English name; empty for none.", transform: countryArgument)
  var country: String?

  @Option(help: "A word such as coast or lake; empty for none.")
  var kind: String?

  @Option(help: "The source of the entry, with its licence; empty for none.")
  var source: String?

  @Option(help: ArgumentHelp("The rating, 1 to 5; 0 for none.", valueName: "stars"))
  var rating: Int?

  @Option(help: "Notes; empty for none.")
  var notes: String?

  @OptionGroup var time: TimeOption
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard !changes.isEmpty else {
      throw ValidationError("Nothing to change: give at least one of --zone, --country, --kind, --source, --rating and --notes.")
    }
  }

  func execute() async throws {
    // The closure is `@Sendable` and takes the values, not the command.
    let changes = changes
    let spot = try await globals.withStore(clock: time.clock) { storage in
      let spot = try await storage.spot(named: name)
      // The change is applied to the spot as it is at the commit, so another process's edit of another field is not lost.
      return try await storage.change([spot.id]) { try $0.edited(changes) }.first ?? spot
    }
    if globals.json { try writeJSON(spot) } else { try writeText("Changed \(spot.id).\n") }
  }

  private var changes: Spot.Changes {
    Spot.Changes(timezone: zone, country: country, kind: kind, source: source, rating: rating, notes: notes)
  }
}
