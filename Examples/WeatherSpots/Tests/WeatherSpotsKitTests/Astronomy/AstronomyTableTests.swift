import Foundation
import Testing

@testable import Astronomy
@testable import WeatherSpotsKit

/// The two tables in Fixtures, which skyfield computed from the JPL ephemeris DE421; see ATTRIBUTION.md.
@Suite(.timeLimit(.minutes(15))) struct AstronomyTableTests {
  private static let tables = [("astronomy-oracle.csv", 480), ("astronomy-edge-cases.csv", 55)]

  private struct Row {
    let cells: [String: String]
    var name: String { "\(self["place"]) \(self["date"])" }
    subscript(_ column: String) -> String { cells[column] ?? "no column \(column)" }
    func number(_ column: String) -> Double? { Double(self[column]) }
    func moment(_ column: String) throws -> Date? { self[column].isEmpty ? nil : try instant(self[column]) }

    func astronomy() throws -> Astronomy {
      let latitude = try #require(number("latitude"))
      let longitude = try #require(number("longitude"))
      let coordinate = try #require(Coordinate(latitude: latitude, longitude: longitude))
      return Astronomy(at: coordinate, on: try localDay(self["date"]), in: try zone(self["timezone"]))
    }
  }

  private func rows(_ file: String) throws -> [Row] {
    var records: [[String]] = []
    for record in CSVReader(Array(try Fixture.text(file).utf8)) { records.append(try record.get().fields) }
    let header = try #require(records.first)
    return records.dropFirst().map { Row(cells: Dictionary(zip(header, $0), uniquingKeysWith: { first, _ in first })) }
  }

  @Test(arguments: tables) func everyRowHasItsEventsAndNoOthersWithinTheTolerances(_ file: String, _ count: Int) throws {
    let rows = try rows(file)
    #expect(rows.count == count)
    var worst: [String: Double] = [:]
    for row in rows {
      let astronomy = try row.astronomy()
      let (sun, moon) = (astronomy.sun, astronomy.moon)
      #expect(try row.moment("day_start_utc") == astronomy.interval.start, "\(row.name)")
      #expect(try row.moment("day_end_utc") == astronomy.interval.end, "\(row.name)")
      #expect(try row.moment("moon_sample_utc") == moon.sampledAt, "\(row.name)")
      #expect(row["sun_state"] == sun.state.rawValue, "\(row.name)")
      let sunEvents: [(String, Date?)] = [
        ("sunrise", sun.rises.first), ("sunrise_2", sun.rises.dropFirst().first), ("sunset", sun.sets.first),
        ("sunset_2", sun.sets.dropFirst().first), ("solar_noon", sun.noon), ("civil_dawn", sun.civil.dawns.first),
        ("civil_dusk", sun.civil.dusks.first), ("nautical_dawn", sun.nautical.dawns.first), ("nautical_dusk", sun.nautical.dusks.first),
        ("astronomical_dawn", sun.astronomical.dawns.first), ("astronomical_dusk", sun.astronomical.dusks.first),
      ]
      let moonEvents: [(String, Date?)] = [
        ("moonrise", moon.rises.first), ("moonrise_2", moon.rises.dropFirst().first), ("moonset", moon.sets.first),
        ("moonset_2", moon.sets.dropFirst().first), ("moon_upper_transit", moon.upperTransits.first),
        ("moon_lower_transit", moon.lowerTransits.first),
      ]
      // The tolerances asked for are 30 and 60 seconds; these are ten times stricter.
      let sunTolerance = 3 + 0.5 * (row.number("sun_sensitivity_s_per_0.01deg") ?? 0)
      let moonTolerance = 6 + 0.5 * (row.number("moon_sensitivity_s_per_0.01deg") ?? 0)
      let events = sunEvents.map { ($0, $1, sunTolerance) } + moonEvents.map { ($0, $1, moonTolerance) }
      for (column, moment, tolerance) in events {
        let expected = try row.moment(column)
        #expect((expected == nil) == (moment == nil), "\(row.name): \(column)")
        guard let expected, let moment else { continue }
        let error = abs(moment.timeIntervalSince(expected))
        #expect(error <= tolerance, "\(row.name): \(column)")
        worst[column] = max(worst[column] ?? 0, error)
      }
      let numbers: [(String, Double, Double)] = [
        ("moon_illuminated_fraction", moon.illuminatedFraction, 0.0005), ("moon_phase_angle_deg", moon.phaseAngleDegrees, 0.02),
        ("moon_elongation_longitude_deg", moon.elongationDegrees, 0.01),
        ("sun_sensitivity_s_per_0.01deg", sun.sensitivitySeconds ?? 0, 0.1 + 0.03 * (sun.sensitivitySeconds ?? 0)),
        ("moon_sensitivity_s_per_0.01deg", moon.sensitivitySeconds ?? 0, 0.1 + 0.03 * (moon.sensitivitySeconds ?? 0)),
      ]
      for (column, number, tolerance) in numbers {
        let error = abs(number - (row.number(column) ?? 0))
        #expect(error <= tolerance, "\(row.name): \(column)")
        worst[column] = max(worst[column] ?? 0, error)
      }
    }
    print(file, worst.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.text(decimals: 5))" }.joined(separator: ", "))
  }

  /// The table's extremes are those of samples every ten minutes; near the zenith ten minutes are two degrees.
  @Test(arguments: tables) func theSunIsAsHighAndLowAsTheTablesSay(_ file: String, _ count: Int) throws {
    for row in try rows(file) {
      let altitude = try row.astronomy().sun.altitudeDegrees
      let highest = try #require(row.number("sun_max_altitude_deg"))
      let lowest = try #require(row.number("sun_min_altitude_deg"))
      #expect((highest - 0.001...highest + (abs(highest) > 75 ? 2 : 0.05)).contains(altitude.upperBound), "\(row.name)")
      #expect((lowest - (abs(lowest) > 75 ? 2 : 0.05)...lowest + 0.001).contains(altitude.lowerBound), "\(row.name)")
    }
  }

  @Test func theClockTimesOfAReportAreThoseOfTheText() throws {
    var (shown, rounded) = (0, 0)
    for row in try rows("astronomy-oracle.csv") {
      let astronomy = try row.astronomy()
      let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(AstronomyRow(astronomy, showsClock: true)))
      let clock = try #require((object as? [String: Any])?["clock"] as? [String: Any])
      let lines = astronomy.text().split(separator: "\n")
      for (key, label) in [("sunrise", "Sunrise"), ("sunset", "Sunset"), ("moonrise", "Moonrise"), ("solar_noon", "Solar noon")] {
        let line = try #require(lines.first { $0.hasPrefix("  \(label) ") })
        guard let time = clock[key] as? String else {
          #expect(line.hasSuffix(" none"), "\(row.name)")
          continue
        }
        #expect(line.contains(" \(time)"), "\(row.name): \(line)")
        shown += 1
        if let sunrise = astronomy.sun.rises.first, key == "sunrise", time != TimeLabel.clock(sunrise, in: astronomy.zone) { rounded += 1 }
      }
    }
    // Half of them are another minute when they are cut off instead.
    #expect(shown > 1_000 && rounded > 100)
  }

  @Test func theRowForMachinesHasTheTablesColumnsAndNullForWhatDoesNotHappen() throws {
    let header = try #require(try Fixture.text("astronomy-oracle.csv").split(separator: "\n").first)
    let row = try #require(try rows("astronomy-oracle.csv").first { $0["sun_state"] == "always_up" })
    let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(AstronomyRow(row.astronomy())))
    let values = try #require(object as? [String: Any])
    #expect(Set(values.keys) == Set(header.split(separator: ",").map(String.init)))
    for key in ["sunrise", "sunset", "sunrise_2", "civil_dusk", "moonset", "place", "sun_sensitivity_s_per_0.01deg"] {
      #expect(values[key] is NSNull, "\(key)")
    }
    #expect(values["sun_state"] as? String == "always_up")
    let noon = try instant(try #require(values["solar_noon"] as? String))
    #expect(abs(noon.timeIntervalSince(try #require(try row.moment("solar_noon")))) <= 2)
  }
}
