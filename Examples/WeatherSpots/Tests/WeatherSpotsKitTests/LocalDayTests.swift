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
  func whatIsNoDayIsRefused(_ text: String) {
    #expect(LocalDay(text) == nil)
  }

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

  @Test func aDayIsStoredAsItsText() throws {
    let day = try localDay("2026-03-08")
    #expect(String(decoding: try JSONEncoder().encode([day]), as: UTF8.self) == "[\"2026-03-08\"]")
    #expect(try JSONDecoder().decode([LocalDay].self, from: Data("[\"2026-03-08\"]".utf8)) == [day])
  }
}
