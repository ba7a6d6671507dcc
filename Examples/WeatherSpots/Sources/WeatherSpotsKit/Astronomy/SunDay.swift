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

  /// When the Sun rises through some depth below the horizon in the morning, and sinks through it in the evening.
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
  /// When the Sun passes the upper meridian; absent on some days near the ends of a zone.
  public let noon: Date?
  /// Down to 6 degrees below the horizon.
  public let civil: Twilight
  /// Down to 12 degrees.
  public let nautical: Twilight
  /// Down to 18 degrees.
  public let astronomical: Twilight
  /// The lowest and highest altitude of the Sun's centre in the day, in degrees, without refraction.
  public let altitudeDegrees: ClosedRange<Double>

  init(_ sky: Sky) {
    func altitude(_ seconds: Double) -> Double { sky.observer.altitude(of: sky.ephemeris.sunFixedToEarth(at: seconds)).degrees }
    func crossings(_ height: Double) -> Crossings { Crossings(in: sky.span) { altitude($0) - height } }
    func twilight(_ height: Double) -> Twilight {
      let crossings = crossings(height)
      return Twilight(
        dawns: crossings.upward.map(Date.init(timeIntervalSince1970:)), dusks: crossings.downward.map(Date.init(timeIntervalSince1970:)))
    }
    let horizon = crossings(Height.horizon)
    state = HorizonState(horizon, isUp: altitude(sky.span.lowerBound) >= Height.horizon)
    rises = horizon.upward.map(Date.init(timeIntervalSince1970:))
    sets = horizon.downward.map(Date.init(timeIntervalSince1970:))
    noon = sky.transits { sky.ephemeris.sunFixedToEarth(at: $0) }.upper.first
    civil = twilight(Height.civil)
    nautical = twilight(Height.nautical)
    astronomical = twilight(Height.astronomical)
    altitudeDegrees = sky.range(of: altitude)
  }
}
