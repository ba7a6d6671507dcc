public import Foundation

/// What is stored of one place and day: the hours around the day, where they come from, and when.
public struct DayForecast: Codable, Identifiable, Sendable {
  /// A square kilometre and a day of the spot's own zone.
  public struct Key: Hashable, Codable, Sendable {
    /// The square.
    public let cell: Cell
    /// The day.
    public let day: LocalDay

    /// The key of a point and a day.
    public init(_ coordinate: Coordinate, _ day: LocalDay) {
      cell = Cell(coordinate)
      self.day = day
    }
  }

  /// Whether there are waves to show.
  public enum Sea: Codable, Hashable, Sendable {
    /// The hours carry the sea.
    case available
    /// The service knows no sea at this place.
    case noCoverage
    /// The sea could not be fetched; it is tried again after five minutes.
    case unavailable(reason: String)
  }

  /// The place and the day.
  public let id: Key
  /// When it was fetched.
  public let fetchedAt: Date
  /// The host that answered.
  public let server: String
  /// Whether the data were recorded earlier and dated anew, by the stand-in server.
  public let isRecorded: Bool
  /// The hours, in order; more than the day's own, because two zones may share a square.
  public private(set) var hours: [WeatherHour]
  /// The state of the sea.
  public private(set) var sea: Sea

  init(id: Key, fetchedAt: Date, server: String, isRecorded: Bool, hours: [WeatherHour], sea: Sea) {
    self.id = id
    self.fetchedAt = fetchedAt
    self.server = server
    self.isRecorded = isRecorded
    self.hours = hours.sorted { $0.instant < $1.instant }
    self.sea = sea
  }

  /// Puts the sea beside the weather, instant by instant: the two services do not reach equally far.
  mutating func add(_ result: Result<[SeaHour], OpenMeteoError>) {
    switch result {
    case .success(let seaHours):
      let byInstant = Dictionary(seaHours.map { ($0.instant, $0) }, uniquingKeysWith: { first, _ in first })
      for index in hours.indices { hours[index].sea = byInstant[hours[index].instant] }
      sea = seaHours.isEmpty ? .noCoverage : .available
    case .failure(.noCoverage): sea = .noCoverage
    case .failure(let error): sea = .unavailable(reason: error.description)
    }
  }

  /// How long the forecast may be shown without asking again: an hour, or five minutes while the sea is missing.
  var freshFor: TimeInterval {
    if case .unavailable = sea { return 300 }
    return 3600
  }

  /// Whether the forecast is too old to be called fresh; one from the future is, because the clock was set back.
  func isOlder(than limit: TimeInterval, at now: Date) -> Bool {
    let age = now.timeIntervalSince(fetchedAt)
    return age < 0 || age >= limit
  }
}
