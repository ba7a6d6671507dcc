public import Foundation

/// The weather of a place on a few lines, made of plain values.
public struct WeatherCard: Sendable {
  /// One row of the chart: what is measured, a value for each of the card's instants, and the words beside the bars.
  public struct Series: Sendable {
    let label: String
    let values: [Double?]
    let includesZero: Bool
    let summary: @Sendable (ClosedRange<Double>, CardStyle) -> String

    /// Air temperatures, in degrees Celsius.
    public static func temperature(celsius values: [Double?]) -> Series {
      Series(label: "Temp", values: values, includesZero: false) { range, style in
        let numbers = [range.lowerBound, range.upperBound].map { celsius in
          style.units.number(Measurement(value: celsius, unit: UnitTemperature.celsius), as: .temperature)
        }
        return style.text(numbers.joined(separator: " to "), style.units.symbol(of: Quantity<UnitTemperature>.temperature))
      }
    }

    /// Wind speeds, in kilometres per hour.
    public static func wind(kilometersPerHour values: [Double?]) -> Series {
      Series(label: "Wind", values: values, includesZero: true) { range, style in
        "up to " + style.units.text(Measurement(value: range.upperBound, unit: UnitSpeed.kilometersPerHour), as: .windSpeed)
      }
    }

    /// Significant heights of waves, in metres.
    public static func waves(meters values: [Double?]) -> Series {
      Series(label: "Waves", values: values, includesZero: true) { range, style in
        "up to " + style.units.text(Measurement(value: range.upperBound, unit: UnitLength.meters), as: .waveHeight)
      }
    }
  }

  /// A line of words between the kind of weather and the chart.
  public struct Detail: Sendable {
    let label: String
    let parts: [String]
    let stands: Bool

    /// Makes a line; one that stands out is in the color of warnings.
    public init(_ label: String, _ parts: [String], standsOut: Bool = false) {
      self.label = label.printable
      self.parts = parts.map(\.printable)
      stands = standsOut
    }
  }

  private let title: String
  private let weather: String?
  private let code: WeatherCode?
  private let isNight: Bool
  private let interval: DateInterval
  private let zone: TimeZone
  private let instants: [Date]
  private let series: [Series]
  private let details: [Detail]
  private let astronomy: Astronomy?
  private let age: DataAge?
  private let attribution: [String]

  /// Makes a card.
  ///
  /// - Parameters:
  ///   - title: The first line.
  ///   - weather: The kind of weather in words; `nil` for those of the code.
  ///   - code: The kind of weather.
  ///   - isNight: Whether a clear sky shows the Moon.
  ///   - interval: The span of the chart, whole days of the zone.
  ///   - zone: The zone of the clock hours.
  ///   - instants: When the values of the series are; those outside the span are left out.
  ///   - series: The rows of the chart.
  ///   - details: Lines of words above the chart.
  ///   - astronomy: Sun and Moon of the first day.
  ///   - age: How old the data are.
  ///   - attribution: Who has to be named, a line each, with links.
  public init(
    title: String, weather: String? = nil, code: WeatherCode? = nil, isNight: Bool = false, interval: DateInterval, zone: TimeZone,
    instants: [Date], series: [Series], details: [Detail] = [], astronomy: Astronomy? = nil, age: DataAge? = nil, attribution: [String] = []
  ) {
    // Some of the words come from servers.
    self.title = title.printable
    self.weather = (weather ?? code?.description)?.printable
    self.code = code
    self.isNight = isNight
    self.interval = interval
    self.zone = zone
    self.instants = instants
    self.series = series
    self.details = details
    self.astronomy = astronomy
    self.age = age
    self.attribution = attribution.map(\.printable)
  }

  /// Returns the card in a style, each line ended.
  public func text(_ style: CardStyle) -> String {
    let mark = style.isPlain ? "..." : "…"
    var lines = [style.paint(title.truncated(toColumns: style.width, mark: mark), .bold)]
    if let weather {
      let symbol = code?.symbol(isNight: isNight, isPlain: style.isPlain) ?? ""
      lines.append("  " + ((symbol.isEmpty ? "" : symbol + " ") + weather).truncated(toColumns: style.width - 2, mark: mark))
    }
    for detail in details { lines += style.lines(detail.label, detail.parts, ink: detail.stands ? .warning : nil) }
    lines += chart(style)
    if let astronomy {
      lines += style.lines("Sun", astronomy.sunParts(style))
      lines += style.lines("Moon", astronomy.moonParts(style))
    }
    if let age { lines += style.lines("Data", age.parts.map(\.printable), ink: age.isStale ? .warning : nil) }
    for name in attribution {
      lines += name.wrapped(toColumns: style.width - 4).enumerated().map { style.paint(($0 == 0 ? "  " : "    ") + $1, .faint) }
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
