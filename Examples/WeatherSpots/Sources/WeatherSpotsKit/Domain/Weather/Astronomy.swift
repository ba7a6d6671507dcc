public import Astronomy
public import Foundation

/// The events of Sun and Moon at a place, such as rise and set, for one day of its time zone.
///
/// Every event lies in the local civil day, from its first instant to before the next day's. An event that happens twice is listed twice,
/// and one that does not happen is absent. The observer is at sea level with a flat horizon. Between 1900 and 2100, events of the Sun are
/// exact to a few seconds and those of the Moon to half a minute, unless the body grazes the horizon. Costs a fifth of a millisecond.
public struct Astronomy: Hashable, Sendable {
  /// Position of the observer.
  public let coordinate: Coordinate
  /// Calendar day of the events.
  public let day: LocalDay
  /// Time zone of the day.
  public let zone: TimeZone
  /// Interval from the day's first instant to the first instant of the next day.
  public let interval: DateInterval
  /// Events of the Sun.
  public let sun: SunDay
  /// Events of the Moon.
  public let moon: MoonDay

  /// Computes the events of one day.
  public init(at coordinate: Coordinate, on day: LocalDay, in zone: TimeZone) {
    self.coordinate = coordinate
    self.day = day
    self.zone = zone
    interval = day.interval(in: zone)
    let sky = Sky(latitude: coordinate.latitude, longitude: coordinate.longitude, during: interval)
    sun = SunDay(sky)
    moon = MoonDay(sky, sampledAt: day.noon(in: zone))
  }
}
