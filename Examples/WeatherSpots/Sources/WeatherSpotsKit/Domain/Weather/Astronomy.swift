// Astronomy/ computes when Sun and Moon rise and set at a place on a day, on this machine: nothing here is fetched or stored.
// Positions are those of Meeus, Astronomical Algorithms, chapters 22, 25 and 47; EclipticPosition has them, SunSeries and MoonSeries their
// tables. Ephemeris holds a day of them, Observer looks at them from a place, Crossings finds the moments.
// Invariant: a day is [start, end) of the place's own zone, and what does not happen in it is absent, never a value of another day.
// Called by the astronomy command and the forecast's card.

public import Foundation

/// Sun and Moon at a place, on one day of its zone.
///
/// Every moment lies in the local civil day, from its first instant to before the next day's; what happens twice is there twice, and what
/// does not happen is absent. The observer is at sea level with a flat horizon. Between 1900 and 2100, moments of the Sun are within a few
/// seconds, moments of the Moon within half a minute, where the body does not graze the horizon. Costs a fifth of a millisecond.
public struct Astronomy: Hashable, Sendable {
  /// Where.
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
    let (start, end) = (interval.start.timeIntervalSince1970, interval.end.timeIntervalSince1970)
    let sky = Sky(Observer(coordinate), Ephemeris(from: start - 7200, to: end + 7200), start..<end)
    sun = SunDay(sky)
    moon = MoonDay(sky, sampledAt: day.noon(in: zone))
  }
}

/// What the horizon sees of a body in a day.
public enum HorizonState: String, Hashable, Sendable, Codable {
  /// It rises and sets; which comes first is not said, and either may happen twice.
  case risesAndSets = "rises_and_sets"
  /// It rises and is still up when the day ends.
  case risesOnly = "rises_only"
  /// It is up when the day begins, and sets for the rest of it.
  case setsOnly = "sets_only"
  /// It is above the horizon all day.
  case alwaysUp = "always_up"
  /// It is below the horizon all day.
  case alwaysDown = "always_down"

  init(_ crossings: Crossings, isUp: Bool) {
    switch (crossings.upward.isEmpty, crossings.downward.isEmpty) {
    case (false, false): self = .risesAndSets
    case (false, true): self = .risesOnly
    case (true, false): self = .setsOnly
    case (true, true): self = isUp ? .alwaysUp : .alwaysDown
    }
  }
}

/// One day's sky over one observer.
struct Sky {
  let observer: Observer
  let ephemeris: Ephemeris
  /// The day, in seconds since 1970.
  let span: Range<Double>

  init(_ observer: Observer, _ ephemeris: Ephemeris, _ span: Range<Double>) {
    self.observer = observer
    self.ephemeris = ephemeris
    self.span = span
  }

  /// The moments at which a body passes the upper meridian, and the lower one.
  func transits(_ body: @escaping (Double) -> SIMD3<Double>) -> (upper: [Date], lower: [Date]) {
    // Hour angles only grow, so that an hour's step misses nothing.
    let upper = Samples(in: span, every: 3600) { observer.hourAngle(of: body($0)) }
    let lower = Samples(in: span, every: 3600) { seconds in
      let angle = observer.hourAngle(of: body(seconds))
      return angle < 0 ? angle + 180 : angle - 180
    }
    return (Crossings(of: upper).upward, Crossings(of: lower).upward)
  }
}
