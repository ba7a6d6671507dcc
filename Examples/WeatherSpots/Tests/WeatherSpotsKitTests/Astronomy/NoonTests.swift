import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct NoonTests {
  @Test func theOffsetOfTheAnswerHoldsForEveryRow() throws {
    // The service writes every row with the offset of the moment of the request: here EST, although the clocks were switched on 8 March.
    let toronto = try OpenMeteoResponse(Fixture.response("forecast-toronto-8day-dst-2026-03-04.json"))
    let row = try #require(toronto.hourly.instants.firstIndex(of: try instant("2026-03-09T17:00:00Z")))
    #expect(row == 5 * 24 + 12)
    #expect(try TimeLabel.clock(toronto.hourly.instants[row], in: zone("America/Toronto")) == "13:00")
  }

  @Test func noonAfterASwitchIsTheRowLabelledEleven() throws {
    let hours = try Self.hours("forecast-toronto-8day-dst-2026-03-04.json")
    let summary = try #require(DaySummary(hours, of: localDay("2026-03-09"), in: zone("America/Toronto")))
    #expect(summary.noon.instant == hours[5 * 24 + 11].instant)
    #expect(summary.noon.instant == (try instant("2026-03-09T16:00:00Z")))
  }

  @Test func noonOfAHalfHourZoneIsTheNearestRow() throws {
    let adelaide = try zone("Australia/Adelaide")
    let midnight = try instant("2026-07-01T00:00:00Z")
    let hours = (0..<24).map { hour in
      var row = WeatherHour(instant: midnight + Double(hour) * 3600 + 600)  // ten past
      row.temperatureCelsius = Double(hour)
      return row
    }
    let summary = try #require(DaySummary(hours, of: localDay("2026-07-01"), in: adelaide))
    #expect(summary.noon.temperatureCelsius == 2)  // noon is 02:30Z; the rows are at 02:10Z and 03:10Z
  }

  @Test func noRowOfAnotherDayIsEverShown() throws {
    let hours = try Self.hours("forecast-toronto-8day-dst-2026-03-04.json")
    let toronto = try zone("America/Toronto")
    #expect(try DaySummary(hours, of: localDay("2026-03-03"), in: toronto) == nil)
    #expect(try DaySummary(hours, of: localDay("2026-03-12"), in: toronto) == nil)
    #expect(try DaySummary(hours, of: localDay("2026-03-11"), in: toronto) != nil)
  }

  @Test func aDayBeyondTheHorizonHasHoursAndNoValues() throws {
    let response = try OpenMeteoResponse(Fixture.response("forecast-horizon-nulls-16day-tail.json"))
    let hours = try response.weatherHours()
    #expect(hours.count == 4)
    #expect(hours.allSatisfy { $0.temperatureCelsius == nil && $0.code == nil })
    #expect(try DaySummary(hours, of: localDay("2026-10-18"), in: .gmt) == nil)
  }

  @Test func theRainOfTheLastHourBelongsToTheDayThatEnds() throws {
    let start = try instant("2026-07-01T00:00:00Z")
    let hours = (0...48).map { hour in
      var row = WeatherHour(instant: start + Double(hour) * 3600)
      row.temperatureCelsius = 10
      row.precipitationMillimeters = hour == 0 ? 100 : hour <= 24 ? 1 : 1000
      return row
    }
    let summary = try #require(DaySummary(hours, of: localDay("2026-07-01"), in: .gmt))
    #expect(summary.precipitationMillimeters == 24)
  }

  @Test func labelsOfAHalfHourZoneAreReadWithItsOffset() throws {
    let times = (0..<48).map { "\"2026-10-0\(4 + $0 / 24)T\($0 % 24 < 10 ? "0" : "")\($0 % 24):00\"" }.joined(separator: ",")
    let values = (0..<48).map(String.init).joined(separator: ",")
    let body = """
      {"utc_offset_seconds":34200,"timezone":"Australia/Adelaide","hourly_units":{"time":"iso8601","temperature_2m":"°C"},
       "hourly":{"time":[\(times)],"temperature_2m":[\(values)]}}
      """
    // The offset is that of the request, on 3 October; the clocks went from 2:00 to 3:00 on the 4th, so labels are an hour behind after it.
    let hours = try OpenMeteoResponse(TransportResponse(status: 200, body: Data(body.utf8))).weatherHours()
    #expect(hours[0].instant == (try instant("2026-10-03T14:30:00Z")))
    let adelaide = try zone("Australia/Adelaide")
    let summary = try #require(DaySummary(hours, of: localDay("2026-10-04"), in: adelaide))
    #expect(summary.noon.temperatureCelsius == 11)
    #expect(TimeLabel.clock(summary.noon.instant, in: adelaide) == "12:00")
    // The day has 23 hours: the row labelled 23:00 is the next day's.
    #expect(summary.temperatureCelsius == 0...22)
  }

  @Test func daysKeepTheirDateAcrossASwitchOfTheClocks() throws {
    let toronto = try OpenMeteoResponse(metricBody("forecast-toronto-8day-dst-2026-03-04.json"))
    let days = try toronto.weatherDays(in: zone("America/Toronto"))
    #expect(days.map(\.day.description) == (4...11).map { "2026-03-\($0 < 10 ? "0" : "")\($0)" })
    #expect(days[1].code?.rawValue == 71 && days[1].precipitationPercent == 69 && days[0].highestCelsius == 48.2)
  }

  @Test func daysThatWereCutInAnotherZoneAreNotShown() throws {
    let toronto = try OpenMeteoResponse(metricBody("forecast-toronto-8day-dst-2026-03-04.json"))
    #expect(try toronto.weatherDays(in: zone("Asia/Tokyo")).isEmpty)
    #expect(try toronto.weatherDays(in: zone("America/Chicago")).count == 8)  // an hour beside, as after a switch
  }

  /// The rows of a recording in °F and mph, read for their instants: only the names of the units are changed.
  static func hours(_ name: String) throws -> [WeatherHour] { try OpenMeteoResponse(metricBody(name)).weatherHours() }
}
