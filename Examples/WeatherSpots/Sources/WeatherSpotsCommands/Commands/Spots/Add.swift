import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct Add: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Adds one spot.",
    discussion:
      "A spot of the same name and coordinates as a stored one replaces it, but for its visits, which stay, and its tags, which those given here join; `edit` changes single values. Example: weather-spots add \"Cape Town\" -33.93 18.42 --zone Africa/Johannesburg"
  )

  @Argument(help: "The name.")
  var name: String

  @Argument(help: "Degrees north, -90 to 90.", transform: Self.number)
  var latitude: Double

  @Argument(help: "Degrees east, -180 to 180.", transform: Self.number)
  var longitude: Double

  @Option(help: "The time zone, such as Europe/Paris.")
  var zone: String

  @Option(help: "The country: its ISO 3166 code, or its English name.", transform: countryArgument)
  var country = ""

  @Option(help: "A word such as coast or lake.")
  var kind = ""

  @Option(help: "The source of the entry, with its licence.")
  var source = ""

  @Option(help: ArgumentHelp("The rating, 1 to 5; 0 for none.", valueName: "stars"))
  var rating = 0

  @Option(help: "Notes; `search` finds their words.")
  var notes = ""

  @Option(help: ArgumentHelp("A tag; may be given more than once.", valueName: "tag"), transform: tagArgument)
  var tag: [String] = []

  @OptionGroup var time: TimeOption

  @OptionGroup var globals: GlobalOptions

  // An invalid spot ends as a usage error before a store is created.
  func validate() throws { _ = try spot() }

  func execute() async throws {
    let spot = try spot()
    let stored = try await globals.withStore(creating: true, clock: time.clock) { storage in try await storage.add([spot]) }
    // The stored spot is shown and not the given one, since it keeps the visits and tags of a spot that it replaces.
    if globals.json { try writeJSON(stored.first ?? spot) } else { try writeText("Added \(spot.id).\n") }
  }

  private static func number(_ text: String) throws -> Double {
    // The parser's own `Double` refuses the blank that `WeatherSpots.run` puts before a negative number, and accepts nan and inf.
    guard let number = Double(text.trimmingCharacters(in: .whitespaces)), number.isFinite else {
      throw ValidationError("Expected a number of degrees, such as -33.93.")
    }
    return number
  }

  private func spot() throws -> Spot {
    do throws(SpotProblem) {
      return try Spot(
        name: name, latitude: latitude, longitude: longitude, timezone: zone, country: country, kind: kind, source: source,
        rating: rating, notes: notes, tags: tag)
    } catch {
      throw ValidationError("Invalid spot: \(error).")
    }
  }
}
