import Foundation

/// Ratios of Larder to one peer as points on a scale of powers of ten, a line for each work: right of 1, Larder takes less.
package struct PeerChart: Sendable {
  private let peer: String
  private let rows: [PeerRow]

  package init(peer: String, _ rows: [PeerRow]) { (self.peer, self.rows) = (peer, rows) }

  package var svg: String {
    let (width, left, right, top, step) = (820.0, 350.0, 36.0, 62.0, 19.0)
    let ratios = rows.flatMap { $0.forms.map(\.ratio) }.filter { $0.isFinite && $0 > 0 }
    let low = min(-1, (ratios.map(log10).min() ?? 0).rounded(.down))
    let high = max(1, (ratios.map(log10).max() ?? 0).rounded(.up))
    let x = { (ratio: Double) in left + (log10(ratio) - low) / (high - low) * (width - left - right) }
    let bottom = top + Double(rows.count) * step

    var parts = [SVG.text("How many times less Larder takes than \(peer)", x: 4, y: 18, isBold: true)]
    for power in Int(low)...Int(high) {
      let at = x(pow(10, Double(power)))
      parts.append(Self.line(at, top - 14, at, bottom - 8, opacity: power == 0 ? 1 : 0.35))
      let label = power < 0 ? String(format: "%.\(-power)f", pow(10, Double(power))) : Figures.count(Int(pow(10, Double(power))))
      parts.append(SVG.text(label + " ×", x: at, y: top - 20, anchor: "middle"))
    }
    for (place, row) in rows.enumerated() {
      let y = top + Double(place) * step
      parts.append(SVG.text(row.shortWork, x: left - 12, y: y + 4, anchor: "end"))
      parts.append(Self.line(left, y, width - right, y, opacity: 0.15))
      for form in row.forms where form.ratio.isFinite && form.ratio > 0 {
        parts.append(
          "<circle cx=\"\(SVG.number(x(form.ratio)))\" cy=\"\(SVG.number(y))\" r=\"5\" fill=\"\(Self.color(form.series.engine))\">"
            + "<title>\(SVG.escaped(form.series.engine)): \(Figures.digits(form.ratio)) times</title></circle>")
      }
    }
    parts.append(SVG.text("← \(peer) takes less", x: x(1) - 8, y: bottom + 12, anchor: "end"))
    parts.append(SVG.text("Larder takes less →", x: x(1) + 8, y: bottom + 12))
    parts.append(contentsOf: legend(y: bottom + 12))
    return SVG.picture(width: width, height: bottom + 22, title: "Larder beside \(peer)", parts)
  }

  private static func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, opacity: Double) -> String {
    "<line x1=\"\(SVG.number(x1))\" y1=\"\(SVG.number(y1))\" x2=\"\(SVG.number(x2))\" y2=\"\(SVG.number(y2))\" "
      + "stroke=\"\(SVG.gridColor)\" stroke-opacity=\"\(opacity)\"/>"
  }

  private static func color(_ engine: String) -> String {
    if engine.hasSuffix("JSON") { return SVG.color(.larder) }
    return engine.hasSuffix("SQLite") ? "#a371c9" : SVG.color(.limit)
  }

  private func legend(y: Double) -> [String] {
    let engines = Set(rows.flatMap { $0.forms.map(\.series.engine) }).sorted()
    return engines.enumerated().flatMap { place, engine in
      let x = 8.0 + Double(place) * 110
      return [
        "<circle cx=\"\(SVG.number(x))\" cy=\"\(SVG.number(y - 4))\" r=\"5\" fill=\"\(Self.color(engine))\"/>",
        SVG.text(engine, x: x + 10, y: y),
      ]
    }
  }
}
