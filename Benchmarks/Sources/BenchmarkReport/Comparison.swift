/// Two reports beside each other.
package struct Comparison: Sendable {
  package struct Row: Equatable, Sendable {
    package let scenario: String
    package let series: String
    package let old: Double
    package let new: Double
    package let unit: Series.Unit
    /// New over old; of the ratios to the base of the scenario where both runs measured it, so that the machine's mood drops out.
    package let change: Double
    package let isBesideBase: Bool

    package var words: String {
      if change > 0.97 && change < 1.03 { return "the same" }
      let times = change < 1 ? "\(Figures.digits(1 / change)) times better" : "\(Figures.digits(change)) times worse"
      return times + (isBesideBase ? ", beside the base" : "")
    }
  }

  package let rows: [Row]
  /// The scenarios that only one of both has.
  package let unmatched: [String]

  package init(_ old: Report, _ new: Report) {
    var rows: [Row] = []
    for scenario in new.scenarios {
      guard let before = old.scenarios.first(where: { $0.name == scenario.name }) else { continue }
      for one in scenario.series {
        guard let other = before.series.first(where: { $0.name == one.name && $0.size == one.size }) else { continue }
        let ratios = (before.ratio(of: other)?.median, scenario.ratio(of: one)?.median)
        let name = one.name + (one.size.map { " at \(Figures.count($0))" } ?? "")
        if let first = ratios.0, let second = ratios.1, first > 0 {
          rows.append(
            Row(
              scenario: scenario.name, series: name, old: other.median, new: one.median, unit: one.unit, change: second / first,
              isBesideBase: true))
        } else {
          rows.append(
            Row(
              scenario: scenario.name, series: name, old: other.median, new: one.median, unit: one.unit,
              change: one.median / other.median, isBesideBase: false))
        }
      }
    }
    let names = (Set(old.scenarios.map(\.name)), Set(new.scenarios.map(\.name)))
    self.rows = rows
    unmatched = names.0.symmetricDifference(names.1).sorted()
  }
}
