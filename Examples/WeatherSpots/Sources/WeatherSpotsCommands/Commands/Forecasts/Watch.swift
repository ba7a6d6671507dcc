import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct Watch: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows a list that changes when another terminal changes the spots.",
    discussion: """
      On a terminal the list is drawn anew whenever it differs; otherwise each change is one line: + for a spot that came, ~ for one that \
      changed, - for one that went. What other processes do is seen within a tenth of a second. Ctrl-C ends it, with exit code 0. It needs \
      a SQLite store: a JSON store has one user at a time.
      """)

  @OptionGroup var filters: FilterOptions

  @Option(help: "The order on a terminal: name, country, kind, or rating, which has the best first.")
  var sort = SpotOrder.name

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let file = try globals.file(creating: false)
    // A JSON store is locked by this process, so the list could never change.
    guard SpotStore.isShared(file) else {
      throw Failure(.usage, "`watch` needs a .sqlite store: a JSON store has one user at a time and cannot change meanwhile")
    }
    // Handlers before the first line: a reader of that line may send the signal at once.
    let ending = TerminationSignals()
    try await globals.withStore { storage in
      let isTerminal = isatty(STDOUT_FILENO) == 1 && !globals.json
      try await ending.run { try await isTerminal ? draw(storage) : follow(storage) }
    }
  }

  /// Draws the list on the terminal at each change.
  private func draw(_ storage: SpotStore) async throws {
    // A terminal may not report its size, and is then treated as one of 24 lines.
    let height = Output.size(STDOUT_FILENO).map { Int($0.ws_row) } ?? 0
    // Four lines are taken by the count, a blank line, the header and the cursor. More rows would scroll the screen.
    let rows = max((height > 0 ? height : 24) - 4, 1)
    let filter = filters.filter
    for try await spots in storage.spots.results(of: .spots(filter, by: sort).limit(rows)) {
      let count = try await storage.spots.count(.spots(filter))
      let more = count > spots.count ? ", the first \(spots.count) are shown" : ""
      // Clearing each line behind its text, and not the whole screen first, avoids flicker.
      let table = Output.fitted("\(count) spots\(more) (Ctrl-C ends)\n\n\(SpotTable(rows: spots.map { SpotRow($0) }))")
      try writeBytes(Data("\u{1B}[H\(table.replacing("\n", with: "\u{1B}[K\n"))\u{1B}[J".utf8))
    }
  }

  /// Writes one line for each change.
  private func follow(_ storage: SpotStore) async throws {
    // Subscribed before the spots are counted, so that no change falls between the count and the first line.
    let changes = storage.spots.changes()
    let filter = filters.filter
    let count = try await storage.spots.count(.spots(filter))
    if globals.json { try writeJSON(["watching": count]) } else { try writeText("Watching \(count) spots.\n") }
    for try await set in changes {
      for change in set.changes {
        if let error = change.error { note("a stored spot cannot be decoded and is kept unchanged: \(error)") }
        // A change outside the filter is no news. A spot that leaves the filter counts as removed.
        guard let news = SpotNews(change, filter) else { continue }
        if globals.json { try writeJSON(news) } else { try writeText(news.text) }
      }
    }
  }
}
