import Foundation

/// A request for the hours of a place, checked as the service checks it.
struct Request {
  private let latitude: Double
  private let longitude: Double
  private let variables: [String]
  private let zone: TimeZone
  private let offset: Int
  /// The first and the last day, counted from 1970 in the answer's own time.
  private let days: ClosedRange<Int>

  init(_ query: [String: String], at now: Date) throws(Refusal) {
    guard let latitude = query["latitude"].flatMap(Double.init), let longitude = query["longitude"].flatMap(Double.init) else {
      throw Refusal(reason: "Parameter 'latitude' and 'longitude' must have the same number of elements")
    }
    guard (-90...90).contains(latitude) else { throw Refusal(reason: "Latitude must be in range of -90 to 90°. Given: \(latitude).") }
    guard (-180...180).contains(longitude) else {
      throw Refusal(reason: "Longitude must be in range of -180 to 180°. Given: \(longitude).")
    }
    guard let zone = TimeZone(identifier: query["timezone"] ?? "GMT") else { throw Refusal(reason: "Invalid timezone") }
    for (name, metric) in [
      ("temperature_unit", "celsius"), ("wind_speed_unit", "kmh"), ("precipitation_unit", "mm"), ("length_unit", "metric"),
    ] where query[name] != nil && query[name] != metric {
      throw Refusal(reason: "The stand-in server answers in metric units only.")
    }
    self.latitude = latitude
    self.longitude = longitude
    self.zone = zone
    variables = (query["hourly"] ?? "").split(separator: ",").map(String.init)
    // The service applies the offset of the moment of the request to every row.
    offset = zone.secondsFromGMT(for: now)
    days = try Self.days(query, today: Int(((now.timeIntervalSince1970 + Double(offset)) / 86400).rounded(.down)))
  }

  private static func days(_ query: [String: String], today: Int) throws(Refusal) -> ClosedRange<Int> {
    guard let start = query["start_date"], let end = query["end_date"] else {
      let count = query["forecast_days"].flatMap(Int.init) ?? 7
      guard (1...16).contains(count) else { throw Refusal(reason: "Forecast days is invalid. Allowed range 0 to 16. Given \(count).") }
      return today...(today + count - 1)
    }
    guard let first = day(start), let last = day(end), first <= last, last - first < 32 else { throw Refusal(reason: "Invalid date") }
    return first...last
  }

  private static func day(_ text: String) -> Int? {
    guard text.utf8.count == 10 else { return nil }
    do {
      return Int((try Date("\(text)T00:00:00Z", strategy: .iso8601).timeIntervalSince1970 / 86400).rounded(.down))
    } catch { return nil }
  }

  /// The row of a recording to show at an instant, given in seconds since 1970.
  func index(at instant: Int, of count: Int) -> Int {
    let solarHours = Int((Double(instant) / 3600 + longitude / 15).rounded(.down))
    let place = Int((latitude + 90).rounded(.down)) + Int((longitude + 180).rounded(.down))
    return ((solarHours + 24 * place) % count + count) % count
  }

  func body(_ recording: Recording) throws(Refusal) -> String {
    let labels = days.flatMap { day in (0..<24).map { day * 86400 + $0 * 3600 } }
    let instants = labels.map { $0 - offset }
    let times = labels.map { "\"" + Date(timeIntervalSince1970: Double($0)).formatted(.iso8601).prefix(16) + "\"" }
    var units = [#""time":"iso8601""#]
    var columns = ["\"time\":[\(times.joined(separator: ","))]"]
    for name in variables {
      let column = try recording.values(name, self, instants)
      units.append("\"\(name)\":\"\(column.unit)\"")
      columns.append("\"\(name)\":[\(column.values.joined(separator: ","))]")
    }
    let head =
      "\"latitude\":\(latitude),\"longitude\":\(longitude),\"generationtime_ms\":0.1,\"utc_offset_seconds\":\(offset),"
      + "\"timezone\":\"\(zone.identifier)\",\"timezone_abbreviation\":\"\(zone.abbreviation() ?? "GMT")\",\"elevation\":0.0"
    guard !variables.isEmpty else { return "{\(head)}" }
    return "{\(head),\"hourly_units\":{\(units.joined(separator: ","))},\"hourly\":{\(columns.joined(separator: ","))}}"
  }
}
