import Foundation

/// The URL of a request to Open-Meteo for one or several places, and what it costs.
struct OpenMeteoQuery {
  let url: URL
  let weight: Double

  /// Makes the query of requests that differ in nothing but the place.
  init(
    _ servers: OpenMeteoServers, _ server: URL, _ path: String, _ requests: [ProviderRequest], sections: [(String, [String])],
    today: LocalDay, metric: [String]
  ) {
    let centers = requests.map(\.place.cell.center)
    var items = [
      ("latitude", centers.map { $0.latitude.text(decimals: 5) }.joined(separator: ",")),
      ("longitude", centers.map { $0.longitude.text(decimals: 5) }.joined(separator: ",")),
    ]
    items += sections.map { ($0.0, $0.1.joined(separator: ",")) }
    let needsDays = sections.contains { $0.0 == "daily" }
    // Sums of days follow the place's own zone; labels of hours need no rule about clocks in GMT.
    items.append(("timezone", needsDays ? requests.map(\.place.timezone).joined(separator: ",") : "GMT"))
    var days = 1
    if let first = requests.first, sections.contains(where: { $0.0 != "current" }) {
      let (start, end) = Self.range(first, today: today)
      items += [("start_date", start.description), ("end_date", end.description)]
      days = start.days(until: end) + 1
    }
    items += metric.map { unit in
      switch unit {
      case "celsius": ("temperature_unit", unit)
      case "kmh": ("wind_speed_unit", unit)
      case "mm": ("precipitation_unit", unit)
      default: ("length_unit", unit)
      }
    }
    url = servers.url(server, path, items)
    let tens = Double(sections.map(\.1.count).reduce(0, +)) / 10
    weight = Double(requests.count) * max(1, tens, tens * Double(days) / 14)
  }

  /// Returns the days to request: one more at both ends holds the wanted days of every zone; the service refuses more than 16.
  private static func range(_ request: ProviderRequest, today: LocalDay) -> (LocalDay, LocalDay) {
    let (start, end) = (request.day.advanced(by: -1), request.day.advanced(by: request.days))
    return (start, max(min(end, today.advanced(by: 15)), request.day))
  }
}
