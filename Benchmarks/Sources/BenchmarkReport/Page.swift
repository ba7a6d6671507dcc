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

  /// The pictures by their file names: points for the main peer, bars for each group, and lines for each scenario over several sizes.
  package var pictures: [String: String] {
    var result: [String: String] = [:]
    if let peer = mainPeer { result[Self.peerPicture] = PeerChart(peer: peer, peerRows.filter { $0.peer.engine == peer }).svg }
    for group in groups {
      let bars = scenarios(of: group).filter { !$0.isGrowth }
      if !bars.isEmpty { result[Self.fileName(group)] = BarChart(title: group, bars).svg }
      for growth in scenarios(of: group) where growth.isGrowth { result[Self.fileName(growth.name)] = GrowthChart(growth).svg }
    }
    return result
  }

  package var markdown: String {
    let sections = [introduction, besidePeers, ahead, goals] + groups.map(section) + [reproducing]
    return sections.filter { !$0.isEmpty }.joined(separator: "\n\n") + "\n"
  }

  private var introduction: String {
    """
    # Benchmarks

    Larder beside GRDB, plain SQLite, a file that an actor rewrites, a dictionary, and the limits of the machine. All of them do the same work on the
    same records with the same durability, in one process, taking turns. `make bench` makes this page; do not edit it.

    - **Ratios carry over to another machine, absolute times do not.** A ratio is the median of the ratios of single rounds.
    - Machine: \(report.machine.text).\(report.isQuick ? " A quick run for a try-out: few records and rounds, so take no figure from it." : "")
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

  private static let peerPicture = "beside-peers.svg"

  /// The rows of all peers, those of the main one first.
  private var peerRows: [PeerRow] {
    let rows = report.scenarios.flatMap(\.peerRows)
    return rows.filter { $0.peer.engine == mainPeer } + rows.filter { $0.peer.engine != mainPeer }
  }

  /// The peer that does the most works.
  private var mainPeer: String? {
    let names = report.scenarios.flatMap(\.peerRows).map(\.peer.engine)
    return Set(names).max { one, other in
      let counts = (names.count { $0 == one }, names.count { $0 == other })
      return counts.0 == counts.1 ? one > other : counts.0 < counts.1
    }
  }

  private var besidePeers: String {
    guard let mainPeer else { return "" }
    var table = TextTable(["work", "peer", "Larder JSON", "Larder SQLite", "Larder in memory"])
    for row in peerRows {
      let stores = ["Larder JSON", "Larder SQLite"]
      let columns = stores.map { store in row.forms.filter { $0.series.engine == store } }
      let memory = row.forms.filter { !stores.contains($0.series.engine) }
      let peer = "\(row.peer.engine): \(Figures.text(row.peer.median, row.peer.unit))"
      table.add([row.work, peer] + (columns + [memory]).map { $0.map(Self.cell).joined(separator: ", ") })
    }
    return """
      ## Larder beside its peers

      ![Larder beside \(mainPeer)](\(folder)/\(Self.peerPicture))

      The number in brackets is how many times less Larder takes than the peer: time, bytes or memory. **Bold** is where the peer takes less. Where several
      forms of one store do the work, the slowest is shown.

      \(table.markdown)
      """
  }

  private static func cell(_ form: PeerRow.Form) -> String {
    let text = "\(Figures.text(form.series.median, form.series.unit)) (\(Figures.digits(form.ratio)) ×)"
    return form.ratio < 1 ? "**\(text)**" : text
  }

  private var ahead: String {
    let lines = report.scenarios.compactMap { scenario -> String? in
      let pairs = scenario.peersAhead.map { peer, larder in
        "\(peer.name) (\(Figures.text(peer.median, peer.unit))) before \(larder.name) (\(Figures.text(larder.median, larder.unit)))"
      }
      if pairs.isEmpty { return scenario.reason.map { "- **\(scenario.title)**: no peer was measured. \($0)" } }
      return
        "- **\(scenario.title)**: \(pairs.joined(separator: "; ")). \(scenario.reason ?? "Nothing in the design asks for it: to be mended.")"
    }
    let text = lines.isEmpty ? "Nowhere in this run." : lines.joined(separator: "\n")
    return "## Where a peer is ahead\n\n\(text)"
  }

  private var goals: String {
    guard report.scenarios.contains(where: { !$0.verdicts.isEmpty }) else { return "" }
    return "Larder's goals have [a page of their own](\(folder)/goals.md). [Profiles](Profiles.md) accounts for the missed ones."
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
      parts.append((["`\(scenario.name)`, \(rounds) rounds."] + scenario.notes).joined(separator: " "))
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
