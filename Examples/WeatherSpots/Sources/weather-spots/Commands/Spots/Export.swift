import ArgumentParser
import Foundation
import WeatherSpotsKit

struct Export: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes all spots as CSV or GeoJSON.",
    discussion:
      "The CSV imports again to equal spots. An output file is written beside its place first and then moved there, so that it is never incomplete."
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
    let spots = try await globals.withStore { storage in try await storage.allSpots() }
    let data = format == .csv ? Data(Spot.csv(spots).utf8) : try Spot.geoJSON(spots)
    guard let output else {
      // A file has the very characters; a terminal those that do it no harm.
      return try isatty(STDOUT_FILENO) == 1 ? writeText(String(decoding: data, as: UTF8.self)) : writeBytes(data)
    }
    try Self.write(data, to: output)
    if globals.json { try writeJSON(["exported": spots.count]) } else { try writeText("Exported \(spots.count) spots to \(output).\n") }
  }

  /// Writes a file that is never half written.
  static func write(_ data: Data, to path: String, permissions: Int? = nil) throws {
    let partial = path + ".partial"
    do {
      guard FileManager.default.createFile(atPath: partial, contents: nil, attributes: permissions.map { [.posixPermissions: $0] }) else {
        throw CocoaError(.fileWriteUnknown)
      }
      let file = try FileHandle(forWritingTo: URL(filePath: partial))
      try file.write(contentsOf: data)
      try file.synchronize()
      try file.close()
      guard rename(partial, path) == 0 else { throw CocoaError(.fileWriteUnknown) }
    } catch {
      unlink(partial)
      throw Failure(.noOutput, "\(path) cannot be written")
    }
  }
}
