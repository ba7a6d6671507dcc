import Foundation

/// A request for the weather of one place, validated with the service's rules.
struct Request {
  private let latitude: Double
  private let longitude: Double
  private let current: [String]
  private let hourly: [String]
  private let daily: [String]
  private let index: Int
  private let now: Int
  private let zone: TimeZone
  private let offset: Int
  /// First and last day, counted from 1970 in the answer's local time.
  private let days: ClosedRange<Int>

  init(_ query: [String: String], at now: Date, index: Int) throws(Refusal) {
    guard let latitude = query["latitude"].flatMap(Double.init), let longitude = query["longitude"].flatMap(Double.init) else {
      throw Refusal(reason: "Parameter 'latitude' and 'longitude' must have the same number of elements")
    }
    guard (-90...90).contains(latitude) else { throw Refusal(reason: "Latitude must be in range of -90 to 90°. Given: \(latitude).") }
    guard (-180...180).contains(longitude) else {
      throw Refusal(reason: "Longitude must be in range of -180 to 180°. Given: \(longitude).")
    }
    // "auto" needs a map of time zones. The zone of solar time is close enough for a recording.
    let name = query["timezone"] ?? "GMT"
    let hours = Int((longitude / 15).rounded())
    // Names of these zones have the sign of POSIX: Etc/GMT-2 is two hours ahead of GMT.
    let auto = hours == 0 ? "GMT" : "Etc/GMT\(hours > 0 ? "-" : "+")\(abs(hours))"
    guard let zone = TimeZone(identifier: name == "auto" ? auto : name) else { throw Refusal(reason: "Invalid timezone") }
    for (name, metric) in [
      ("temperature_unit", "celsius"), ("wind_speed_unit", "kmh"), ("precipitation_unit", "mm"), ("length_unit", "metric"),
    ] where query[name] != nil && query[name] != metric {
      throw Refusal(reason: "The stand-in server answers in metric units only.")
    }
    self.latitude = latitude
    self.longitude = longitude
    self.zone = zone
    func variables(_ section: String) -> [String] { (query[section] ?? "").split(separator: ",").map(String.init) }
    (current, hourly, daily) = (variables("current"), variables("hourly"), variables("daily"))
    self.index = index
    self.now = Int(now.timeIntervalSince1970.rounded(.down))
    // The service applies the offset at the time of the request to every row, also across a change of the clock.
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
    // A date of another length, such as one with a time, is invalid at the service.
    guard text.utf8.count == 10 else { return nil }
    do {
      return Int((try Date("\(text)T00:00:00Z", strategy: .iso8601).timeIntervalSince1970 / 86400).rounded(.down))
    } catch { return nil }
  }

  /// Returns the index of the recorded hour for an instant in seconds since 1970.
  func index(at instant: Int, of count: Int) -> Int {
    let solarHours = Int((Double(instant) / 3600 + longitude / 15).rounded(.down))
    let place = Int((latitude + 90).rounded(.down)) + Int((longitude + 180).rounded(.down))
    // A remainder is negative for instants before 1970, so it is brought back into the recording.
    return ((solarHours + 24 * place) % count + count) % count
  }

  func body(_ recording: Recording) throws(Refusal) -> String {
    var parts = [
      "\"latitude\":\(latitude)", "\"longitude\":\(longitude)", "\"generationtime_ms\":0.1", "\"utc_offset_seconds\":\(offset)",
      "\"timezone\":\"\(zone.identifier)\"", "\"timezone_abbreviation\":\"\(zone.abbreviation() ?? "GMT")\"", "\"elevation\":0.0",
    ]
    // The service leaves the number out for the first place.
    if index > 0 { parts.append("\"location_id\":\(index)") }
    if !current.isEmpty {
      // The service gives current conditions for steps of 15 minutes.
      let instant = now - now % 900
      parts.append(
        try section("current", current, [Self.label(instant + offset, 16)], isMoment: true) { name throws(Refusal) in
          try recording.values(name, self, [instant])
        })
    }
    if !hourly.isEmpty {
      let labels = days.flatMap { day in (0..<24).map { day * 86400 + $0 * 3600 } }
      parts.append(
        try section("hourly", hourly, labels.map { Self.label($0, 16) }) { name throws(Refusal) in
          try recording.values(name, self, labels.map { $0 - offset })
        })
    }
    if !daily.isEmpty {
      let labels = days.map { $0 * 86400 }
      parts.append(
        try section("daily", daily, labels.map { Self.label($0, 10) }) { name throws(Refusal) in
          try recording.values(ofDays: name, self, labels.map { $0 - offset })
        })
    }
    return "{\(parts.joined(separator: ","))}"
  }

  /// Returns a section of the answer with a column for each name.
  ///
  /// A column is a list, or a single value if `isMoment` is true.
  private func section(
    _ section: String, _ names: [String], _ labels: [String], isMoment: Bool = false,
    _ column: (String) throws(Refusal) -> (unit: String, values: [String])
  ) throws(Refusal) -> String {
    func written(_ values: [String]) -> String { isMoment ? values.first ?? "null" : "[\(values.joined(separator: ","))]" }
    var units = [#""time":"iso8601""#]
    var columns = ["\"time\":\(written(labels.map { "\"\($0)\"" }))"]
    if isMoment {
      units.append(#""interval":"seconds""#)
      columns.append("\"interval\":900")
    }
    for name in names {
      let column = try column(name)
      units.append("\"\(name)\":\"\(column.unit)\"")
      columns.append("\"\(name)\":\(written(column.values))")
    }
    return "\"\(section)_units\":{\(units.joined(separator: ","))},\"\(section)\":{\(columns.joined(separator: ","))}"
  }

  private static func label(_ local: Int, _ length: Int) -> String {
    String(Date(timeIntervalSince1970: Double(local)).formatted(.iso8601).prefix(length))
  }
}
