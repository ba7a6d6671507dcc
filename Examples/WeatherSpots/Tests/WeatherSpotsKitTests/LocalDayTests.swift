import Astronomy
import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct LocalDayTests {
  @Test func aDayIsThatOfTheSpotsOwnZone() throws {
    let moment = try instant("2026-11-21T11:30:00Z")
    #expect(try LocalDay(containing: moment, in: zone("Pacific/Apia")).description == "2026-11-22")
    #expect(try LocalDay(containing: moment, in: zone("Pacific/Pago_Pago")).description == "2026-11-21")
    #expect(try LocalDay(containing: moment, in: zone("Asia/Kathmandu")).description == "2026-11-21")
  }

  @Test func aDayIsGregorianWhateverTheDevicesCalendar() throws {
    let moment = try instant("2026-11-21T05:00:00Z")
    let bangkok = try zone("Asia/Bangkok")
    var buddhist = Calendar(identifier: .buddhist)
    buddhist.timeZone = bangkok
    #expect(buddhist.component(.year, from: moment) == 2569)
    #expect(LocalDay(containing: moment, in: bangkok).description == "2026-11-21")
  }

  @Test(arguments: ["2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "26-01-01", "2026-01-0x", "", "2026/01/01", "0000-01-01"])
  func whatIsNoDayIsRefused(_ text: String) { #expect(LocalDay(text) == nil) }

  @Test func daysAdvanceOverMonthsAndLeapDays() throws {
    #expect(try localDay("2028-02-28").advanced(by: 1).description == "2028-02-29")
    #expect(try localDay("2026-12-31").advanced(by: 1).description == "2027-01-01")
    #expect(try localDay("2026-03-01").advanced(by: -1).description == "2026-02-28")
  }

  @Test func aDayOfASwitchIsShorterAndNeedNotHaveAMidnight() throws {
    let toronto = try localDay("2026-03-08").interval(in: zone("America/Toronto"))
    #expect(toronto.duration == 23 * 3600)
    let havana = try localDay("2025-03-09").interval(in: zone("America/Havana"))
    #expect(havana.start == (try instant("2025-03-09T05:00:00Z")))
    #expect(havana.duration == 23 * 3600)
  }

  @Test(arguments: [
    ("2011-12-30", "Pacific/Apia", "2011-12-30T10:00:00Z"), ("2011-12-30", "Pacific/Fakaofo", "2011-12-30T11:00:00Z"),
    ("1993-08-21", "Pacific/Kwajalein", "1993-08-21T12:00:00Z"), ("1994-12-31", "Pacific/Kiritimati", "1994-12-31T10:00:00Z"),
  ])
  func aDayThatAZoneSkippedIsEmptyAndSaidToBeSo(_ text: String, _ name: String, _ move: String) throws {
    let (day, zone) = (try localDay(text), try zone(name))
    #expect(day.interval(in: zone) == DateInterval(start: try instant(move), duration: 0))
    #expect(day.advanced(by: -1).interval(in: zone) == DateInterval(start: try instant(move) - 86400, duration: 86400))
    #expect(day.advanced(by: 1).interval(in: zone) == DateInterval(start: try instant(move), duration: 86400))
    #expect(!day.exists(in: zone) && day.exists(in: .gmt) && day.advanced(by: -1).exists(in: zone) && day.advanced(by: 1).exists(in: zone))
    let problem = try #require(throws: SkippedDay.self) { try day.check(in: zone) }
    #expect(problem.description.hasPrefix("expected a day of \(name), found \(text), which that zone skipped: "))
    // Nothing happens in no time, and nothing of a day beside it is taken for it.
    let astronomy = Astronomy(at: try #require(Coordinate(latitude: -13.83, longitude: -171.76)), on: day, in: zone)
    #expect(astronomy.sun.rises.isEmpty && astronomy.sun.sets.isEmpty && astronomy.sun.noon == nil && astronomy.moon.rises.isEmpty)
    #expect(astronomy.text().hasSuffix("\n  no such day: \(name) skipped it\n"))
  }

  @Test func aDayIsStoredAsItsText() throws {
    let day = try localDay("2026-03-08")
    #expect(String(decoding: try JSONEncoder().encode([day]), as: UTF8.self) == "[\"2026-03-08\"]")
    #expect(try JSONDecoder().decode([LocalDay].self, from: Data("[\"2026-03-08\"]".utf8)) == [day])
  }
}
