import ArgumentParser
import Foundation
import WeatherSpotsKit

struct Show: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows a spot.",
    discussion: """
      A name that several spots have is refused, and their ids are listed (exit code 3); an id, such as "Brest @48.39029,-4.48628", may \
      stand wherever a name may. Case and accents matter only if two names differ in nothing else. An id may be typed with fewer decimals, \
      or without the name and at least two decimals: brest@48.4,-4.5 and @48.39,-4.49 mean the same spot, if no other one fits.
      """)

  @Argument(help: "The name or the id.")
  var name: String

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let spot = try await globals.withStore { storage in try await storage.spot(named: name) }
    guard !globals.json else { return try writeJSON(spot) }
    let lines = [
      ("id", spot.id), ("latitude", String(spot.latitude)), ("longitude", String(spot.longitude)), ("timezone", spot.timezone),
      ("country", spot.country), ("kind", spot.kind), ("source", spot.source),
      ("rating", spot.rating == 0 ? "" : "\(spot.rating) of 5"), ("notes", spot.notes),
      ("tags", spot.tags.joined(separator: " ")), ("visits", spot.visits == 0 ? "" : String(spot.visits)),
    ]
    // Fields without a value are left out. JSON has all of them.
    let text = lines.filter { !$0.1.isEmpty }.map { "  \($0.0.padding(toLength: 10, withPad: " ", startingAt: 0))\($0.1)\n" }.joined()
    try writeText("\(spot.name)\n\(text)")
  }
}
