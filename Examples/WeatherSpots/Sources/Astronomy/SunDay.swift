public import Foundation

/// The Sun's moments of a day.
public struct SunDay: Hashable, Sendable {
  /// The heights of the Sun's centre that have names, in degrees, as seen without refraction.
  enum Height {
    /// Half a degree of refraction and the Sun's radius: the upper limb touches the horizon.
    static let horizon = -0.8333
    static let civil = -6.0
    static let nautical = -12.0
    static let astronomical = -18.0
  }

  /// The instants at which the Sun passes some depth below the horizon, in the morning and in the evening.
  public struct Twilight: Hashable, Sendable {
    /// The beginnings of the morning's, in order.
    public let dawns: [Date]
    /// The ends of the evening's, in order.
    public let dusks: [Date]
  }

  /// Whether it rises and sets.
  public let state: HorizonState
  /// The sunrises, in order.
  public let rises: [Date]
  /// The sunsets, in order.
  public let sets: [Date]
  /// The instant at which the Sun passes the upper meridian; absent on some days near the ends of a zone.
  public let noon: Date?
  /// Down to 6 degrees below the horizon.
  public let civil: Twilight
  /// Down to 12 degrees.
  public let nautical: Twilight
  /// Down to 18 degrees.
  public let astronomical: Twilight
  /// The lowest and highest altitude of the Sun's centre in the day, in degrees, without refraction.
  public let altitudeDegrees: ClosedRange<Double>
  /// By how many seconds sunrise or sunset, whichever is worse, moves when the Sun stands 0.01 degrees higher; `nil` without either.
  ///
  /// Some ten seconds at middle latitudes, minutes where the Sun grazes the horizon and the air decides.
  public let sensitivitySeconds: Double?

  /// Computes the moments of a span.
  public init(_ sky: Sky) {
    let altitude = Samples(in: sky.span) { sky.observer.altitude(of: sky.ephemeris.sunFixedToEarth(at: $0)).degrees }
    func twilight(_ height: Double) -> Twilight {
      let crossings = Crossings(of: altitude, at: height)
      return Twilight(dawns: crossings.upward, dusks: crossings.downward)
    }
    let horizon = Crossings(of: altitude, at: Height.horizon)
    state = HorizonState(horizon, isUp: altitude.quantity(sky.span.lowerBound) >= Height.horizon)
    (rises, sets, sensitivitySeconds) = (horizon.upward, horizon.downward, horizon.sensitivity)
    noon = sky.transits { sky.ephemeris.sunFixedToEarth(at: $0) }.upper.first
    civil = twilight(Height.civil)
    nautical = twilight(Height.nautical)
    astronomical = twilight(Height.astronomical)
    altitudeDegrees = altitude.range
  }

  /// Returns whether the Sun's upper limb is above the horizon at an instant of the day.
  public func isUp(at instant: Date) -> Bool {
    let events = (rises.map { ($0, true) } + sets.map { ($0, false) }).sorted { $0.0 < $1.0 }
    // As the last event before the instant has left it, or as the first one after it will find it.
    if let last = events.last(where: { $0.0 <= instant }) { return last.1 }
    if let next = events.first { return !next.1 }
    return state == .alwaysUp
  }
}
