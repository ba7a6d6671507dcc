public import Foundation

/// The Moon's rises, sets, transits and phase of one day.
public struct MoonDay: Hashable, Sendable {
  /// Whether the Moon rises, sets, or stays on one side of the horizon.
  public let state: HorizonState
  /// Moonrises of the day (of the upper limb), in order.
  public let rises: [Date]
  /// Moonsets of the day (of the upper limb), in order.
  public let sets: [Date]
  /// Number of seconds by which the most sensitive rise or set moves if the Moon stands 0.01 degrees higher, or `nil` without any.
  public let sensitivitySeconds: Double?
  /// Upper transits (highest positions), in order.
  ///
  /// About one day in 29 has none.
  public let upperTransits: [Date]
  /// Lower transits (lowest positions), in order.
  ///
  /// About one day in 29 has none.
  public let lowerTransits: [Date]
  /// Instant of ``illuminatedFraction``, ``phaseAngleDegrees`` and ``elongationDegrees``, which is 12:00 by the zone's clocks.
  public let sampledAt: Date
  /// Lit part of the disc, 0 to 1, seen from the centre of the Earth.
  public let illuminatedFraction: Double
  /// Angle at the Moon between Sun and Earth, in degrees, 0 at full moon and 180 at new moon.
  public let phaseAngleDegrees: Double
  /// Longitude of the Moon minus that of the Sun, in degrees: 0 new, 90 first quarter, 180 full, 270 third quarter.
  public let elongationDegrees: Double
  /// Phase of the Moon on this day.
  public let phase: MoonPhase

  /// Refraction at the horizon in degrees, which lifts the limb by 34 minutes of arc.
  private static let refraction = 34.0 / 60
  /// Radius of the Moon, in kilometres.
  private static let radius = 1737.4

  /// Computes the Moon's events in the span of a sky, and its illumination at an instant.
  public init(_ sky: Sky, sampledAt noon: Date) {
    func body(_ seconds: Double) -> SIMD3<Double> { sky.ephemeris.moonFixedToEarth(at: seconds) }
    /// Returns the altitude of the upper limb in degrees, with refraction.
    func limb(_ seconds: Double) -> Double {
      let center = sky.observer.altitude(of: body(seconds))
      // The Moon's apparent radius varies by over a tenth with its distance, so no constant height of the centre would do.
      return center.degrees + asin(Self.radius / center.kilometers).degrees + Self.refraction
    }
    let horizon = Crossings(of: Samples(in: sky.span, of: limb))
    state = HorizonState(horizon, isUp: limb(sky.span.lowerBound) >= 0)
    (rises, sets, sensitivitySeconds) = (horizon.upward, horizon.downward, horizon.sensitivity)
    (upperTransits, lowerTransits) = sky.transits(body)

    let face = MoonFace(unix: noon.timeIntervalSince1970)
    sampledAt = noon
    illuminatedFraction = face.illuminatedFraction
    phaseAngleDegrees = face.phaseAngleDegrees
    elongationDegrees = face.elongationDegrees
    // Both ends of the day, because a quarter names the day that contains its instant, which the values at noon do not show.
    phase = MoonPhase(
      from: MoonFace(unix: sky.span.lowerBound).elongationDegrees, to: MoonFace(unix: sky.span.upperBound).elongationDegrees)
  }
}

/// Illumination of the Moon at an instant, seen from the centre of the Earth (Meeus, chapter 48).
struct MoonFace {
  let illuminatedFraction: Double
  let phaseAngleDegrees: Double
  let elongationDegrees: Double

  init(unix seconds: Double) {
    let time = AstronomicalTime(unix: seconds)
    let nutation = Nutation(time)
    let (sun, moon) = (EclipticPosition.sun(time, nutation), EclipticPosition.moon(time, nutation))
    // The angle of two vectors is the same in every frame, so both stay in ecliptic axes.
    let toEarth = -moon.equatorial(obliquity: 0)
    let toSun = sun.equatorial(obliquity: 0) + toEarth
    // Rounding can push a cosine past 1, for which `acos` returns NaN.
    let angle = acos(min(1, max(-1, (toEarth * toSun).sum() / (toEarth.length * toSun.length))))
    phaseAngleDegrees = angle.degrees
    illuminatedFraction = (1 + cos(angle)) / 2
    elongationDegrees = (moon.longitude - sun.longitude).turned
  }
}
