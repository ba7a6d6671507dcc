import Foundation

/// The page `Docs/Benchmarks.md` and its pictures, made from a report.
package struct Page: Sendable {
  private let report: Report
  /// The folder of the pictures, beside the page.
  private let folder: String

  package init(_ report: Report, folder: String = "Benchmarks") { (self.report, self.folder) = (report, folder) }

  private var groups: [String] {
    report.scenarios.reduce(into: []) { if !$0.contains($1.group) { $0.append($1.group) } }
  }

  private func scenarios(of group: String) -> [ScenarioReport] { report.scenarios.filter { $0.group == group } }

  /// The pictures by their file names: bars for each group, and lines for each scenario over several sizes.
  package var pictures: [String: String] {
    var result: [String: String] = [:]
    for group in groups {
      let bars = scenarios(of: group).filter { !$0.isGrowth }
      if !bars.isEmpty { result[Self.fileName(group)] = BarChart(title: group, bars).svg }
      for growth in scenarios(of: group) where growth.isGrowth { result[Self.fileName(growth.name)] = GrowthChart(growth).svg }
    }
    return result
  }

  package var markdown: String {
    ([introduction, goals, ahead] + groups.map(section) + [reproducing]).filter { !$0.isEmpty }.joined(separator: "\n\n") + "\n"
  }

  private var introduction: String {
    """
    # Benchmarks

    Larder beside GRDB, plain SQLite, a file that an actor rewrites, a dictionary, and what the machine can do at all: on the same records, with
    the same durability, in one process, taking turns. Made by `make bench`; do not edit.

    - **Absolute times are this machine's** and nobody else's; ratios carry over. A ratio is the median of the ratios of single rounds, with its
      quartiles.
    - Machine: \(report.machine.text). \(report.isQuick ? "A quick run for a try-out: few records and rounds, so take no figure from it." : "")
    - Records: \(Figures.count(report.records)) places of [GeoNames](https://www.geonames.org) \
    ([CC BY 4.0](https://creativecommons.org/licenses/by/4.0/); ratings, marks and notes are made up), of 11 fields with a UUID for an id, \
    \(report.recordBytes) bytes of JSON each.
    - Run on \(report.date.formatted(.iso8601.year().month().day())); load of the machine before each scenario: \(loads).
    """
  }

  private var loads: String {
    let all = report.scenarios.compactMap(\.loads.first)
    guard let statistics = Statistics(all), let greatest = all.max() else { return "not known" }
    return "\(Figures.digits(statistics.median)) in the middle, \(Figures.digits(greatest)) at most"
  }

  private var goals: String {
    var table = TextTable(["work", "contender", "found", "goal", ""])
    var reached = 0
    let verdicts = report.scenarios.flatMap { scenario in scenario.verdicts.map { (scenario.title, $0) } }
    guard !verdicts.isEmpty else { return "" }
    for (title, verdict) in verdicts {
      if verdict.isReached { reached += 1 }
      table.add([title, verdict.series, verdict.found, verdict.asked, verdict.isReached ? "reached" : "**missed**"])
    }
    let why = reached < verdicts.count ? " [Profiles](Profiles.md) shows where the time of the others goes." : ""
    return "## Goals\n\n\(reached) of \(verdicts.count) are reached.\(why)\n\n\(table.markdown)"
  }

  private var ahead: String {
    let lines = report.scenarios.filter { !$0.peersAhead.isEmpty }.map { scenario in
      let pairs = scenario.peersAhead.map { peer, larder in
        "\(peer.name) (\(Figures.text(peer.median, peer.unit))) before \(larder.name) (\(Figures.text(larder.median, larder.unit)))"
      }
      return
        "- **\(scenario.title)**: \(pairs.joined(separator: "; ")). \(scenario.reason ?? "Nothing in the design asks for it: to be mended.")"
    }
    let text = lines.isEmpty ? "Nowhere in this run." : lines.joined(separator: "\n")
    return "## Where a peer is ahead\n\n\(text)"
  }

  private func section(_ group: String) -> String {
    let bars = scenarios(of: group).filter { !$0.isGrowth }
    var parts = ["## \(group)"]
    if !bars.isEmpty { parts.append("![\(group)](\(folder)/\(Self.fileName(group)))") }
    for scenario in scenarios(of: group) {
      parts.append("### \(scenario.title)")
      if scenario.isGrowth { parts.append("![\(scenario.title)](\(folder)/\(Self.fileName(scenario.name)))") }
      parts.append(scenario.table.markdown)
      let rounds = scenario.series.map(\.rounds.count).max() ?? 0
      parts.append("`\(scenario.name)`, \(rounds) rounds. " + scenario.notes.joined(separator: " "))
      if !scenario.verdicts.isEmpty { parts.append(scenario.verdicts.map { "- " + $0.text }.joined(separator: "\n")) }
    }
    return parts.joined(separator: "\n\n")
  }

  private var reproducing: String {
    """
    ## How to measure again

    ```
    make bench                                    # everything, in release; writes this page, its pictures and figures.json
    make bench ARGUMENTS="run save find --quick"  # some scenarios, for a try-out
    make bench ARGUMENTS="list"                   # the scenarios and the engines
    make bench ARGUMENTS="run save --json new.json"
    make bench ARGUMENTS="compare Docs/Benchmarks/figures.json new.json"
    ```

    Nothing else should run meanwhile: with a load above the number of cores a figure is a guess. Instruction counts, which do not depend on what else
    runs, are compared by `make instructions`.
    """
  }

  static func fileName(_ name: String) -> String {
    let plain = name.lowercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" }
    return String(plain) + ".svg"
  }
}

extension ScenarioReport {
  /// Whether sizes are compared, which lines show better than bars.
  var isGrowth: Bool { series.contains { $0.size != nil } }
}
