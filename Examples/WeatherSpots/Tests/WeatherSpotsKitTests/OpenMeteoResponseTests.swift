import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct OpenMeteoResponseTests {
  @Test(arguments: Fixture.names("forecast-", ".json") + Fixture.names("marine-", ".json"))
  func everyRecordedBodyDecodes(_ name: String) throws {
    let text = try Fixture.text(name)
    let response = try OpenMeteoResponse(Fixture.response(name))
    #expect(response.instants.isEmpty == !text.contains("\"hourly\""))
  }

  @Test func aPlaceIsAnObjectAndSeveralAreAnArray() throws {
    let response = try OpenMeteoResponse(Fixture.response("marine-multi-location-2-adriatic-2025-06-15.json"))
    #expect(response.instants.count == 24)
    #expect(try response.column("wave_height", unit: "m").compactMap { $0 }.count == 24)
  }

  @Test func aUnitThatWasNotAskedForIsRefused() throws {
    let weather = try OpenMeteoResponse(Fixture.response("forecast-monterey-24h-knots-2026-07-01.json"))
    #expect(throws: OpenMeteoError.unexpectedUnit(column: "temperature_2m", unit: "°F")) { try WeatherHour.hours(weather) }
    #expect(throws: OpenMeteoError.unexpectedUnit(column: "wind_speed_10m", unit: "kn")) {
      try weather.column("wind_speed_10m", unit: "km/h")
    }
    let sea = try OpenMeteoResponse(Fixture.response("marine-monterey-24h-imperial-2026-07-01.json"))
    #expect(throws: OpenMeteoError.unexpectedUnit(column: "wave_height", unit: "ft")) { try SeaHour.hours(sea) }
  }

  @Test func anUndefinedColumnDisappearsAndTheOthersStay() throws {
    let text = #"""
      {"utc_offset_seconds":0,"hourly_units":{"time":"iso8601","wave_height":"m","wave_period":"undefined"},
       "hourly":{"time":["2026-07-01T00:00"],"wave_height":[1.5],"wave_period":[null]}}
      """#
    let hours = try SeaHour.hours(OpenMeteoResponse(TransportResponse(status: 200, body: Data(text.utf8))))
    #expect(hours.map(\.waveMeters) == [1.5])
    #expect(hours.map(\.wavePeriodSeconds) == [nil])
  }

  @Test func theSeaInlandIsEmpty() throws {
    #expect(try SeaHour.hours(OpenMeteoResponse(Fixture.response("marine-inland-amsterdam-null.json"))).isEmpty)
  }

  @Test func negativeZeroIsZero() throws {
    let text =
      #"{"utc_offset_seconds":0,"hourly_units":{"a":"°C"},"hourly":{"time":["2026-07-01T00:00","2026-07-01T01:00"],"a":[-0.0,-0]}}"#
    let values = try OpenMeteoResponse(TransportResponse(status: 200, body: Data(text.utf8))).column("a", unit: "°C")
    #expect(values.map { $0?.sign } == [.plus, .plus])
  }

  @Test(arguments: [
    (
      "error-400-latitude-range.json", 400,
      OpenMeteoError.rejected(status: 400, reason: "Latitude must be in range of -90 to 90°. Given: 95.0.")
    ),
    ("error-400-no-data-for-location.json", 400, .noCoverage),
    (
      "error-start-date-out-of-range.json", 400,
      .rejected(status: 400, reason: "Parameter 'start_date' is out of allowed range from 2016-01-01 to 2026-10-09")
    ),
    (
      "error-429-minutely-limit.json", 429,
      .rateLimited(.minute, reason: "Minutely API request limit exceeded. Please try again in one minute.")
    ),
    (
      "error-429-hourly-limit.json", 429,
      .rateLimited(.hour, reason: "Hourly API request limit exceeded. Please try again in the next hour.")
    ),
    ("error-429-daily-limit.json", 429, .rateLimited(.day, reason: "Daily API request limit exceeded. Please try again tomorrow.")),
    ("error-429-too-many-concurrent.json", 429, .rateLimited(.concurrent, reason: "Too many concurrent requests")),
    ("error-503-overloaded.json", 503, .serviceFailed(status: 503)),
    ("forecast-200-nan-coordinates.invalid-json.txt", 200, .noCoverage),
    ("forecast-200-broken-stream.invalid-json.txt", 200, .interrupted),
  ])
  func everyErrorBodyIsOneTypedError(_ name: String, _ status: Int, _ error: OpenMeteoError) throws {
    let response = try Fixture.response(name, status: status)
    #expect(throws: error) { try OpenMeteoResponse(response) }
  }

  @Test(arguments: [
    ("<html><body>502 Bad Gateway</body></html>", 502, OpenMeteoError.serviceFailed(status: 502)),
    ("<html>sign in</html>", 200, .notJSON(status: 200)),
    ("", 200, .notJSON(status: 200)),
    (#"{"utc_offset_seconds":0,"hourly":{"time":["2026-0"#, 200, .interrupted),
    (#"{"hourly":{"time":[]}}"#, 200, .malformed("no utc_offset_seconds")),
    (#"{"utc_offset_seconds":0,"hourly":{"time":["2026-07-01T00:00"],"a":[1,2]}}"#, 200, .malformed("columns of different lengths")),
    (#"{"utc_offset_seconds":0,"hourly":{"time":["yesterday"]}}"#, 200, .malformed("a time is not yyyy-MM-ddTHH:mm")),
    (#"{"error":true,"reason":"Something went wrong."}"#, 500, .serviceFailed(status: 500)),
  ])
  func everyOtherBrokenBodyIsOneTypedError(_ body: String, _ status: Int, _ error: OpenMeteoError) {
    #expect(throws: error) { try OpenMeteoResponse(TransportResponse(status: status, body: Data(body.utf8))) }
  }

  @Test func permanentAndTransientErrorsAreToldApart() {
    #expect(OpenMeteoError.interrupted.isTransient)
    #expect(OpenMeteoError.rateLimited(.minute, reason: "").isTransient)
    #expect(!OpenMeteoError.noCoverage.isTransient)
    #expect(!OpenMeteoError.rejected(status: 400, reason: "").isTransient)
  }

  @Test func aRateWindowEndsWithTheMinuteHourOrUTCDay() throws {
    let moment = try instant("2026-07-01T10:20:30Z")
    #expect(RateWindow.minute.end(after: moment) == (try instant("2026-07-01T10:21:00Z")))
    #expect(RateWindow.hour.end(after: moment) == (try instant("2026-07-01T11:00:00Z")))
    #expect(RateWindow.day.end(after: moment) == (try instant("2026-07-02T00:00:00Z")))
  }
}
