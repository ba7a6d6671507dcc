import Astronomy
import Foundation

/// A day's astronomy for machines: one flat object, `null` where something does not happen.
///
/// Moments are UTC, rounded to the second. Altitudes are of the Sun's centre, without refraction.
public struct AstronomyRow: Encodable, Sendable {
  private let astronomy: Astronomy
  private let place: String?

  /// Makes the row of a day, with the name of the place if it has one.
  public init(_ astronomy: Astronomy, place: String? = nil) {
    self.astronomy = astronomy
    self.place = place
  }

  /// The keys.
  enum Column: String, CodingKey, CaseIterable {
    case place, latitude, longitude, timezone, date
    case dayStart = "day_start_utc"
    case dayEnd = "day_end_utc"
    case sunState = "sun_state"
    case sunrise, sunset
    case solarNoon = "solar_noon"
    case civilDawn = "civil_dawn"
    case civilDusk = "civil_dusk"
    case moonrise, moonset
    case moonSample = "moon_sample_utc"
    case moonFraction = "moon_illuminated_fraction"
    case moonPhaseAngle = "moon_phase_angle_deg"
    case moonElongation = "moon_elongation_longitude_deg"
    case sunrise2 = "sunrise_2"
    case sunset2 = "sunset_2"
    case moonrise2 = "moonrise_2"
    case moonset2 = "moonset_2"
    case moonUpperTransit = "moon_upper_transit"
    case moonLowerTransit = "moon_lower_transit"
    case nauticalDawn = "nautical_dawn"
    case nauticalDusk = "nautical_dusk"
    case astronomicalDawn = "astronomical_dawn"
    case astronomicalDusk = "astronomical_dusk"
    case sunMaxAltitude = "sun_max_altitude_deg"
    case sunMinAltitude = "sun_min_altitude_deg"
    case sunSensitivity = "sun_sensitivity_s_per_0.01deg"
    case moonSensitivity = "moon_sensitivity_s_per_0.01deg"
  }

  /// Writes every key, also those without a value.
  public func encode(to encoder: any Encoder) throws {
    var row = encoder.container(keyedBy: Column.self)
    let (sun, moon) = (astronomy.sun, astronomy.moon)
    let texts: [(Column, String?)] = [
      (.place, place), (.timezone, astronomy.zone.identifier), (.date, astronomy.day.description), (.sunState, sun.state.rawValue),
    ]
    let moments: [(Column, Date?)] = [
      (.dayStart, astronomy.interval.start), (.dayEnd, astronomy.interval.end), (.sunrise, sun.rises.first), (.sunset, sun.sets.first),
      (.sunrise2, sun.rises.dropFirst().first), (.sunset2, sun.sets.dropFirst().first), (.solarNoon, sun.noon),
      (.civilDawn, sun.civil.dawns.first), (.civilDusk, sun.civil.dusks.first), (.nauticalDawn, sun.nautical.dawns.first),
      (.nauticalDusk, sun.nautical.dusks.first), (.astronomicalDawn, sun.astronomical.dawns.first),
      (.astronomicalDusk, sun.astronomical.dusks.first), (.moonrise, moon.rises.first), (.moonset, moon.sets.first),
      (.moonrise2, moon.rises.dropFirst().first), (.moonset2, moon.sets.dropFirst().first), (.moonUpperTransit, moon.upperTransits.first),
      (.moonLowerTransit, moon.lowerTransits.first), (.moonSample, moon.sampledAt),
    ]
    let numbers: [(Column, Double?, Int)] = [
      (.latitude, astronomy.coordinate.latitude, 9), (.longitude, astronomy.coordinate.longitude, 9),
      (.moonFraction, moon.illuminatedFraction, 5), (.moonPhaseAngle, moon.phaseAngleDegrees, 4),
      (.moonElongation, moon.elongationDegrees, 4), (.sunMaxAltitude, sun.altitudeDegrees.upperBound, 4),
      (.sunMinAltitude, sun.altitudeDegrees.lowerBound, 4), (.sunSensitivity, sun.sensitivitySeconds, 1),
      (.moonSensitivity, moon.sensitivitySeconds, 1),
    ]
    for (column, text) in texts { try row.encode(text, forKey: column) }
    for (column, moment) in moments { try row.encode(moment.map(Self.text), forKey: column) }
    for (column, number, decimals) in numbers { try row.encode(number?.rounded(decimals: decimals), forKey: column) }
  }

  private static func text(_ moment: Date) -> String {
    Date(timeIntervalSince1970: moment.timeIntervalSince1970.rounded()).formatted(.iso8601)
  }
}
