/// An instant in Terrestrial Time, the uniform time scale of the theories of Sun and Moon.
struct AstronomicalTime {
  /// Julian centuries of Terrestrial Time since 2000-01-01 12:00 TT.
  let centuries: Double

  /// Creates an instant from seconds since 1970-01-01 00:00 UTC.
  ///
  /// UTC is used as Universal Time. The two differ by less than a second.
  init(unix seconds: Double) {
    let days = (seconds - 946_728_000) / 86_400
    centuries = (days + Self.deltaT(year: 2000 + days / 365.25) / 86_400) / 36_525
  }

  /// Creates an instant from a Julian day in Terrestrial Time, the form of the examples in Meeus, Astronomical Algorithms.
  init(julianDayTT day: Double) { centuries = (day - 2_451_545) / 36_525 }

  /// Returns ΔT, the seconds by which Terrestrial Time is ahead of Universal Time (Meeus, chapter 10).
  ///
  /// From 1900 on, ΔT is interpolated from observed values every ten years, within a second. After the last value, that value is used,
  /// because the future rotation of the Earth is unknown. An error of ten seconds moves a moonrise by half a second. Before 1900, ΔT is
  /// the parabola of Morrison and Stephenson.
  static func deltaT(year: Double) -> Double {
    guard year >= 1900 else { return -20 + 32 * ((year - 1820) / 100) * ((year - 1820) / 100) }
    let position = (year - 1900) / 10
    // `min` comes first: converting the position of a very late year to `Int` would trap.
    let index = Int(min(position, Double(observed.count - 1)))
    guard index + 1 < observed.count else { return observed[observed.count - 1] }
    return observed[index] + (observed[index + 1] - observed[index]) * (position - Double(index))
  }

  private static let observed = [-2.7, 10.5, 21.2, 24.0, 24.3, 29.1, 33.2, 40.2, 50.5, 56.9, 63.8, 66.1, 69.4, 69.1]

  /// Returns Greenwich mean sidereal time in radians at an instant in seconds since 1970 UTC (Meeus, formula 12.4).
  static func meanSiderealTime(unix seconds: Double) -> Double {
    let days = (seconds - 946_728_000) / 86_400
    // Sidereal time follows the rotation of the Earth, so it is computed from Universal Time without ΔT.
    let t = days / 36_525
    let degrees = 280.460_618_37 + 360.985_647_366_29 * days + t * t * (0.000_387_933 - t / 38_710_000)
    return degrees.truncatingRemainder(dividingBy: 360).radians
  }
}

extension Double {
  /// The angle in radians, converted from degrees.
  var radians: Double { self * .pi / 180 }
  /// The angle in degrees, converted from radians.
  var degrees: Double { self * 180 / .pi }
  /// The angle in degrees, reduced to 0 ..< 360.
  var turned: Double {
    // A remainder has the sign of the dividend.
    let rest = truncatingRemainder(dividingBy: 360)
    return rest < 0 ? rest + 360 : rest
  }
}
