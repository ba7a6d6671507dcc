/// The page of the goals that Larder sets itself: the missed ones first, then the reached ones.
package struct GoalPage: Sendable {
  private let report: Report

  package init(_ report: Report) { self.report = report }

  package var markdown: String {
    let all = report.scenarios.flatMap { scenario in scenario.verdicts.map { (scenario.title, $0) } }
    let missed = all.filter { !$0.1.isReached }
    let reached = all.filter { $0.1.isReached }
    let sections = [("Missed", missed), ("Reached", reached)].filter { !$0.1.isEmpty }.map { name, verdicts in
      "## \(name)\n\n\(Self.table(verdicts))"
    }
    let introduction = """
      # Goals

      \(reached.count) of \(all.count) goals are reached. [Profiles](../Profiles.md) shows where the time of the missed ones goes. Made by `make bench` from the figures of
      [Benchmarks](../Benchmarks.md); do not edit.
      """
    return ([introduction] + sections).joined(separator: "\n\n") + "\n"
  }

  private static func table(_ verdicts: [(String, Verdict)]) -> String {
    var table = TextTable(["work", "contender", "found", "quartiles", "goal"])
    for (title, verdict) in verdicts {
      let spread = verdict.ratio.map { "\(Figures.digits($0.lowerQuartile)) – \(Figures.digits($0.upperQuartile))" } ?? ""
      table.add([title, verdict.series, verdict.found, spread, verdict.asked])
    }
    return table.markdown
  }
}
