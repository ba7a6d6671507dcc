import Foundation

/// URL of a request to Open-Meteo for one or several places, with its weight in the quota.
struct OpenMeteoQuery {
  let url: URL
  let weight: Double

  /// Creates the query for requests that differ only in their places.
  init(
    _ servers: OpenMeteoServers, _ server: URL, _ path: String, _ requests: [ProviderRequest], sections: [(String, [String])],
    today: LocalDay, metric: [(String, String)]
  ) {
    // The centre of the cell and not the point: the answer is cached for the whole cell.
    let centers = requests.map(\.place.cell.center)
    var items = [
      ("latitude", centers.map { $0.latitude.text(decimals: 5) }.joined(separator: ",")),
      ("longitude", centers.map { $0.longitude.text(decimals: 5) }.joined(separator: ",")),
    ]
    items += sections.map { ($0.0, $0.1.joined(separator: ",")) }
    let needsDays = sections.contains { $0.0 == "daily" }
    // Daily sums are made over the days of the place's own zone. Hours are requested in GMT, where no clock change repeats a label.
    items.append(("timezone", needsDays ? requests.map(\.place.timezone).joined(separator: ",") : "GMT"))
    var days = 1
    // Current conditions have no range of days.
    if let first = requests.first, sections.contains(where: { $0.0 != "current" }) {
      let (start, end) = Self.range(first, today: today)
      items += [("start_date", start.description), ("end_date", end.description)]
      days = start.days(until: end) + 1
    }
    url = servers.url(server, path, items + metric)
    // Open-Meteo's rule for weights: at least one call, more from ten variables and two weeks on.
    let tens = Double(sections.map(\.1.count).reduce(0, +)) / 10
    weight = Double(requests.count) * max(1, tens, tens * Double(days) / 14)
  }

  /// Returns the first and last day to request, with one extra day at both ends.
  ///
  /// The extra days cover the wanted days in every time zone. The end is capped because the service refuses days after the sixteenth.
  private static func range(_ request: ProviderRequest, today: LocalDay) -> (LocalDay, LocalDay) {
    let (start, end) = (request.day.advanced(by: -1), request.day.advanced(by: request.days))
    // `max`: for a day beyond the cap the end would lie before the start. The service then refuses the day itself.
    return (start, max(min(end, today.advanced(by: 15)), request.day))
  }
}
