import Astronomy
import Foundation

/// A day's astronomy for machines: one flat object, `null` where something does not happen.
///
/// Moments are UTC, rounded to the second. Altitudes are of the Sun's centre, without refraction.
public struct AstronomyRow: Encodable, Sendable {
  private let row: JSONRow

  /// Makes the row of a day, with the name of the place if it has one.
  public init(_ astronomy: Astronomy, place: String? = nil) {
    let (sun, moon, coordinate) = (astronomy.sun, astronomy.moon, astronomy.coordinate)
    row = [
      "place": place, "latitude": coordinate.latitude.rounded(decimals: 9), "longitude": coordinate.longitude.rounded(decimals: 9),
      "timezone": astronomy.zone.identifier, "date": astronomy.day.description,
      "day_start_utc": Self.text(astronomy.interval.start), "day_end_utc": Self.text(astronomy.interval.end),
      "sun_state": sun.state.rawValue, "sunrise": Self.text(sun.rises.first), "sunset": Self.text(sun.sets.first),
      "sunrise_2": Self.text(sun.rises.dropFirst().first), "sunset_2": Self.text(sun.sets.dropFirst().first),
      "solar_noon": Self.text(sun.noon), "civil_dawn": Self.text(sun.civil.dawns.first), "civil_dusk": Self.text(sun.civil.dusks.first),
      "nautical_dawn": Self.text(sun.nautical.dawns.first), "nautical_dusk": Self.text(sun.nautical.dusks.first),
      "astronomical_dawn": Self.text(sun.astronomical.dawns.first), "astronomical_dusk": Self.text(sun.astronomical.dusks.first),
      "sun_max_altitude_deg": sun.altitudeDegrees.upperBound.rounded(decimals: 4),
      "sun_min_altitude_deg": sun.altitudeDegrees.lowerBound.rounded(decimals: 4),
      "sun_sensitivity_s_per_0.01deg": sun.sensitivitySeconds?.rounded(decimals: 1),
      "moonrise": Self.text(moon.rises.first), "moonset": Self.text(moon.sets.first),
      "moonrise_2": Self.text(moon.rises.dropFirst().first), "moonset_2": Self.text(moon.sets.dropFirst().first),
      "moon_upper_transit": Self.text(moon.upperTransits.first), "moon_lower_transit": Self.text(moon.lowerTransits.first),
      "moon_sample_utc": Self.text(moon.sampledAt), "moon_illuminated_fraction": moon.illuminatedFraction.rounded(decimals: 5),
      "moon_phase_angle_deg": moon.phaseAngleDegrees.rounded(decimals: 4),
      "moon_elongation_longitude_deg": moon.elongationDegrees.rounded(decimals: 4),
      "moon_sensitivity_s_per_0.01deg": moon.sensitivitySeconds?.rounded(decimals: 1),
    ]
  }

  /// Writes every key, also those without a value.
  public func encode(to encoder: any Encoder) throws { try row.encode(to: encoder) }

  private static func text(_ moment: Date?) -> String? {
    moment.map { Date(timeIntervalSince1970: $0.timeIntervalSince1970.rounded()).formatted(.iso8601) }
  }
}
