/// A recipient of the weather warnings at one place.
public struct Watcher: Hashable, Identifiable, Sendable {
  /// Id that is the same in every run.
  ///
  /// Together with a warning and its revision it identifies one notice.
  public let id: String
  /// Name of the place in notices.
  public let place: String
  /// Watched point.
  public let coordinate: Coordinate
  /// ISO 3166 code of the country, or an empty string.
  ///
  /// Warnings are issued for a country.
  public let country: String
  /// IANA name of the time zone.
  public let timezone: String
  /// Name of the sink that delivers the watcher's notices.
  public let sink: String
}

extension Watcher {
  /// Makes the watcher for a spot and a sink.
  ///
  /// Each pair has one watcher.
  public init(_ spot: Spot, sink: String) {
    self.init(
      // The sink is part of the id, so that each sink gets its own notice of a warning.
      id: "\(sink) \(spot.id)", place: spot.name, coordinate: spot.coordinate, country: spot.country, timezone: spot.timezone, sink: sink)
  }
}
