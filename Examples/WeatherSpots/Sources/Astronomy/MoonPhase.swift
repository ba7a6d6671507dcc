/// A phase of the Moon, one of eight.
///
/// New moon, first quarter, full moon and third quarter are instants, and each names the day that contains it. The other four phases
/// name the days between.
public enum MoonPhase: String, Hashable, Sendable, Codable, CaseIterable {
  /// Day on which the Moon passes the Sun.
  case new
  /// Days between new moon and first quarter.
  case waxingCrescent
  /// Day on which the right half (seen from the north) is lit.
  case firstQuarter
  /// Days between first quarter and full moon.
  case waxingGibbous
  /// Day on which the Moon stands opposite the Sun.
  case full
  /// Days between full moon and third quarter.
  case waningGibbous
  /// Day on which the left half (seen from the north) is lit.
  case thirdQuarter
  /// Days between third quarter and new moon.
  case waningCrescent

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
  public var name: String {
    switch self {
    case .new: "new moon"
    case .waxingCrescent: "waxing crescent"
    case .firstQuarter: "first quarter"
    case .waxingGibbous: "waxing gibbous"
    case .full: "full moon"
    case .waningGibbous: "waning gibbous"
    case .thirdQuarter: "third quarter"
    case .waningCrescent: "waning crescent"
    }
  }
}
