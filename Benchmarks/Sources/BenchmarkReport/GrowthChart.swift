import Foundation

/// The cost of operations over the number of records, both axes in powers of ten: a flat line does not grow.
package struct GrowthChart: Sendable {
  private let scenario: ScenarioReport

  package init(_ scenario: ScenarioReport) { self.scenario = scenario }

  private static let colors = ["#3b7ddd", "#c2783c", "#3f9b6c", "#a371c9", "#c2557a", "#5b8a9a", "#9a8a2f", "#7d7d7d"]

  package var svg: String {
    let (width, height, left, right, top, bottom) = (820.0, 400.0, 70.0, 250.0, 40.0, 40.0)
    let points = scenario.series.filter { $0.size != nil && $0.median > 0 }
    // A size of 0 has no logarithm: it stands one power of ten before the next one.
    let sizes = Set(points.compactMap(\.size)).sorted()
    let least = log10(Double(sizes.first { $0 > 0 } ?? 1))
    let scale = { (size: Int) in size == 0 ? least - 1 : log10(Double(size)) }
    let (first, last) = (scale(sizes.first ?? 1), max(scale(sizes.last ?? 10), scale(sizes.first ?? 1) + 1))
    let low = (points.map { log10($0.median) }.min() ?? 0).rounded(.down)
    let high = max((points.map { log10($0.median) }.max() ?? 1).rounded(.up), low + 1)
    let x = { (size: Int) in left + (scale(size) - first) / (last - first) * (width - left - right) }
    let y = { (value: Double) in top + (high - log10(value)) / (high - low) * (height - top - bottom) }

    var parts = [SVG.text(scenario.title, x: 4, y: 18, isBold: true)]
    for power in Int(low)...Int(high) {
      let at = y(pow(10, Double(power)))
      parts.append(
        "<line x1=\"\(SVG.number(left))\" y1=\"\(SVG.number(at))\" x2=\"\(SVG.number(width - right))\" y2=\"\(SVG.number(at))\" "
          + "stroke=\"\(SVG.gridColor)\" stroke-opacity=\"0.35\"/>")
      parts.append(
        SVG.text(Figures.text(pow(10, Double(power)), points.first?.unit ?? .microseconds), x: left - 8, y: at + 4, anchor: "end"))
    }
    for size in sizes { parts.append(SVG.text(Figures.count(size), x: x(size), y: height - 16, anchor: "middle")) }

    let names = points.reduce(into: [String]()) { if !$0.contains($1.name) { $0.append($1.name) } }
    // Names that would stand on each other are moved apart, in the order of their lines.
    let ends = names.compactMap { name in
      points.filter { $0.name == name }.max { ($0.size ?? 0) < ($1.size ?? 0) }.map { (name, y($0.median)) }
    }
    var labels: [String: Double] = [:]
    var next = top
    for (name, at) in ends.sorted(by: { $0.1 < $1.1 }) {
      labels[name] = max(at, next)
      next = max(at, next) + 15
    }
    for (place, name) in names.enumerated() {
      // Once the colours are used up they begin again, with dashes.
      let color = Self.colors[place % Self.colors.count]
      let dashes = place < Self.colors.count ? "" : " stroke-dasharray=\"6 4\""
      let line = points.filter { $0.name == name }.sorted { ($0.size ?? 0) < ($1.size ?? 0) }
      let corners = line.map { "\(SVG.number(x($0.size ?? 0))),\(SVG.number(y($0.median)))" }
      parts.append("<polyline points=\"\(corners.joined(separator: " "))\" fill=\"none\" stroke=\"\(color)\" stroke-width=\"2\"\(dashes)/>")
      for corner in corners {
        let pair = corner.split(separator: ",")
        parts.append("<circle cx=\"\(pair[0])\" cy=\"\(pair[1])\" r=\"3\" fill=\"\(color)\"/>")
      }
      parts.append("<g fill=\"\(color)\">" + SVG.text(name, x: width - right + 10, y: (labels[name] ?? 0) + 4) + "</g>")
    }
    return SVG.picture(width: width, height: height, title: scenario.title, parts)
  }
}
