import Foundation
import Larder
import LarderTesting
import Testing

@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct GeocodingTests {
  @Test func recordedAnswersDecode() throws {
    let vodice = try GeocodingSource.places(Fixture.response("geocoding-vodice-1-result.json"))
    #expect(vodice.map(\.timezone) == ["Europe/Ljubljana"] && vodice[0].population == 1589 && vodice[0].countryCode == "SI")
    let hollywood = try GeocodingSource.places(Fixture.response("geocoding-hollywood-10-results.json"))
    #expect(hollywood.count == 10 || hollywood.count == 8)
    #expect(try GeocodingSource.places(Fixture.response("geocoding-no-match.json")).isEmpty)
  }

  @Test func failuresAreThoseOfTheWeather() {
    for (body, status, error) in [
      (#"{"error":true,"reason":"no"}"#, 400, ProviderError.rejected(status: 400, reason: "no")),
      ("<html>", 502, .serviceFailed(status: 502)), (#"{"results":[{"id":"#, 200, .interrupted),
    ] {
      #expect(throws: error) { try GeocodingSource.places(response(body, status: status)) }
    }
  }

  @Test func aNameIsAskedForOnceInAMonthAndNothingIsAnAnswerToo() async throws {
    let clock = ManualClock(now: try instant("2026-07-01T12:00:00Z"))
    let transport = ScriptedTransport("/v1/search", try Fixture.text("geocoding-vodice-1-result.json"))
    let geocoding = try await Geocoding(
      try await SpotStore(backend: InMemoryBackend()), servers: try server("http://test"), transport: transport,
      limits: .openMeteo(clock: clock), retry: .never, clock: clock)
    for _ in 0..<2 { #expect(try await geocoding.places(.init("vodice ")).value.map(\.name) == ["Vodice"]) }
    clock.advance(by: .hours(26 * 24))
    #expect(try await geocoding.places(.init("vodice")).state == .fresh)
    #expect(transport.requests.map { $0.query() } == ["name=vodice&count=10&language=en&format=json"])
    transport.set("/v1/search", try Fixture.text("geocoding-no-match.json"))
    for _ in 0..<2 { #expect(try await geocoding.places(.init("xq", country: "fr")).value.isEmpty) }
    #expect(transport.requests.count == 2)
    #expect(transport.requests.last?.query()?.hasSuffix("countryCode=FR") == true)
  }

  @Test func theZoneOfAPointIsWhatTheServiceChoosesAndMustBeKnownHere() async throws {
    let transport = ScriptedTransport("/v1/forecast", try Fixture.text("forecast-minimal-no-variables.json"))
    let geocoding = try await Geocoding(
      try await SpotStore(backend: InMemoryBackend()), servers: try server("http://test"), transport: transport,
      limits: .openMeteo(), retry: .never)
    let point = try #require(Coordinate(latitude: 52.52, longitude: 13.4))
    let name = try await geocoding.zone(of: point)
    #expect(TimeZone(identifier: name) != nil)
    #expect(transport.requests.first?.query()?.hasSuffix("timezone=auto") == true)
    transport.set("/v1/forecast", #"{"utc_offset_seconds":0,"timezone":"../../etc/passwd"}"#)
    await #expect(throws: ProviderError.malformed("no zone that is known here")) {
      _ = try await geocoding.zone(of: try #require(Coordinate(latitude: 1, longitude: 1)))
    }
  }
}
