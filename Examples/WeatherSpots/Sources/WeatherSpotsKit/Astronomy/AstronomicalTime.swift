import Foundation

/// An instant in the two scales of astronomy: the even one of the theories, and the Earth's own turning.
struct AstronomicalTime {
  /// Julian centuries of Terrestrial Time since 2000-01-01 12:00 TT.
  let centuries: Double
  /// Days of Universal Time since 2000-01-01 12:00 UT. UTC is taken for it: the two never differ by a second.
  let universalDays: Double

  /// The instant some seconds after 1970-01-01 00:00 UTC.
  init(unix seconds: Double) {
    universalDays = (seconds - 946_728_000) / 86_400
    centuries = (universalDays + Self.deltaT(year: 2000 + universalDays / 365.25) / 86_400) / 36_525
  }

  /// The instant of a Julian day in Terrestrial Time, as the examples of the book give it.
  init(julianDayTT day: Double) {
    centuries = (day - 2_451_545) / 36_525
    universalDays = day - 2_451_545 - Self.deltaT(year: 2000 + (day - 2_451_545) / 365.25) / 86_400
  }

  /// Seconds by which Terrestrial Time is ahead of Universal Time (Meeus, chapter 10).
  ///
  /// From 1900 on by observed values every ten years, within a second; after the last one nobody knows, and it is held: ten seconds more
  /// or less move a moonrise by half a second. Before 1900 by the parabola of Morrison and Stephenson.
  static func deltaT(year: Double) -> Double {
    let observed = [-2.7, 10.5, 21.2, 24.0, 24.3, 29.1, 33.2, 40.2, 50.5, 56.9, 63.8, 66.1, 69.4, 69.1]
    guard year >= 1900 else { return -20 + 32 * ((year - 1820) / 100) * ((year - 1820) / 100) }
    let position = (year - 1900) / 10
    let index = Int(min(position, Double(observed.count - 1)))
    guard index + 1 < observed.count else { return observed[observed.count - 1] }
    return observed[index] + (observed[index + 1] - observed[index]) * (position - Double(index))
  }

  /// Greenwich mean sidereal time in radians (Meeus, formula 12.4).
  var meanSiderealTime: Double {
    let universalCenturies = universalDays / 36_525
    let degrees =
      280.460_618_37 + 360.985_647_366_29 * universalDays + universalCenturies * universalCenturies * (0.000_387_933 - universalCenturies / 38_710_000)
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
