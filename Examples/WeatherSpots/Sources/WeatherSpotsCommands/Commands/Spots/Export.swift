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

  /// Writes a file that is never half written, under a name of its own until it is whole.
  static func write(_ data: Data, to path: String, permissions: mode_t = 0o666) throws {
    let random = String(format: "%08x", UInt32.random(in: 0 ... .max))
    // Without the file's own name, which may be as long as a name can be.
    let partial = URL(filePath: path).deletingLastPathComponent().appending(path: ".weather-spots-\(random).partial").path
    func failure(_ error: any Error) -> Failure { Failure(.noOutput, "\(path) cannot be written: \(error.reason)") }
    // A file that has this name already is not opened, and not removed below.
    let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions)
    guard descriptor >= 0 else { throw failure(POSIXError.last) }
    do {
      let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      try file.write(contentsOf: data)
      try file.synchronize()
      try file.close()
      guard rename(partial, path) == 0 else { throw POSIXError.last }
    } catch {
      unlink(partial)
      throw failure(error)
    }
  }
}
