public import Astronomy
public import Foundation

/// Sun and Moon at a place, on one day of its zone.
///
/// Every moment lies in the local civil day, from its first instant to before the next day's; what happens twice is there twice, and what
/// does not happen is absent. The observer is at sea level with a flat horizon. Between 1900 and 2100, moments of the Sun are within a few
/// seconds, moments of the Moon within half a minute, where the body does not graze the horizon. Costs a fifth of a millisecond.
public struct Astronomy: Hashable, Sendable {
  /// The place.
  public let coordinate: Coordinate
  /// The day.
  public let day: LocalDay
  /// The zone whose day it is.
  public let zone: TimeZone
  /// From the day's first instant to the next day's.
  public let interval: DateInterval
  /// The Sun.
  public let sun: SunDay
  /// The Moon.
  public let moon: MoonDay

  /// Computes a day.
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
