import Foundation
import Larder
import LarderTesting
import Testing

@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct RecordedProviderTests {
  private let clock: ManualClock
  private let spot: Spot

  init() throws {
    clock = ManualClock(now: try instant("2031-03-30T09:00:00Z"))
    spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "Europe/Paris")
  }

  private func service() async throws -> WeatherService {
    let clock = clock
    return try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: OpenMeteoProvider.recorded(now: { clock.now }),
      limits: .openMeteo(clock: clock), clock: clock)
  }

  @Test func theRecordingIsDatedAnewToTheAskedDayAndSaysSo() async throws {
    let weather = try await service().forecast(for: spot, days: 3)
    #expect(weather.hourly.value?.provenance == Provenance(provider: "recorded", server: "recordings", isRecorded: true))
    #expect(weather.current?.value?.provenance.isRecorded == true && weather.marine.value?.provenance.isRecorded == true)
    #expect(weather.daily.value?.days.first { $0.day == weather.day }?.highestCelsius != nil)
    #expect(weather.current?.value?.conditions.instant == clock.now)
    // The clocks of this day go from two to three.
    let report = try #require(ForecastReport(weather, showsHours: true))
    let object = try #require(JSONSerialization.jsonObject(with: JSONEncoder().encode(report)) as? [String: Any])
    let hours = try #require(object["hours"] as? [[String: Any]])
    #expect(hours.count { $0["day"] as? String == "2031-03-30" } == 23)
    #expect((object["noon"] as? [String: Any])?["time"] as? String == "12:00")
    #expect(weather.card(CardStyle()).contains("recorded data"))
    #expect(weather.line(nameColumns: 20, CardStyle()).contains("recorded data"))
  }

  @Test func placesAreFoundInTheRecordingToo() async throws {
    let clock = clock
    let geocoding = try await Geocoding(
      try await SpotStore(backend: InMemoryBackend()), transport: RecordedTransport(now: { clock.now }), limits: .openMeteo(clock: clock),
      clock: clock)
    let found = try await geocoding.places(.init("Hollyw"))
    #expect(found.value.first?.timezone == "America/New_York")
    #expect(try await geocoding.places(.init("Nowhere")).value.isEmpty)
    #expect(try await geocoding.zone(of: spot.coordinate) == "GMT")
  }
}
