import Astronomy
import Foundation

/// A day's sunrise, moonrise, twilights and phase as one flat JSON object, with `null` for each event that the day lacks.
///
/// Instants are UTC, rounded to the second. Altitudes are those of the Sun's centre, without refraction.
public struct AstronomyRow: Encodable, Sendable {
  private let row: JSONRow

  /// Creates the row of one day.
  ///
  /// - Parameters:
  ///   - astronomy: The day.
  ///   - place: The name of the place, if it has one.
  ///   - showsClock: Whether the row ends with `clock`, the same instants as the clock times that ``Astronomy/text(_:)`` shows.
  public init(_ astronomy: Astronomy, place: String? = nil, showsClock: Bool = false) {
    let (sun, moon, coordinate) = (astronomy.sun, astronomy.moon, astronomy.coordinate)
    let moments: [(String, Date?)] = [
      // A day can have two sunrises or moonrises, so each kind has a second key and needs no array.
      ("sunrise", sun.rises.first), ("sunset", sun.sets.first), ("sunrise_2", sun.rises.dropFirst().first),
      ("sunset_2", sun.sets.dropFirst().first), ("solar_noon", sun.noon), ("civil_dawn", sun.civil.dawns.first),
      ("civil_dusk", sun.civil.dusks.first), ("nautical_dawn", sun.nautical.dawns.first), ("nautical_dusk", sun.nautical.dusks.first),
      ("astronomical_dawn", sun.astronomical.dawns.first), ("astronomical_dusk", sun.astronomical.dusks.first),
      ("moonrise", moon.rises.first), ("moonset", moon.sets.first), ("moonrise_2", moon.rises.dropFirst().first),
      ("moonset_2", moon.sets.dropFirst().first), ("moon_upper_transit", moon.upperTransits.first),
      ("moon_lower_transit", moon.lowerTransits.first),
    ]
    var row: JSONRow = [
      // Nine decimals are a tenth of a millimetre. More would only show the rounding of binary fractions.
      "place": place, "latitude": coordinate.latitude.rounded(decimals: 9), "longitude": coordinate.longitude.rounded(decimals: 9),
      "timezone": astronomy.zone.identifier, "date": astronomy.day.description,
      "day_start_utc": Self.text(astronomy.interval.start), "day_end_utc": Self.text(astronomy.interval.end),
      "sun_state": sun.state.rawValue, "sun_max_altitude_deg": sun.altitudeDegrees.upperBound.rounded(decimals: 4),
      "sun_min_altitude_deg": sun.altitudeDegrees.lowerBound.rounded(decimals: 4),
      "sun_sensitivity_s_per_0.01deg": sun.sensitivitySeconds?.rounded(decimals: 1),
      "moon_sample_utc": Self.text(moon.sampledAt), "moon_illuminated_fraction": moon.illuminatedFraction.rounded(decimals: 5),
      "moon_phase_angle_deg": moon.phaseAngleDegrees.rounded(decimals: 4),
      "moon_elongation_longitude_deg": moon.elongationDegrees.rounded(decimals: 4),
      "moon_sensitivity_s_per_0.01deg": moon.sensitivitySeconds?.rounded(decimals: 1),
    ]
    // Added in a loop, so that `clock` below has exactly the same keys.
    for (name, moment) in moments { row = row.adding(name, Self.text(moment)) }
    if showsClock {
      row = row.adding("clock", moments.reduce([:] as JSONRow) { $0.adding($1.0, $1.1.map(astronomy.clock)) })
    }
    self.row = row
  }

  /// Writes every key, with `null` where it has no value.
  public func encode(to encoder: any Encoder) throws { try row.encode(to: encoder) }

  private static func text(_ moment: Date?) -> String? {
    moment.map { Date(timeIntervalSince1970: $0.timeIntervalSince1970.rounded()).formatted(.iso8601) }
  }
}
