/// A recipient of the warnings at a place.
public struct Watcher: Hashable, Identifiable, Sendable {
  /// The id, the same in every run: together with a warning and its revision it identifies one notice.
  public let id: String
  /// The watched point.
  public let coordinate: Coordinate
  /// The ISO 3166 code of the country, or nothing; warnings are a country's.
  public let country: String
  /// The IANA name of the zone.
  public let timezone: String
  /// The name of the sink that notices for it go to.
  public let sink: String
  /// The name of the place in notices.
  public let place: String

  /// Makes a watcher.
  public init(id: String, place: String, at coordinate: Coordinate, timezone: String, country: String = "", sink: String) {
    self.id = id
    self.place = place
    self.coordinate = coordinate
    self.timezone = timezone
    self.country = country
    self.sink = sink
  }

  /// Makes the watcher of a spot for a sink: there is one for each pair.
  public init(_ spot: Spot, sink: String) {
    self.init(
      id: "\(sink) \(spot.id)", place: spot.name, at: spot.coordinate, timezone: spot.timezone, country: spot.country, sink: sink)
  }
}
