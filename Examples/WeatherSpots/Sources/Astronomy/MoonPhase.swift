/// A phase of the Moon, one of eight.
///
/// New moon, first quarter, full moon and third quarter are instants, and each names the day that contains it. The other four phases
/// name the days between.
public enum MoonPhase: String, Hashable, Sendable, Codable, CaseIterable {
  /// Day on which the Moon passes the Sun.
  case new = "new moon"
  /// Days between new moon and first quarter.
  case waxingCrescent = "waxing crescent"
  /// Day on which the right half (seen from the north) is lit.
  case firstQuarter = "first quarter"
  /// Days between first quarter and full moon.
  case waxingGibbous = "waxing gibbous"
  /// Day on which the Moon stands opposite the Sun.
  case full = "full moon"
  /// Days between full moon and third quarter.
  case waningGibbous = "waning gibbous"
  /// Day on which the left half (seen from the north) is lit.
  case thirdQuarter = "third quarter"
  /// Days between third quarter and new moon.
  case waningCrescent = "waning crescent"

  /// Creates the phase of a day from the elongations at its start and end, in degrees.
  init(from start: Double, to end: Double) {
    // An elongation restarts at 0 at new moon, where the plain difference would be negative.
    let moved = (end - start).turned
    let quarter = (start / 90).rounded(.up) * 90
    let order = Int(start / 90) * 2 + 1
    // Excludes the end, so that an instant at midnight names one day and not two.
    let index = quarter - start < moved ? Int(quarter / 90) * 2 : order
    self = Self.allCases[index % 8]
  }

  /// Name of the phase in English.
  public var name: String { rawValue }
}
