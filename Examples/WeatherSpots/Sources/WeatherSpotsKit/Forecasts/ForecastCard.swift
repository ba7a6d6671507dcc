import Foundation

extension ForecastReport {
  /// The report on a few lines of text.
  public var card: String {
    var lines = ["\(spot)\(country.isEmpty ? "" : ", \(country)") | \(day) (\(timezone))"]
    lines.append(line("At \(noon.time)", [Self.temperature(noon.temperatureC), feelsLike, noon.weather]))
    lines.append(line("Day", [range, precipitationMm.map { "\($0.text(decimals: 1)) mm of rain or snow" }]))
    lines.append(line("Wind", [wind, noon.gustKmh.map { "gusts \($0.text(decimals: 0))" }, strongest]))
    lines.append(line("Waves", [waves]))
    lines.append(line("Source", [source, age]))
    return (lines + attribution.map { "  \($0)" }).joined(separator: "\n") + "\n"
  }

  private func line(_ name: String, _ parts: [String?]) -> String {
    let parts = parts.compactMap { $0 }
    return "  \(name.padding(toLength: 10, withPad: " ", startingAt: 0))\(parts.isEmpty ? "no data" : parts.joined(separator: ", "))"
  }

  private static func temperature(_ value: Double?) -> String? { value.map { "\($0.text(decimals: 1)) °C" } }

  private var feelsLike: String? { noon.apparentC.map { "feels like \($0.text(decimals: 1)) °C" } }

  private var range: String? {
    guard let low = temperatureMinC, let high = temperatureMaxC else { return nil }
    return "\(low.text(decimals: 1)) to \(high.text(decimals: 1)) °C"
  }

  private var wind: String? {
    noon.windKmh.map { "\($0.text(decimals: 0)) km/h" + (noon.windFromDegrees.map { " from \(Self.compass($0))" } ?? "") }
  }

  private var strongest: String? { windMaxKmh.map { "up to \($0.text(decimals: 0)) over the day" } }

  private var waves: String? {
    switch sea.state {
    case "no coverage": "no sea here"
    case "unavailable": "unavailable: \(sea.reason ?? "unknown")"
    default: height.map { [$0, surface].compactMap { $0 }.joined(separator: ", ") } ?? surface
    }
  }

  private var height: String? {
    guard let height = sea.waveM else { return nil }
    let period = sea.wavePeriodS.map { " every \($0.text(decimals: 0)) s" } ?? ""
    return "\(height.text(decimals: 1)) m" + period + (sea.waveFromDegrees.map { " from \(Self.compass($0))" } ?? "")
  }

  private var surface: String? { sea.surfaceC.map { "water \($0.text(decimals: 1)) °C" } }

  private var source: String { "\(origin), \(recorded ? "recorded data from the stand-in server" : server)" }

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
