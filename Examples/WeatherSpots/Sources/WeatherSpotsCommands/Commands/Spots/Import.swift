import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct Import: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Imports spots from a CSV file.",
    discussion: """
      The first row names the columns: name, latitude, longitude and timezone are required; country, kind, source, rating, notes, tags and visits are \
      optional; others are ignored. A country is an ISO 3166 code or an English name. A spot of the same name and coordinates as a stored one replaces it, but for its visits, which stay, and \
      its tags, which those of the file join. Blanks part tags.

      All or nothing: a bad row is reported as FILE:line:column: reason, and then nothing of the file is imported (exit code 65). The good \
      rows are stored in one batch, so that even a power cut leaves all of them or none. A first row that does not name the columns is \
      refused with --skip-invalid, too.
      """)

  @Argument(help: ArgumentHelp("The file, or - for standard input.", valueName: "file.csv"))
  var file: String

  @Flag(help: "Import the good rows and report the bad ones.")
  var skipInvalid = false

  @Option(help: ArgumentHelp("Store this number of spots at a time, and report when each batch is durable.", valueName: "rows"))
  var batch: Int?

  @OptionGroup var time: TimeOption
  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard batch.map({ $0 > 0 }) ?? true else { throw ValidationError("--batch takes a number from 1.") }
  }

  func execute() async throws {
    let csv = try read()
    if let problem = csv.headerProblem {
      // Without the names of its columns no row can be read, so --skip-invalid has nothing to skip.
      report([problem])
      if globals.json { try writeJSON(Summary(imported: 0, new: 0, skipped: 0, problems: [problem])) }
      throw Failure(.badRows, "nothing was imported: the first row must name the columns, such as name,latitude,longitude,timezone")
    }
    report(csv.problems)
    guard csv.problems.isEmpty || skipInvalid else {
      if globals.json { try writeJSON(Summary(imported: 0, new: 0, skipped: 0, problems: csv.problems)) }
      throw Failure(
        .badRows, "nothing was imported: \(csv.problems.count) of \(csv.rowCount) rows are bad (--skip-invalid imports the rest)")
    }
    let new = try await globals.withStore(creating: true, clock: time.clock) { storage in
      // The number of new spots is the growth of the store: imported spots may replace stored ones.
      let before = try await storage.spots.count()
      try await save(csv.spots, in: storage)
      return try await storage.spots.count() - before
    }
    try write(Summary(imported: csv.spots.count, new: new, skipped: csv.problems.count, problems: csv.problems))
  }

  private func save(_ spots: [Spot], in storage: SpotStore) async throws {
    var bar = ProgressBar("Storing \(spots.count) spots")
    // The bar is removed, or the next line would be written behind it.
    defer { bar.finish() }
    guard let batch else {
      // A small import is stored at once, and a bar would only flicker.
      if spots.count > 4096 { bar.show(0) }
      // One batch is one commit, which is the promise of all or nothing.
      return _ = try await storage.add(spots)
    }
    for start in stride(from: 0, to: spots.count, by: batch) {
      let end = min(start + batch, spots.count)
      try await storage.add(Array(spots[start..<end]))
      bar.finish()
      // Written after the commit is durable: a script may take this line as the acknowledgement.
      if globals.json { try writeJSON(["acknowledged": end]) } else { try writeText("Stored \(end) of \(spots.count) spots.\n") }
      bar.show(Double(end) / Double(spots.count))
    }
  }

  private func read() throws -> SpotsCSV {
    let data: Data?
    do {
      // Read before the store is opened, so that slow input does not keep a JSON store locked.
      data = file == "-" ? try FileHandle.standardInput.readToEnd() : try Data(contentsOf: URL(filePath: file))
    } catch {
      throw Failure(
        .noInput,
        "\(file) cannot be read: \((error as? CocoaError)?.code == .fileReadNoSuchFile ? "no such file" : "\(error.localizedDescription)")"
      )
    }
    var bar = ProgressBar("Reading")
    let csv = SpotsCSV([UInt8](data ?? Data())) { bar.show($0) }
    bar.finish()
    return csv
  }

  private func report(_ problems: [RowProblem]) {
    // A file in a wrong format may have a problem in each of a million rows.
    for problem in problems.prefix(100) { writeToStandardError("\(file):\(problem)\n") }
    if problems.count > 100 { writeToStandardError("\(file): and \(problems.count - 100) more bad rows\n") }
  }

  private func write(_ summary: Summary) throws {
    guard !globals.json else { return try writeJSON(summary) }
    let skipped = summary.skipped == 0 ? "" : ", skipped \(summary.skipped) bad rows"
    try writeText("Imported \(summary.imported) spots (\(summary.new) new)\(skipped).\n")
  }

  private struct Summary: Encodable {
    let imported: Int
    let new: Int
    let skipped: Int
    let problems: [RowProblem]
  }
}
