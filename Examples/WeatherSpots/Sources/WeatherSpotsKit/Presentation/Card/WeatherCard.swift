import Foundation

/// The weather of a place on a few lines, made of plain values.
struct WeatherCard: Sendable {
  /// One row of the chart: what is measured, a value for each of the card's instants, and the words beside the bars.
  struct Series: Sendable {
    let label: String
    let values: [Double?]
    let includesZero: Bool
    let summary: @Sendable (ClosedRange<Double>, CardStyle) -> String

    /// Air temperatures, in degrees Celsius.
    static func temperature(celsius values: [Double?]) -> Series {
      Series(label: "Temp", values: values, includesZero: false) { range, style in style.temperatures(range) }
    }

    /// Wind speeds, in kilometres per hour.
    static func wind(kilometersPerHour values: [Double?]) -> Series {
      Series(label: "Wind", values: values, includesZero: true) { range, style in
        "up to " + style.units.text(Measurement(value: range.upperBound, unit: UnitSpeed.kilometersPerHour), as: .windSpeed)
      }
    }

    /// Significant heights of waves, in metres.
    static func waves(meters values: [Double?]) -> Series {
      Series(label: "Waves", values: values, includesZero: true) { range, style in
        "up to " + style.units.text(Measurement(value: range.upperBound, unit: UnitLength.meters), as: .waveHeight)
      }
    }
  }

  /// A line of words between the kind of weather and the chart.
  struct Detail: Sendable {
    let label: String
    let parts: [String]
    let stands: Bool

    /// Makes a line; one that stands out is in the color of warnings.
    init(_ label: String, _ parts: [String], standsOut: Bool = false) {
      self.label = label.printable
      self.parts = parts.map(\.printable)
      stands = standsOut
    }
  }

  /// The first line.
  let title: String
  /// The kind of weather in words; `nil` for those of the code.
  var weather: String?
  /// The kind of weather.
  var code: WeatherCode?
  /// Whether a clear sky shows the Moon.
  var isNight = false
  /// The span of the chart, whole days of the zone.
  let interval: DateInterval
  /// The zone of the clock hours.
  let zone: TimeZone
  /// The instants of the values of the series; those outside the span are left out.
  let instants: [Date]
  /// The rows of the chart.
  let series: [Series]
  /// Lines of words above the chart.
  var details: [Detail] = []
  /// Sun and Moon of the first day.
  var astronomy: Astronomy?
  /// The age of the data.
  var age: DataAge?
  /// The credits, a line each, with links.
  var attribution: [String] = []

  /// Returns the card in a style, each line ended.
  ///
  /// Some of the words come from servers: of all of them only what is printable is drawn.
  func text(_ style: CardStyle) -> String {
    var lines = [style.paint(style.fitted(title.printable), .bold)]
    if let weather = weather ?? code?.description {
      let symbol = code?.symbol(isNight: isNight, isPlain: style.isPlain) ?? ""
      lines.append("  " + style.fitted((symbol.isEmpty ? "" : symbol + " ") + weather.printable, besides: 2))
    }
    for detail in details { lines += style.lines(detail.label, detail.parts, ink: detail.stands ? .warning : nil) }
    lines += chart(style)
    if let astronomy {
      lines += style.lines("Sun", astronomy.sunParts(style))
      lines += style.lines("Moon", astronomy.moonParts(style))
    }
    if let age { lines += style.lines("Data", age.parts.map(\.printable), ink: age.isStale ? .warning : nil) }
    for name in attribution {
      lines += style.wrapped(name.printable, besides: 4).enumerated().map { style.paint(($0 == 0 ? "  " : "    ") + $1, .faint) }
    }
    return lines.map { $0 + "\n" }.joined()
  }

  private func chart(_ style: CardStyle) -> [String] {
    let rows = series.map { row -> (row: Series, summary: String) in
      let inside = zip(row.values, instants).filter { interval.start <= $1 && $1 < interval.end }.compactMap { $0.0 }.filter(\.isFinite)
      guard let low = inside.min(), let high = inside.max() else { return (row, "no data") }
      return (row, row.summary(low...high, style))
    }
    let room = style.width - 2 - CardStyle.labelColumns - 2 - (rows.map(\.summary.columns).max() ?? 0)
    let timeline = Timeline(interval, in: zone, columns: room)
    // Bars of fewer columns say nothing; the words alone are left.
    let isDrawn = room >= 8 && !rows.isEmpty
    var lines = rows.flatMap { row, summary -> [String] in
      guard isDrawn else { return style.lines(row.label, [summary]) }
      let bars = Sparkline.text(timeline.means(of: row.values, at: instants), includingZero: row.includesZero, isPlain: style.isPlain)
      return ["  " + row.label.padded(toColumns: CardStyle.labelColumns) + style.paint(bars, .chart) + "  " + summary]
    }
    let axis = timeline.axis
    if isDrawn, !axis.isEmpty { lines.append(style.paint(String(repeating: " ", count: 2 + CardStyle.labelColumns) + axis, .faint)) }
    return lines
  }
}
