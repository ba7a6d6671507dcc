import Foundation
import Larder

extension SpotWeather {
  /// An optional part below the lines of a card.
  public enum Detail: Sendable {
    /// Weather of every hour.
    case hours
    /// Waves, swell and water temperature of every hour.
    case sea
    /// Sun and Moon of each day, with twilights and transits.
    case sky
  }

  /// Returns the weather as lines of text: current conditions, noon of the first day, chart, Sun and Moon, age and credits.
  public func card(_ style: CardStyle, with details: [Detail] = []) -> String {
    let zone = spot.zone
    let rows = hours
    let summary = DaySummary(rows, of: day, in: zone)
    let interval = DateInterval(start: day.interval(in: zone).start, end: day.advanced(by: count - 1).interval(in: zone).end)
    let waves = rows.map { $0.sea?.waveMeters }
    var series: [WeatherCard.Series] = [
      .temperature(celsius: rows.map(\.temperatureCelsius)), .wind(kilometersPerHour: rows.map(\.windKilometersPerHour)),
    ]
    // Inland spots have no sea, and an empty row would look like missing data.
    if waves.contains(where: { $0 != nil }) { series.append(.waves(meters: waves)) }
    let card = WeatherCard(
      title: "\(spot.name)\(spot.country.isEmpty ? "" : ", \(spot.country)") | \(day) (\(spot.timezone))", weather: summary?.noon.words,
      code: summary?.noon.code, interval: interval, zone: zone, instants: rows.map(\.instant), series: series,
      details: lines(summary, style), astronomy: astronomy.first, age: age, attribution: attribution + credit)
    return ([card.text(style)] + details.map { text($0, interval, style) }).joined()
  }

  /// Returns the weather of the first day as one line, for a list of spots.
  ///
  /// A name of more than `nameColumns` columns is cut only if the style's width is a limit.
  public func line(nameColumns: Int, _ style: CardStyle) -> String {
    let words = WeatherText(style: style, zone: spot.zone)
    let summary = DaySummary(hours, of: day, in: spot.zone)
    let waves = summary?.noon.sea?.waveHeight.map { "waves \(style.units.text($0, as: .waveHeight))" }
    let parts = [summary.flatMap(words.range), summary?.noon.words, summary.map(\.noon).flatMap(words.wind), waves].compactMap { $0 }
    let mark = style.isPlain ? "..." : "…"
    let name = style.isLimited ? spot.name.printable.fitted(toColumns: nameColumns, mark: mark) : spot.name.printable
    return "\(name.padded(toColumns: nameColumns))  \((parts + (age?.parts ?? [])).joined(separator: ", "))"
  }

  private func lines(_ summary: DaySummary?, _ style: CardStyle) -> [WeatherCard.Detail] {
    let words = WeatherText(style: style, zone: spot.zone)
    var lines: [WeatherCard.Detail] = []
    for alert in alerts?.value?.alerts ?? [] {
      lines.append(
        .init("ALERT", [alert.severity, alert.summary, "by \(alert.source)"] + [alert.areaName].compactMap { $0 }, standsOut: true))
    }
    if let known = lastKnownAlerts {
      // An old warning may have been withdrawn since, so the line states its age and that it is not current.
      let mark = "last known \(ForecastReport.words(forAge: known.ageSeconds).replacing(" old", with: " ago")), not current"
      for alert in known.alerts {
        let parts = [mark, alert.severity, alert.summary, "by \(alert.source)"] + [alert.areaName].compactMap { $0 }
        lines.append(.init("ALERT?", parts, standsOut: true))
      }
      // An empty list is shown too: "none" then is the last known state.
      if known.alerts.isEmpty { lines.append(.init("Alerts", [mark, "none"])) }
    }
    // Without this line, a failed request would look like a day without warnings.
    if case .unavailable(let problem)? = alerts { lines.append(.init("Alerts", ["not known: \(problem)"], standsOut: true)) }
    if let current { lines.append(.init("Now", words.parts(current) { words.brief($0.conditions) })) }
    if let noon = summary?.noon { lines.append(.init(TimeLabel.clock(noon.instant, in: spot.zone), words.numbers(noon))) }
    if let rain = summary?.precipitation { lines.append(.init("Rain", [style.units.text(rain, as: .precipitation)])) }
    lines.append(.init("Sea", sea(summary?.noon.sea, words)))
    if count > 1 { lines += (0..<count).map { words.line(ForecastReport.Day(self, day.advanced(by: $0), hours), day.advanced(by: $0)) } }
    return lines
  }

  private func sea(_ noon: SeaHour?, _ words: WeatherText) -> [String] {
    switch marine {
    case .noCoverage: return ["no sea here"]
    case .unsupported: return ["not offered by this provider"]
    case .unavailable(let problem): return ["unavailable: \(problem)"]
    case .available:
      let parts = words.parts(marine) { _ in noon.map(words.brief) ?? [] }
      return parts.isEmpty ? ["no data"] : parts
    }
  }

  /// Age and origin of the hourly forecast, from which most lines of the card come.
  private var age: DataAge? {
    guard let hourly = hourly.cached else { return nil }
    return DataAge(
      seconds: hourly.ageSeconds, origin: hourly.originWord, isStale: isStale, isRecorded: hourly.value.provenance.isRecorded,
      problem: self.hourly.problem?.summary)
  }

  private func text(_ detail: Detail, _ interval: DateInterval, _ style: CardStyle) -> String {
    let words = WeatherText(style: style, zone: spot.zone)
    switch detail {
    case .sky: return astronomy.map { $0.text(style) }.joined()
    case .hours, .sea:
      let rows = hours.filter { interval.start <= $0.instant && $0.instant < interval.end }
      return rows.map { row in
        let time = count > 1 ? TimeLabel.dayAndClock(row.instant, in: spot.zone) : TimeLabel.clock(row.instant, in: spot.zone)
        let parts = detail == .hours ? words.parts(row) : row.sea.map(words.parts) ?? ["no data"]
        return style.fitted("  \(time)  \(parts.joined(separator: ", "))") + "\n"
      }.joined()
    }
  }

  /// Credits to show besides the provider's.
  var credit: [String] {
    var lines: [String] = []
    // The licences of the wave data and of GeoNames require a credit wherever the data are shown.
    if marine.value != nil { lines.append("Waves include data of DWD (https://www.dwd.de/)") }
    if spot.source.hasPrefix("GeoNames") {
      lines.append("Spot from GeoNames (https://www.geonames.org/), CC BY 4.0")
    } else if !spot.source.isEmpty {
      lines.append("Spot from \(spot.source)")
    }
    return lines
  }
}
