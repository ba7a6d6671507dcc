import Foundation

/// The weather of a place as a few lines of text with a chart, drawn from plain values.
struct WeatherCard: Sendable {
  /// One row of the chart: a label, one value for each of the card's instants, and a text beside the bars.
  struct Series: Sendable {
    let label: String
    let values: [Double?]
    let includesZero: Bool
    let summary: @Sendable (ClosedRange<Double>, CardStyle) -> String

    /// Returns a row of air temperatures, given in degrees Celsius.
    static func temperature(celsius values: [Double?]) -> Series {
      Series(label: "Temp", values: values, includesZero: false) { range, style in style.temperatures(range) }
    }

    /// Returns a row of wind speeds, given in kilometres per hour.
    static func wind(kilometersPerHour values: [Double?]) -> Series {
      Series(label: "Wind", values: values, includesZero: true) { range, style in
        "up to " + style.units.text(Measurement(value: range.upperBound, unit: UnitSpeed.kilometersPerHour), as: .windSpeed)
      }
    }

    /// Returns a row of significant wave heights, given in metres.
    static func waves(meters values: [Double?]) -> Series {
      Series(label: "Waves", values: values, includesZero: true) { range, style in
        "up to " + style.units.text(Measurement(value: range.upperBound, unit: UnitLength.meters), as: .waveHeight)
      }
    }
  }

  /// A labelled line of text between the kind of weather and the chart.
  struct Detail: Sendable {
    let label: String
    let parts: [String]
    let stands: Bool

    /// Creates a line, drawn in the color of warnings if `standsOut` is true.
    init(_ label: String, _ parts: [String], standsOut: Bool = false) {
      // A server's alert could otherwise move the cursor and overwrite other lines.
      self.label = label.printable
      self.parts = parts.map(\.printable)
      stands = standsOut
    }
  }

  /// First line of the card.
  let title: String
  /// Kind of weather in words, or `nil` to show the description of ``code``.
  var weather: String?
  /// WMO code of the kind of weather.
  var code: WeatherCode?
  /// Whether the symbol of a clear sky is the Moon and not the Sun.
  var isNight = false
  /// Interval of the chart, made of whole days of the zone.
  let interval: DateInterval
  /// Time zone of the clock hours.
  let zone: TimeZone
  /// Instants of the values of each series.
  ///
  /// Values at instants outside ``interval`` are left out.
  let instants: [Date]
  /// Rows of the chart.
  let series: [Series]
  /// Labelled lines above the chart.
  var details: [Detail] = []
  /// Sunrise, sunset, moonrise, moonset and phase of the first day.
  var astronomy: Astronomy?
  /// Age and origin of the data.
  var age: DataAge?
  /// Credits for the data with links, each on lines of its own.
  var attribution: [String] = []

  /// Returns the card in a style, each line with a line end.
  ///
  /// Some texts come from servers, so control characters are removed from all of them.
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
      // The text must state the range of the shown days, while the values may extend past them.
      let inside = zip(row.values, instants).filter { interval.start <= $1 && $1 < interval.end }.compactMap { $0.0 }.filter(\.isFinite)
      guard let low = inside.min(), let high = inside.max() else { return (row, "no data") }
      return (row, row.summary(low...high, style))
    }
    // All rows get the room beside the longest text, so that their hours stand under each other.
    let room = style.width - 2 - CardStyle.labelColumns - 2 - (rows.map(\.summary.columns).max() ?? 0)
    let timeline = Timeline(interval, in: zone, columns: room)
    // A chart of fewer than 8 columns shows no course of a day. The text is then shown alone.
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
