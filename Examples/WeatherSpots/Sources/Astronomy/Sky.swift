// Astronomy/ computes the instants at which Sun and Moon rise and set over a place. The target fetches, stores and shows no data.
// Positions follow Meeus, Astronomical Algorithms, chapters 22, 25 and 47. EclipticPosition computes them from the tables in SunSeries
// and MoonSeries. Ephemeris holds one day of them, Observer turns them into altitudes, Crossings finds the instants.
// Invariant: the span is half-open. An event outside it is absent and never replaced by one of another day.
// Called by `Astronomy` in WeatherSpotsKit, which adds civil days and time zones.

public import Foundation

/// Positions of Sun and Moon over one observer during a span of time, usually a civil day.
///
/// Create one, and pass it to ``SunDay`` and ``MoonDay``.
///
/// Cost: the theories are evaluated at eleven instants. All positions between those are interpolated.
public struct Sky {
  let observer: Observer
  let ephemeris: Ephemeris
  /// Span of time, in seconds since 1970.
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
    // Two hours more on both sides: samples reach up to two hours past the span, and extrapolation would be wrong there.
    ephemeris = Ephemeris(from: start - 7200, to: end + 7200)
    span = start..<end
  }

  /// Returns the instants at which a body passes the upper and the lower meridian.
  func transits(_ body: @escaping (Double) -> SIMD3<Double>) -> (upper: [Date], lower: [Date]) {
    // Hour angles only grow, so samples an hour apart miss no transit. The jump from 180 to -180 is a downward crossing, so only the
    // upward ones are transits.
    let upper = Samples(in: span, every: 3600) { observer.hourAngle(of: body($0)) }
    let lower = Samples(in: span, every: 3600) { seconds in
      let angle = observer.hourAngle(of: body(seconds))
      return angle < 0 ? angle + 180 : angle - 180
    }
    return (Crossings(of: upper).upward, Crossings(of: lower).upward)
  }
}
