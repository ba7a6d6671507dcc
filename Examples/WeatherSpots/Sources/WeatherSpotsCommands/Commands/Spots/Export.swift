import ArgumentParser
import Foundation
import WeatherSpotsKit

struct Export: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes all spots as CSV or GeoJSON.",
    discussion:
      "The CSV imports again to equal spots. A row is refused whose country an earlier version has stored and which is none. An output "
      + "file is written beside its place first and then moved there, so that it is never incomplete; a link is followed, and a pipe or a device gets the bytes. The files of a store are never replaced."
  )

  enum Format: String, CaseIterable, ExpressibleByArgument {
    case csv, geojson
  }

  @Option(help: "The format.")
  var format: Format

  @Option(help: ArgumentHelp("The file to write. (default: standard output)", valueName: "file"))
  var output: String?

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    // Checked before the store is read: the output must not be a file of the store.
    let file = try output.map { try OutputFile($0, beside: try globals.place) }
    let spots = try await globals.withStore { storage in try await storage.allSpots() }
    let data = format == .csv ? Data(Spot.csv(spots).utf8) : try Spot.geoJSON(spots)
    guard let file, let output else {
      // Files and pipes get the exact bytes. A terminal gets text without control characters, which could steer it.
      return try isatty(STDOUT_FILENO) == 1 ? writeText(String(decoding: data, as: UTF8.self)) : writeBytes(data)
    }
    try file.write(data)
    if globals.json { try writeJSON(["exported": spots.count]) } else { try writeText("Exported \(spots.count) spots to \(output).\n") }
  }
}
