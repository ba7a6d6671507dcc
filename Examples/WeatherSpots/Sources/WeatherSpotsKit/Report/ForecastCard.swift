import Foundation

extension ForecastReport {
  /// The report on a few lines of text.
  public var card: String {
    var lines = ["\(spot)\(country.isEmpty ? "" : ", \(country)") | \(day) (\(timezone))"]
    if let now { lines.append(line("Now", Self.parts(now))) }
    lines.append(line("At \(noon.time)", [Self.temperature(noon.temperatureC), Self.feelsLike(noon), noon.weather]))
    lines.append(line("Day", [range, precipitationMm.map { "\($0.text(decimals: 1)) mm of rain or snow" }]))
    lines.append(line("Wind", [Self.wind(noon), noon.gustKmh.map { "gusts \($0.text(decimals: 0))" }, strongest]))
    lines.append(line("Waves", [waves]))
    if let alerts { lines += alertLines(alerts) }
    lines.append(line("Source", [source, age]))
    return (lines + attribution.map { "  \($0)" }).joined(separator: "\n") + "\n"
  }

  /// The report on one line, for a list of spots.
  public func line(width: Int) -> String {
    let name = spot.count > width ? String(spot.prefix(max(width - 1, 0))) + "…" : spot
    let waves = sea.state == "available" ? sea.waveM.map { "waves \($0.text(decimals: 1)) m" } : nil
    let parts = [range, noon.weather, Self.wind(noon), waves, source, age].compactMap { $0 }
    return "\(name.padding(toLength: width, withPad: " ", startingAt: 0))  \(parts.joined(separator: ", "))"
  }

  private func line(_ name: String, _ parts: [String?]) -> String {
    let parts = parts.compactMap { $0 }
    return "  \(name.padding(toLength: 10, withPad: " ", startingAt: 0))\(parts.isEmpty ? "no data" : parts.joined(separator: ", "))"
  }

  private static func temperature(_ value: Double?) -> String? { value.map { "\($0.text(decimals: 1)) °C" } }

  private static func feelsLike(_ hour: Hour) -> String? { hour.apparentC.map { "feels like \($0.text(decimals: 1)) °C" } }

  private static func parts(_ now: Now) -> [String?] {
    guard let hour = now.hour else { return [now.state == "unavailable" ? "unavailable: \(now.reason ?? "unknown")" : nil] }
    let age = now.stale == true ? now.ageSeconds.map { "STALE: \(words(forAge: $0))" } : nil
    return [temperature(hour.temperatureC), feelsLike(hour), hour.weather, wind(hour), age]
  }

  private var range: String? {
    guard let low = temperatureMinC, let high = temperatureMaxC else { return nil }
    return "\(low.text(decimals: 1)) to \(high.text(decimals: 1)) °C"
  }

  private static func wind(_ hour: Hour) -> String? {
    hour.windKmh.map { "\($0.text(decimals: 0)) km/h" + (hour.windFromDegrees.map { " from \(compass($0))" } ?? "") }
  }

  private var strongest: String? { windMaxKmh.map { "up to \($0.text(decimals: 0)) over the day" } }

  private var waves: String? {
    switch sea.state {
    case "no coverage": "no sea here"
    case "unsupported": "not offered by this provider"
    case "unavailable": "unavailable: \(sea.reason ?? "unknown")"
    default: [height, surface, seaAge].compactMap { $0 }.joined(separator: ", ")
    }
  }

  private var height: String? {
    guard let height = sea.waveM else { return nil }
    let period = sea.wavePeriodS.map { " every \($0.text(decimals: 0)) s" } ?? ""
    return "\(height.text(decimals: 1)) m" + period + (sea.waveFromDegrees.map { " from \(Self.compass($0))" } ?? "")
  }

  private var surface: String? { sea.surfaceC.map { "water \($0.text(decimals: 1)) °C" } }

  private var seaAge: String? { sea.stale == true ? sea.ageSeconds.map { "STALE: \(Self.words(forAge: $0))" } : nil }

  private func alertLines(_ alerts: Alerts) -> [String] {
    switch alerts.state {
    case "available": alerts.alerts.map { line("WARNING", [$0.severity, $0.summary, "by \($0.source)", $0.areaName]) }
    case "unavailable": [line("Warnings", ["not known: \(alerts.reason ?? "unknown")"])]
    default: []
    }
  }

  private var source: String {
    "\(origin), \(recorded ? "recorded data\(server == "recordings" ? "" : " from the stand-in server")" : server)"
  }

  private var age: String {
    let age = Self.words(forAge: ageSeconds)
    return stale ? "STALE: the last known forecast, \(age) (fetched \(fetchedAt))" : age
  }

  static func words(forAge seconds: Int) -> String {
    switch seconds {
    case ..<0: "from the future: was the clock set back?"
    case ..<60: "just now"
    case ..<7200: "\(seconds / 60) min old"
    case ..<172_800: "\(seconds / 3600) h old"
    default: "\(seconds / 86400) days old"
    }
  }

  static func compass(_ degrees: Double) -> String {
    let names = ["N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW"]
    let index = Int((degrees.truncatingRemainder(dividingBy: 360) + 360) / 22.5 + 0.5) % 16
    return names[index]
  }
}
