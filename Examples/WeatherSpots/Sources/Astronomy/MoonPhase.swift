/// The eight names of the Moon's phases.
///
/// New, first quarter, full and third quarter are instants: they name the day that contains theirs. The other four name the days between.
public enum MoonPhase: String, Hashable, Sendable, Codable, CaseIterable {
  /// The day on which the Moon passes the Sun.
  case new
  /// The days after.
  case waxingCrescent
  /// The day on which the right half (seen from the north) is lit.
  case firstQuarter
  /// The days before the full Moon.
  case waxingGibbous
  /// The day on which the Moon stands opposite the Sun.
  case full
  /// The days after.
  case waningGibbous
  /// The day on which the left half is lit.
  case thirdQuarter
  /// The days before the new Moon.
  case waningCrescent

  /// Makes the phase of a day that begins and ends with these elongations, in degrees.
  init(from start: Double, to end: Double) {
    let moved = (end - start).turned
    let quarter = (start / 90).rounded(.up) * 90
    let order = Int(start / 90) * 2 + 1
    let index = quarter - start < moved ? Int(quarter / 90) * 2 : order
    self = Self.allCases[index % 8]
  }

  /// The phase in words.
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
