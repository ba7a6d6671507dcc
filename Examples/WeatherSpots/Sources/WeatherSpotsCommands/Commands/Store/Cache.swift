import ArgumentParser
import Foundation
import Larder
import WeatherSpotsKit

struct Cache: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Shows and clears the caches of fetched data.",
    discussion: """
      Forecasts and other fetched data are cached in the store beside the spots, by kind. Cleared data are fetched again.
      """,
    subcommands: [CacheStatus.self, CacheClear.self], defaultSubcommand: CacheStatus.self)
}

struct CacheStatus: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Shows the number and age of the cached entries of each kind.",
    discussion: """
      Fresh entries answer without a request; stale ones are shown with their age when there is nothing newer; expired ones are kept until \
      space is needed. Bytes are those of the values as JSON.
      """)

  @OptionGroup var time: TimeOption

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    // One instant for all kinds, so that fresh, stale and expired entries add up.
    let now = time.clock.now
    let overview = try await globals.withStore { storage in try await CacheOverview(storage, at: now) }
    if globals.json { try writeJSON(overview.kinds) } else { try writeTable(Self.text(overview)) }
  }

  private static func text(_ overview: CacheOverview) -> String {
    var text = table(["kind", "entries", "fresh", "stale", "expired", "bytes", "newest", "oldest"])
    for kind in overview.kinds {
      func age(_ seconds: Int?) -> String { seconds.map(ageText) ?? "-" }
      text += table([
        kind.kind, "\(kind.entries)", "\(kind.fresh)", "\(kind.stale)", "\(kind.expired)", "\(kind.bytes)", age(kind.newestAgeSeconds),
        age(kind.oldestAgeSeconds),
      ])
      // Unreadable entries have no age and are in none of the columns above.
      if kind.unreadable > 0 { text += "  \(kind.unreadable) entries of \(kind.kind) cannot be read; they are fetched again\n" }
    }
    return text
  }
}

struct CacheClear: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear", abstract: "Removes cached data, of all or some kinds.",
    discussion: "Spots and queued notices stay. Without a network there is then no forecast to show.")

  @Option(help: ArgumentHelp("Only this kind, or several: \(CacheOverview.names.joined(separator: ", ")).", valueName: "kind"))
  var kind: [String] = []

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    // A mistyped kind would match nothing and look like a cleared cache.
    for kind in kind where !CacheOverview.names.contains(kind) {
      throw ValidationError("The kinds are \(CacheOverview.names.joined(separator: ", ")).")
    }
  }

  func execute() async throws {
    let kinds = Set(kind.isEmpty ? CacheOverview.names : kind)
    let count = try await globals.withStore { storage in try await CacheOverview.clear(kinds, of: storage) }
    if globals.json { try writeJSON(["removed": count]) } else { try writeText("Removed \(count) entries.\n") }
  }
}

/// Returns a table line with its first column on the left and the others on the right.
private func table(_ columns: [String]) -> String {
  columns.enumerated().map { index, text in
    let room = String(repeating: " ", count: max(0, (index == 0 ? 12 : 9) - text.count))
    return index == 0 ? text + room : room + text
  }.joined().trimmingCharacters(in: .newlines) + "\n"
}
