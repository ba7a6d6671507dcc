import ArgumentParser
import Larder
import WeatherSpotsKit

struct Verify: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Reads the whole store back and checks every record.",
    discussion:
      "Changes no record; opening repairs what a crash left, as every command does. The exit code is 0 for a sound store and 76 otherwise.")

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let report = try await globals.withStore { storage in await storage.store.verify() }
    if globals.json {
      let row: JSONRow = [
        "sound": report.isSound, "records": report.recordCount, "commit": report.commit.number,
        "problems": report.problems.map(\.description),
      ]
      try writeJSON(row)
    } else {
      try writeText("\(report.isSound ? "Sound" : "Damaged"): \(report.recordCount) records read back, newest commit \(report.commit).\n")
    }
    // A damaged store may have a problem for each record. JSON output lists all of them.
    for problem in report.problems.prefix(20) { note(Failure(problem).message) }
    if !report.isSound { throw ExitCode(Outcome.storeRefused.rawValue) }
  }
}
