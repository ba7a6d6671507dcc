// Astronomy/ computes when Sun and Moon rise and set over a place in a span of time: nothing here is fetched, stored or shown.
// Positions are those of Meeus, Astronomical Algorithms, chapters 22, 25 and 47; EclipticPosition has them, SunSeries and MoonSeries their
// tables. Ephemeris holds a day of them, Observer looks at them from a place, Crossings finds the moments.
// Invariant: the span is half-open, and what does not happen in it is absent, never a value of another day.
// Called by `Astronomy` in WeatherSpotsKit, which knows the civil days and zones that this target does not.

public import Foundation

/// The sky over one observer during a span of time, usually a civil day: what ``SunDay`` and ``MoonDay`` are computed from.
///
/// Cost: the theories are evaluated at eleven instants; everything between those is interpolated.
public struct Sky {
  let observer: Observer
  let ephemeris: Ephemeris
  /// The span, in seconds since 1970.
  let span: Range<Double>

  /// Computes the positions of both bodies for a span of at most some 25 hours.
  ///
  /// - Parameters:
  ///   - latitude: Degrees north, -90 to 90.
  ///   - longitude: Degrees east, -180 to 180.
  ///   - interval: The span, its end excluded.
  public init(latitude: Double, longitude: Double, during interval: DateInterval) {
    let (start, end) = (interval.start.timeIntervalSince1970, interval.end.timeIntervalSince1970)
    observer = Observer(latitude: latitude, longitude: longitude)
    // Two hours more on both sides, so that samples around the span are interpolated and not extrapolated.
    ephemeris = Ephemeris(from: start - 7200, to: end + 7200)
    span = start..<end
  }

  /// Returns the moments at which a body passes the upper meridian, and the lower one.
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
