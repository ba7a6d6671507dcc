public import Foundation

/// The Moon's moments of a day, and its face.
public struct MoonDay: Hashable, Sendable {
  /// Whether it rises and sets.
  public let state: HorizonState
  /// The moonrises (of the upper limb), in order.
  public let rises: [Date]
  /// The moonsets (of the upper limb), in order.
  public let sets: [Date]
  /// By how many seconds moonrise or moonset, whichever is worse, moves when the Moon stands 0.01 degrees higher; `nil` without either.
  public let sensitivitySeconds: Double?
  /// The upper transits, in order; about one day in 29 has none.
  public let upperTransits: [Date]
  /// The lower transits, in order; about one day in 29 has none.
  public let lowerTransits: [Date]
  /// The instant of the next four values: 12:00 by the zone's clocks.
  public let sampledAt: Date
  /// The lit part of the disc, 0 to 1, seen from the centre of the Earth.
  public let illuminatedFraction: Double
  /// The angle at the Moon between Sun and Earth, in degrees: 0 when full, 180 when new.
  public let phaseAngleDegrees: Double
  /// The longitude of the Moon ahead of the Sun, in degrees: 0 new, 90 first quarter, 180 full, 270 third quarter.
  public let elongationDegrees: Double
  /// The name of the phase on this day.
  public let phase: MoonPhase

  /// Degrees by which refraction at the horizon lifts the limb: 34 minutes of arc.
  private static let refraction = 34.0 / 60
  /// The Moon's radius, in kilometres.
  private static let radius = 1737.4

  /// Computes the moments of a span, and the face at an instant.
  public init(_ sky: Sky, sampledAt noon: Date) {
    func body(_ seconds: Double) -> SIMD3<Double> { sky.ephemeris.moonFixedToEarth(at: seconds) }
    /// Returns how far the upper limb is above the horizon, as seen through the air.
    func limb(_ seconds: Double) -> Double {
      let center = sky.observer.altitude(of: body(seconds))
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
    phase = MoonPhase(
      from: MoonFace(unix: sky.span.lowerBound).elongationDegrees, to: MoonFace(unix: sky.span.upperBound).elongationDegrees)
  }
}

/// The illumination of the Moon at an instant, seen from the centre of the Earth (Meeus, chapter 48).
struct MoonFace {
  let illuminatedFraction: Double
  let phaseAngleDegrees: Double
  let elongationDegrees: Double

  init(unix seconds: Double) {
    let time = AstronomicalTime(unix: seconds)
    let nutation = Nutation(time)
    let (sun, moon) = (EclipticPosition.sun(time, nutation), EclipticPosition.moon(time, nutation))
    let toEarth = -moon.equatorial(obliquity: 0)
    let toSun = sun.equatorial(obliquity: 0) + toEarth
    let angle = acos(min(1, max(-1, (toEarth * toSun).sum() / (toEarth.length * toSun.length))))
    phaseAngleDegrees = angle.degrees
    illuminatedFraction = (1 + cos(angle)) / 2
    elongationDegrees = (moon.longitude - sun.longitude).turned
  }
}
