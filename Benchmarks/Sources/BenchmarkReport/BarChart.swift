/// The scenarios of one group as bars, one panel each, shorter being better; every panel has a scale of its own.
package struct BarChart: Sendable {
  private let title: String
  private let scenarios: [ScenarioReport]

  package init(title: String, _ scenarios: [ScenarioReport]) { (self.title, self.scenarios) = (title, scenarios) }

  package var svg: String {
    let (width, label, bar, step) = (820.0, 300.0, 320.0, 19.0)
    var parts: [String] = []
    var y = 22.0
    for scenario in scenarios {
      parts.append(SVG.text(scenario.title, x: 4, y: y, isBold: true))
      y += 20
      // One that takes many times as long as the others would leave nothing of them to see: its bar is cut off, and says so.
      let medians = scenario.series.map(\.median).filter(\.isFinite)
      let cut = 10 * (Statistics(medians)?.upperQuartile ?? 1)
      let greatest = medians.filter { $0 <= cut }.max() ?? 1
      for one in scenario.series {
        let length = min(bar, max(1.5, one.median / max(greatest, .leastNonzeroMagnitude) * bar))
        parts.append(SVG.text(one.name, x: label - 8, y: y, anchor: "end"))
        parts.append(
          "<rect x=\"\(SVG.number(label))\" y=\"\(SVG.number(y - 10))\" width=\"\(SVG.number(length))\" height=\"12\" rx=\"2\" "
            + "fill=\"\(SVG.color(one.kind))\"/>")
        parts.append(SVG.text((one.median > cut ? "… " : "") + Self.value(one), x: label + length + 6, y: y))
        y += step
      }
      y += 16
    }
    parts.append(contentsOf: Self.legend(y: y))
    return SVG.picture(width: width, height: y + 10, title: title, parts)
  }

  private static func value(_ one: Series) -> String {
    Figures.text(one.median, one.unit) + (one.rate.map { " · \(Figures.digits($0)) a second" } ?? "")
  }

  private static func legend(y: Double) -> [String] {
    let kinds: [(Series.Kind, String)] = [(.larder, "Larder"), (.peer, "peers"), (.limit, "the limit")]
    return kinds.enumerated().flatMap { place, kind in
      let x = 300.0 + Double(place) * 90
      return [
        "<rect x=\"\(SVG.number(x))\" y=\"\(SVG.number(y - 10))\" width=\"12\" height=\"12\" rx=\"2\" fill=\"\(SVG.color(kind.0))\"/>",
        SVG.text(kind.1, x: x + 17, y: y),
      ]
    }
  }
}
