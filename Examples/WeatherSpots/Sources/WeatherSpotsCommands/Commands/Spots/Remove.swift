import ArgumentParser
import Larder
import WeatherSpotsKit

struct Remove: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Removes a spot, and its photos from the list.",
    discussion: "A name that several spots have is refused, and their ids are listed (exit code 3).")

  @Argument(help: "The name or the id.")
  var name: String

  @OptionGroup var time: TimeOption
  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let spot = try await globals.withStore(clock: time.clock) { storage in
      // Looked up first, since an ambiguous name must remove nothing.
      let spot = try await storage.spot(named: name)
      try await storage.remove(spot.id)
      return spot
    }
    if globals.json { try writeJSON(["removed": spot.id]) } else { try writeText("Removed \(spot.id).\n") }
  }
}
