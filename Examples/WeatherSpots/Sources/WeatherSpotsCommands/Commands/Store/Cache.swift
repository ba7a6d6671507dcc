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
    subcommands: [CacheStatus.self, CacheClear.self, CacheStats.self], defaultSubcommand: CacheStatus.self)
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
      if kind.unreadable > 0 { text += "  \(kind.unreadable) entries of \(kind.kind) cannot be read; they are fetched again\n" }
    }
    return text
  }
}

struct CacheClear: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear", abstract: "Removes cached data, of all or some kinds.",
    discussion: "Spots, queued notices and the statistics stay. Without a network there is then no forecast to show.")

  @Option(help: ArgumentHelp("Only this kind, or several: \(CacheOverview.names.joined(separator: ", ")).", valueName: "kind"))
  var kind: [String] = []

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
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

struct CacheStats: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats", abstract: "Shows the statistics of the caches over all runs.",
    discussion: """
      Every `forecast`, `icon` and `geocode` adds its cache statistics to the store when it ends, by day (UTC) and kind; ninety days are \
      kept. A run that was killed is not counted, nor is `widget`, which writes nothing; `alerts` and the images do not use these caches.
      """)

  @Option(help: ArgumentHelp("Only the last days, today included.", valueName: "count"))
  var days: Int?

  @Flag(help: "Reset the statistics.")
  var reset = false

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard days.map({ (1...CacheHistory.days).contains($0) }) ?? true else {
      throw ValidationError("--days takes 1 to \(CacheHistory.days).")
    }
  }

  func execute() async throws {
    let counts = try await globals.withStore { storage in
      let history = try await CacheHistory(storage)
      if reset { try await history.clear() }
      let today = LocalDay(containing: Date(), in: .gmt)
      return try await history.counts(since: days.map { today.advanced(by: 1 - $0) })
    }
    if globals.json { try writeJSON(counts.mapValues(Self.row)) } else { try writeTable(Self.text(counts)) }
  }

  /// Returns the statistics of one kind, always with the same keys.
  private static func row(_ counts: CacheStatistics) -> JSONRow {
    [
      "hits": counts.hits, "misses": counts.misses, "staleServes": counts.staleServes, "negativeHits": counts.negativeHits,
      "fetches": counts.fetches, "fetchErrors": counts.fetchErrors, "storageErrors": counts.storageErrors,
      "evictions": Dictionary(counts.evictions.filter { $0.value > 0 }.map { ($0.key.rawValue, $0.value) }) { first, _ in first },
    ]
  }

  private static func text(_ counts: [String: CacheStatistics]) -> String {
    guard !counts.isEmpty else { return "No statistics yet.\n" }
    var text = table(["kind", "hits", "misses", "stale", "fetches", "errors", "evicted"])
    var causes: [CacheStatistics.EvictionCause: Int] = [:]
    for name in CacheOverview.names {
      guard let count = counts[name] else { continue }
      let numbers = [
        count.hits, count.misses, count.staleServes, count.fetches, count.fetchErrors + count.storageErrors,
        count.evictions.values.reduce(0, +),
      ]
      text += table([name] + numbers.map(String.init))
      causes.merge(count.evictions) { $0 + $1 }
    }
    guard !causes.isEmpty else { return text }
    return text + "Evicted by cause: \(causes.map { "\($0.key.rawValue) \($0.value)" }.sorted().joined(separator: ", "))\n"
  }
}

/// Returns a line of a table: a name, and columns to the right.
private func table(_ columns: [String]) -> String {
  columns.enumerated().map { index, text in
    let room = String(repeating: " ", count: max(0, (index == 0 ? 12 : 9) - text.count))
    return index == 0 ? text + room : room + text
  }.joined().trimmingCharacters(in: .newlines) + "\n"
}
