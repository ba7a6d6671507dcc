import Foundation
import Testing

@testable import WeatherSpotsKit

@Suite struct OpenMeteoResponseTests {
  @Test(arguments: Fixture.names("forecast-", ".json") + Fixture.names("marine-", ".json"))
  func everyRecordedBodyDecodes(_ name: String) throws {
    let text = try Fixture.text(name)
    let response = try OpenMeteoResponse(Fixture.response(name))
    #expect(response.hourly.instants.isEmpty == !text.contains("\"hourly\""))
    #expect(response.daily.instants.isEmpty == !text.contains("\"daily\""))
    #expect(response.current.instants.isEmpty == !text.contains("\"current\""))
  }

  @Test func aPlaceIsAnObjectAndSeveralAreAnArray() throws {
    let places = try OpenMeteoResponse.places(Fixture.response("marine-multi-location-2-adriatic-2025-06-15.json"))
    #expect(places.count == 2)
    for place in places { #expect(try place.hourly.column("wave_height", unit: "m").compactMap { $0 }.count == 24) }
    #expect(try places[0].hourly.column("wave_height", unit: "m") != places[1].hourly.column("wave_height", unit: "m"))
    #expect(try OpenMeteoResponse.places(Fixture.response("marine-inland-amsterdam-null.json")).count == 1)
  }

  @Test func theConditionsOfTheMomentAreOneRowOfQuarterHours() throws {
    let berlin = try OpenMeteoResponse(Fixture.response("forecast-berlin-minutely15-hourly-daily-current-2023-11-13.json"))
    #expect(berlin.current.instants == [try instant("2023-11-13T10:45:00Z")])
    #expect(try berlin.current.column("weather_code", unit: "wmo code") == [3])
    #expect(throws: ProviderError.unexpectedUnit(column: "wind_speed_10m", unit: "m/s")) {
      try OpenMeteoResponse(Fixture.response("forecast-current-stockholm-2026-06-21.json")).current
        .rows(WeatherHour.init(instant:), WeatherHour.currentVariables)
    }
  }

  @Test func secondsSince1970AreInstantsToo() throws {
    let text = #"""
      {"utc_offset_seconds":19800,"hourly_units":{"time":"unixtime","wave_height":"m"},"hourly":{"time":[1782864000],"wave_height":[1]},
       "daily_units":{"time":"unixtime","weather_code":"wmo code"},"daily":{"time":[1782844200],"weather_code":[3]}}
      """#
    let places = try OpenMeteoResponse(response(text))
    #expect(places.hourly.instants == [try instant("2026-07-01T00:00:00Z")])
    #expect(try places.weatherDays(in: zone("Asia/Kolkata")).map(\.day.description) == ["2026-07-01"])
  }

  @Test(arguments: [
    #""utc_offset_seconds":-9223372036854775808,"hourly":{"time":["2026-07-01T13:00"]}"#,
    #""utc_offset_seconds":90000,"hourly":{"time":["2026-07-01T00:00"]}"#,
    #""utc_offset_seconds":0,"hourly_units":{"time":"unixtime"},"hourly":{"time":[1e300]}"#,
    #""utc_offset_seconds":0,"daily_units":{"time":"unixtime"},"daily":{"time":[253402300800]}"#,
    #""utc_offset_seconds":0,"daily":{"time":["9999-12-31"]}"#,
  ])
  func aTimeThatNoCalendarHasIsRefused(_ members: String) {
    #expect { try OpenMeteoResponse(response("{\(members)}")) } throws: {
      if case .malformed = $0 as? ProviderError { true } else { false }
    }
  }

  @Test func aUnitIsShownOnOneLine() throws {
    let text = #"{"utc_offset_seconds":0,"hourly_units":{"a":"\u001b[2J\n%"},"hourly":{"time":["2026-07-01T00:00"],"a":[1]}}"#
    let table = try OpenMeteoResponse(response(text)).hourly
    #expect { try table.column("a", unit: "°C") } throws: { "\($0)" == "the weather service answered a in \"[2J%\"" }
  }

  @Test func aUnitThatWasNotAskedForIsRefused() throws {
    let weather = try OpenMeteoResponse(Fixture.response("forecast-monterey-24h-knots-2026-07-01.json"))
    #expect(throws: ProviderError.unexpectedUnit(column: "temperature_2m", unit: "°F")) { try weather.weatherHours() }
    #expect(throws: ProviderError.unexpectedUnit(column: "wind_speed_10m", unit: "kn")) {
      try weather.hourly.column("wind_speed_10m", unit: "km/h")
    }
    let sea = try OpenMeteoResponse(Fixture.response("marine-monterey-24h-imperial-2026-07-01.json"))
    #expect(throws: ProviderError.unexpectedUnit(column: "wave_height", unit: "ft")) { try sea.seaHours() }
  }

  @Test func anUndefinedColumnDisappearsAndTheOthersStay() throws {
    let text = #"""
      {"utc_offset_seconds":0,"hourly_units":{"time":"iso8601","wave_height":"m","wave_period":"undefined"},
       "hourly":{"time":["2026-07-01T00:00"],"wave_height":[1.5],"wave_period":[null]}}
      """#
    let hours = try OpenMeteoResponse(response(text)).seaHours()
    #expect(hours.map(\.waveMeters) == [1.5])
    #expect(hours.map(\.wavePeriodSeconds) == [nil])
  }

  @Test func valuesWithoutAUnitAreRefused() throws {
    let text = #"{"utc_offset_seconds":0,"hourly":{"time":["2026-07-01T00:00"],"wave_height":[1.5]}}"#
    let places = try OpenMeteoResponse(response(text))
    #expect(throws: ProviderError.unexpectedUnit(column: "wave_height", unit: "no unit")) { try places.seaHours() }
  }

  @Test func theSeaInlandIsEmpty() throws {
    #expect(try OpenMeteoResponse(Fixture.response("marine-inland-amsterdam-null.json")).seaHours().isEmpty)
  }

  @Test func negativeZeroIsZero() throws {
    let text =
      #"{"utc_offset_seconds":0,"hourly_units":{"a":"°C"},"hourly":{"time":["2026-07-01T00:00","2026-07-01T01:00"],"a":[-0.0,-0]}}"#
    let values = try OpenMeteoResponse(response(text)).hourly.column("a", unit: "°C")
    #expect(values.map { $0?.sign } == [.plus, .plus])
  }

  private static func rejected(_ reason: String) -> ProviderError { .rejected(status: 400, reason: reason) }

  private static func limited(_ window: RateWindow, _ reason: String) -> ProviderError {
    .rateLimited(window, retryAfter: nil, reason: reason)
  }

  @Test(arguments: [
    ("error-400-latitude-range.json", 400, rejected("Latitude must be in range of -90 to 90°. Given: 95.0.")),
    ("error-400-no-data-for-location.json", 400, .noCoverage),
    ("error-start-date-out-of-range.json", 400, rejected("Parameter 'start_date' is out of allowed range from 2016-01-01 to 2026-10-09")),
    ("error-429-minutely-limit.json", 429, limited(.minute, "Minutely API request limit exceeded. Please try again in one minute.")),
    ("error-429-hourly-limit.json", 429, limited(.hour, "Hourly API request limit exceeded. Please try again in the next hour.")),
    ("error-429-daily-limit.json", 429, limited(.day, "Daily API request limit exceeded. Please try again tomorrow.")),
    ("error-429-too-many-concurrent.json", 429, limited(.concurrent, "Too many concurrent requests")),
    ("error-503-overloaded.json", 503, .serviceFailed(status: 503)),
    ("forecast-200-nan-coordinates.invalid-json.txt", 200, .noCoverage),
    ("forecast-200-broken-stream.invalid-json.txt", 200, .interrupted),
  ])
  func everyErrorBodyIsOneTypedError(_ name: String, _ status: Int, _ error: ProviderError) throws {
    #expect(throws: error) { try OpenMeteoResponse(Fixture.response(name, status: status)) }
  }

  @Test(arguments: [
    ("<html><body>502 Bad Gateway</body></html>", 502, ProviderError.serviceFailed(status: 502)),
    ("<html>sign in</html>", 200, .notJSON(status: 200)),
    ("<html>too many</html>", 429, limited(.minute, "status 429")), ("", 200, .notJSON(status: 200)),
    (#"{"utc_offset_seconds":0,"hourly_units":{"a":"m"}"#, 200, .interrupted),
    (#"{"utc_offset_seconds":0,"a":"}]"#, 200, .interrupted),
    (#"{"utc_offset_seconds":0,,}"#, 200, .malformed("not the expected JSON")),
    (#"[{"latitude": NaN,"longitude":1}]"#, 200, .noCoverage),
    (#"{"error":true,"reason":"Something went wrong."}"#, 200, .rejected(status: 200, reason: "Something went wrong.")),
    (#"{"error":true,"reason":"Hourly API request limit exceeded."}"#, 200, limited(.hour, "Hourly API request limit exceeded.")),
    (#"{"error":true,"reason":"no\nkey\u001b[31m"}"#, 401, .unauthorized(reason: "nokey[31m")),
    (#"{"utc_offset_seconds":0,"hourly":{"time":["2026-0"#, 200, .interrupted),
    (#"{"hourly":{"time":[]}}"#, 200, .malformed("no utc_offset_seconds")),
    (#"{"utc_offset_seconds":0,"hourly":{"time":["2026-07-01T00:00"],"a":[1,2]}}"#, 200, .malformed("columns of different lengths")),
    (#"{"utc_offset_seconds":0,"hourly":{"time":["yesterday"]}}"#, 200, .malformed("a time is not yyyy-MM-ddTHH:mm")),
    (#"{"error":true,"reason":"Something went wrong."}"#, 500, .serviceFailed(status: 500)),
  ])
  func everyOtherBrokenBodyIsOneTypedError(_ body: String, _ status: Int, _ error: ProviderError) {
    #expect(throws: error) { try OpenMeteoResponse(response(body, status: status)) }
  }

  @Test func permanentAndTransientErrorsAreToldApart() {
    #expect(ProviderError.interrupted.isTransient)
    #expect(ProviderError.rateLimited(.minute, retryAfter: nil, reason: "").isTransient)
    #expect(!ProviderError.noCoverage.isTransient)
    #expect(!ProviderError.rejected(status: 400, reason: "").isTransient)
  }

  @Test func aRateWindowEndsWithTheMinuteHourOrUTCDay() throws {
    let moment = try instant("2026-07-01T10:20:30Z")
    #expect(RateWindow.minute.end(after: moment) == (try instant("2026-07-01T10:21:00Z")))
    #expect(RateWindow.hour.end(after: moment) == (try instant("2026-07-01T11:00:00Z")))
    #expect(RateWindow.day.end(after: moment) == (try instant("2026-07-02T00:00:00Z")))
  }
}
