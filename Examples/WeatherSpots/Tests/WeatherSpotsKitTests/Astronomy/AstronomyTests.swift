import Foundation
import Testing

@testable import Astronomy
@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct AstronomyTests {
  private func astronomy(_ latitude: Double, _ longitude: Double, _ name: String, _ day: String) throws -> Astronomy {
    Astronomy(at: try #require(Coordinate(latitude: latitude, longitude: longitude)), on: try localDay(day), in: try zone(name))
  }

  // The examples of Meeus, Astronomical Algorithms, by their numbers.

  @Test func theMoonIsWhereExample47aSays() {
    let time = AstronomicalTime(julianDayTT: 2_448_724.5)
    let nutation = Nutation(time)
    let moon = EclipticPosition.moon(time, nutation)
    #expect(abs(moon.longitude - nutation.longitude - 133.162655) < 0.000_001)
    #expect(abs(moon.latitude - -3.229126) < 0.000_001)
    #expect(abs(moon.kilometers - 368_409.7) < 0.05)
  }

  @Test func theSunIsWhereExamples25aAnd25bSay() {
    let time = AstronomicalTime(julianDayTT: 2_448_908.5)
    let sun = EclipticPosition.sun(time, Nutation(time))
    // 25.a is the low accuracy of 0.01 degrees, 25.b the theory whose terms are used: 199 degrees 54 minutes 21.818 seconds.
    #expect(abs(sun.longitude - 199.90895) < 0.01)
    #expect(abs(sun.longitude - (199 + 54.0 / 60 + 21.818 / 3600)) * 3600 < 0.05)
    #expect(abs(sun.kilometers / EclipticPosition.astronomicalUnit - 0.997_607_75) < 0.000_005)
  }

  @Test func theAxisStandsAsExample22aSaysAndTheEarthIsTurnedAsExample12aSays() throws {
    let nutation = Nutation(AstronomicalTime(julianDayTT: 2_446_895.5))
    #expect(abs(nutation.longitude * 3600 - -3.788) < 0.05)
    #expect(abs(nutation.obliquity.degrees - (23 + 26.0 / 60 + 36.850 / 3600)) * 3600 < 0.05)
    let time = try instant("1987-04-10T00:00:00Z").timeIntervalSince1970
    #expect(abs(AstronomicalTime.meanSiderealTime(unix: time).degrees.turned - 197.693_195) < 0.000_001)
  }

  @Test(arguments: [(1900.0, -2.7), (1972.5, 42.8), (2000, 63.8), (2020, 69.4), (2026, 69.2), (2035, 69.1), (2200, 69.1), (1820, -20)])
  func theEarthIsLateByDeltaT(_ year: Double, _ seconds: Double) { #expect(abs(AstronomicalTime.deltaT(year: year) - seconds) < 0.5) }

  @Test func betweenTheInstantsThatAreComputedPlacesAreExact() {
    let start = 1_790_000_000.0
    let ephemeris = Ephemeris(from: start - 7200, to: start + 97_200)
    for hour in -2...27 {
      let instant = start + Double(hour) * 3599
      let time = AstronomicalTime(unix: instant)
      let nutation = Nutation(time)
      let turned = AstronomicalTime.meanSiderealTime(unix: instant) + (nutation.longitude * cos(nutation.obliquity)).radians
      let moon = EclipticPosition.moon(time, nutation).equatorial(obliquity: nutation.obliquity).turned(by: turned)
      #expect((moon - ephemeris.moonFixedToEarth(at: instant)).length < 0.01)
      let sun = EclipticPosition.sun(time, nutation).equatorial(obliquity: nutation.obliquity).turned(by: turned)
      #expect((sun - ephemeris.sunFixedToEarth(at: instant)).length < 10)
    }
  }

  @Test func aDayOfTwoSunsetsHasBothAndTheFirstComesBeforeTheSunrise() throws {
    let sun = try astronomy(69.6492, 18.9553, "Europe/Oslo", "2025-07-27").sun
    #expect(sun.state == .risesAndSets)
    #expect(sun.sets.count == 2)
    #expect(sun.rises.count == 1)
    #expect(sun.sets[0] < sun.rises[0])
  }

  @Test(arguments: [
    ("2025-05-16", HorizonState.risesOnly), ("2025-05-18", .alwaysUp), ("2025-12-21", .alwaysDown), ("2025-03-21", .risesAndSets),
  ])
  func polarDaysHaveStates(_ day: String, _ state: HorizonState) throws {
    #expect(try astronomy(69.6492, 18.9553, "Europe/Oslo", day).sun.state == state)
  }

  @Test func aDayOnWhichTheSunOnlySetsSaysSo() throws {
    let day = LocalDay(containing: try instant("2026-09-22T12:00:00Z"), in: .gmt)
    let states = try (0..<6).map { try astronomy(90, 0, "GMT", day.advanced(by: $0).description).sun.state }
    #expect(states.filter { $0 == .setsOnly }.count == 1)
    #expect(states.first == .alwaysUp && states.last == .alwaysDown)
  }

  /// Days end where the next begin: nothing is lost or told twice there, in any zone, through clock changes and grazing days.
  @Test(arguments: [
    (69.6492, 18.9553, "Europe/Oslo", "2025-05-10"), (69.6492, 18.9553, "Europe/Oslo", "2025-07-20"),
    (78.2232, 15.6267, "Arctic/Longyearbyen", "2026-08-15"), (71.2906, -156.7886, "America/Anchorage", "2026-05-01"),
    (-77.846, 166.676, "Antarctica/McMurdo", "2026-02-10"), (66.5, 25.7, "Europe/Helsinki", "2026-06-01"),
    (23.1136, -82.3666, "America/Havana", "2025-03-01"), (-31.55, 159.08, "Australia/Lord_Howe", "2026-03-25"),
    (1.87, -157.43, "Pacific/Kiritimati", "2026-12-20"),
  ])
  func overManyDaysEveryRiseIsFollowedByASet(_ latitude: Double, _ longitude: Double, _ name: String, _ first: String) throws {
    let start = try localDay(first)
    var (sun, moon): ([(Date, Bool)], [(Date, Bool)]) = ([], [])
    for offset in 0..<40 {
      let day = try astronomy(latitude, longitude, name, start.advanced(by: offset).description)
      func events(_ rises: [Date], _ sets: [Date]) -> [(Date, Bool)] {
        for moment in rises + sets { #expect(day.interval.start <= moment && moment < day.interval.end) }
        return (rises.map { ($0, true) } + sets.map { ($0, false) }).sorted { $0.0 < $1.0 }
      }
      sun += events(day.sun.rises, day.sun.sets)
      moon += events(day.moon.rises, day.moon.sets)
      for transit in day.moon.upperTransits + day.moon.lowerTransits {
        #expect(day.interval.start <= transit && transit < day.interval.end)
      }
    }
    for (before, after) in Array(zip(sun, sun.dropFirst())) + Array(zip(moon, moon.dropFirst())) {
      #expect(before.0 < after.0 && before.1 != after.1, "\(before) \(after)")
    }
    #expect(moon.count > 15)
  }

  @Test(arguments: [
    ("2026-02-16", MoonPhase.waningCrescent), ("2026-02-17", .new), ("2026-02-18", .waxingCrescent), ("2026-02-24", .firstQuarter),
    ("2026-02-28", .waxingGibbous), ("2026-03-03", .full), ("2026-03-04", .waningGibbous), ("2026-03-11", .thirdQuarter),
    ("2026-03-12", .waningCrescent),
  ])
  func phasesAreNamedByTheDayThatHasTheirInstant(_ day: String, _ phase: MoonPhase) throws {
    #expect(try astronomy(51.48, 0, "Europe/London", day).moon.phase == phase)
  }

  @Test func aPhaseBelongsToOneDayOfEveryZone() throws {
    // The full moon of 2026-03-03 is at 11:38 UTC: already the 4th in Kiritimati.
    #expect(try astronomy(1.87, -157.43, "Pacific/Kiritimati", "2026-03-03").moon.phase == .waxingGibbous)
    #expect(try astronomy(1.87, -157.43, "Pacific/Kiritimati", "2026-03-04").moon.phase == .full)
  }

  @Test func aMomentOfTheLastHalfMinuteIsNotShownAsTheNextDays() throws {
    let day = try astronomy(51.48, 0, "Europe/London", "2026-03-03")
    #expect(day.clock(try instant("2026-03-03T06:30:31Z")) == "06:31")
    #expect(day.clock(try instant("2026-03-03T06:30:29Z")) == "06:30")
    #expect(day.clock(try instant("2026-03-03T23:59:45Z")) == "23:59")
  }
}
