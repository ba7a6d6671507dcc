public import Foundation

/// The Sun's rises, sets, noon and twilights of one day.
public struct SunDay: Hashable, Sendable {
  /// Altitudes of the Sun's centre that define sunrise and the twilights, in degrees without refraction.
  enum Height {
    /// Altitude at which the upper limb touches the horizon: 34 minutes of arc of refraction and 16 of the Sun's radius.
    static let horizon = -0.8333
    static let civil = -6.0
    static let nautical = -12.0
    static let astronomical = -18.0
  }

  /// Dawns and dusks of one kind of twilight.
  public struct Twilight: Hashable, Sendable {
    /// Instants at which the morning twilight begins, in order.
    public let dawns: [Date]
    /// Instants at which the evening twilight ends, in order.
    public let dusks: [Date]
  }

  /// Whether the Sun rises, sets, or stays on one side of the horizon.
  public let state: HorizonState
  /// Sunrises of the day, in order.
  public let rises: [Date]
  /// Sunsets of the day, in order.
  public let sets: [Date]
  /// Solar noon, when the Sun passes the upper meridian, or `nil` if the day has none.
  ///
  /// A skipped day has none. A place whose solar noon is close to the zone's midnight can have other days without one.
  public let noon: Date?
  /// Civil twilight, with the Sun down to 6 degrees below the horizon.
  public let civil: Twilight
  /// Nautical twilight, with the Sun down to 12 degrees below the horizon.
  public let nautical: Twilight
  /// Astronomical twilight, with the Sun down to 18 degrees below the horizon.
  public let astronomical: Twilight
  /// Lowest and highest altitude of the Sun's centre in the day, in degrees without refraction.
  public let altitudeDegrees: ClosedRange<Double>
  /// Number of seconds by which the most sensitive rise or set moves if the Sun stands 0.01 degrees higher, or `nil` without any.
  ///
  /// A few seconds at middle latitudes, minutes where the Sun grazes the horizon and refraction decides.
  public let sensitivitySeconds: Double?

  /// Computes the Sun's events in the span of a sky.
  public init(_ sky: Sky) {
    // Sampled once for the horizon and all three twilights, since altitudes are the costly part.
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
    // The last event before the instant decides. Before the first event of the day, the Sun is on the other side of it.
    if let last = events.last(where: { $0.0 <= instant }) { return last.1 }
    if let next = events.first { return !next.1 }
    return state == .alwaysUp
  }
}
