import Foundation

/// An instant in the even time of the theories; beside it, how far the Earth has turned.
struct AstronomicalTime {
  /// Julian centuries of Terrestrial Time since 2000-01-01 12:00 TT.
  let centuries: Double

  /// Makes the instant some seconds after 1970-01-01 00:00 UTC, which is taken for Universal Time: the two never differ by a second.
  init(unix seconds: Double) {
    let days = (seconds - 946_728_000) / 86_400
    centuries = (days + Self.deltaT(year: 2000 + days / 365.25) / 86_400) / 36_525
  }

  /// Makes the instant of a Julian day in Terrestrial Time, as the examples of the book give it.
  init(julianDayTT day: Double) { centuries = (day - 2_451_545) / 36_525 }

  /// Seconds by which Terrestrial Time is ahead of Universal Time (Meeus, chapter 10).
  ///
  /// From 1900 on by observed values every ten years, within a second; after the last one nobody knows, and it is held: ten seconds more
  /// or less move a moonrise by half a second. Before 1900 by the parabola of Morrison and Stephenson.
  static func deltaT(year: Double) -> Double {
    guard year >= 1900 else { return -20 + 32 * ((year - 1820) / 100) * ((year - 1820) / 100) }
    let position = (year - 1900) / 10
    let index = Int(min(position, Double(observed.count - 1)))
    guard index + 1 < observed.count else { return observed[observed.count - 1] }
    return observed[index] + (observed[index + 1] - observed[index]) * (position - Double(index))
  }

  private static let observed = [-2.7, 10.5, 21.2, 24.0, 24.3, 29.1, 33.2, 40.2, 50.5, 56.9, 63.8, 66.1, 69.4, 69.1]

  /// Greenwich mean sidereal time in radians, some seconds after 1970-01-01 00:00 UTC (Meeus, formula 12.4).
  static func meanSiderealTime(unix seconds: Double) -> Double {
    let days = (seconds - 946_728_000) / 86_400
    let t = days / 36_525
    let degrees = 280.460_618_37 + 360.985_647_366_29 * days + t * t * (0.000_387_933 - t / 38_710_000)
    return degrees.truncatingRemainder(dividingBy: 360).radians
  }
}

extension Double {
  /// Degrees as radians.
  var radians: Double { self * .pi / 180 }
  /// Radians as degrees.
  var degrees: Double { self * 180 / .pi }
  /// An angle in degrees, brought into 0 ..< 360.
  var turned: Double {
    let rest = truncatingRemainder(dividingBy: 360)
    return rest < 0 ? rest + 360 : rest
  }
}
