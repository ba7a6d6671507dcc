import Foundation
import Larder
import LarderTesting
import Testing

@testable import WeatherSpotsKit

/// The weather of the present hour, as a list of spots shows it.
@Suite(.timeLimit(.minutes(15))) struct PresentHourTests {
  private let transport = ScriptedTransport(
    forecast: .body(fullBody("2026-07-01", days: 7)), marine: .body(hourlyBody("2026-07-01", [("wave_height", "m", "1.2")])))
  private let clock: ManualClock
  private let spot: Spot

  init() throws {
    clock = ManualClock(now: try instant("2026-07-01T12:40:00Z"))
    spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "Europe/Paris")
  }

  private func service(_ other: ScriptedTransport? = nil) async throws -> WeatherService {
    let (clock, transport) = (clock, other ?? transport)
    let provider = OpenMeteoProvider(servers: try server("http://test"), transport: transport, now: { clock.now })
    return try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: provider, limits: .openMeteo(clock: clock), retry: .never, clock: clock)
  }

  private func json(_ hour: PresentHour) throws -> JSONValue { try JSONValue(json: try ReportJSON.data(hour)) }

  @Test func whatIsNotStoredIsNotAskedForAndSaysSo() async throws {
    let service = try await service()
    let hour = try await service.presentHour(of: spot, policy: .cacheOnly)
    let row = try json(hour)
    #expect(!hour.isFresh && transport.requests.isEmpty)
    #expect(row["spot"]?.stringValue == spot.id && row["fresh"]?.boolValue == false)
    #expect(row["instant"]?.isNull == true && row["points"]?.isNull == true)
    #expect(row["problem"]?.stringValue == WeatherProblem.notStored.description)
  }

  @Test func itIsTheHourThatRunsAndIsAskedForOnce() async throws {
    let service = try await service()
    #expect(try await service.presentHour(of: spot, policy: .cacheFirst).isFresh)
    let requests = transport.requests.count
    #expect(requests == 2)
    let row = try json(try await service.presentHour(of: spot, policy: .cacheOnly))
    #expect(row["instant"]?.stringValue == "2026-07-01T12:00:00Z" && row["time"]?.stringValue == "14:00")
    #expect(row["wave_m"]?.doubleValue == 1.2 && row["night"]?.boolValue == false && row["problem"]?.isNull == true)
    clock.advance(by: .hours(10))
    let late = try json(try await service.presentHour(of: spot, policy: .cacheOnly))
    #expect(late["instant"]?.stringValue == "2026-07-01T22:00:00Z" && late["night"]?.boolValue == true)
    #expect(late["fresh"]?.boolValue == false && late["age_seconds"]?.intValue == 36_000)
    #expect(transport.requests.count == requests)
  }

  @Test func rainAndGustsAreThoseOfTheHourThatRuns() throws {
    let noon = try instant("2026-07-01T12:00:00Z")
    let hours = (0..<3).map { index in
      var hour = WeatherHour(instant: noon.addingTimeInterval(Double(index) * 3600))
      (hour.apparentCelsius, hour.temperatureCelsius, hour.windKilometersPerHour) = (22, 21, 10)
      // What fell and blew before 13:00 is in the row of 13:00.
      (hour.precipitationMillimeters, hour.gustKilometersPerHour) = index == 1 ? (2, 35) : (0, 15)
      return hour
    }
    let found = try (0..<3).map { index in
      try #require(PresentHour.hour(at: noon.addingTimeInterval(Double(index) * 3600 + 1200), in: hours))
    }
    #expect(found.map(\.precipitationMillimeters) == [2, 0, nil] && found.map(\.gustKilometersPerHour) == [35, 15, nil])
    #expect(found.map(\.instant) == hours.map(\.instant) && found.map(PresentHour.points) == [45, 100, 100])
    #expect(PresentHour.hour(at: noon.addingTimeInterval(-1), in: hours) == nil)
  }

  @Test func anHourThatTheStoredForecastLacksIsNotDeniedByTheService() async throws {
    let body = hourlyBody("2026-07-01", [("temperature_2m", "°C", "20")])
    let service = try await service(ScriptedTransport(forecast: .body(body), marine: .body(body)))
    _ = try await service.presentHour(of: spot, policy: .cacheFirst)
    clock.advance(by: .hours(16))
    let row = try json(try await service.presentHour(of: spot, policy: .cacheOnly))
    #expect(row["instant"]?.isNull == true && row["fetched_at"]?.isNull == false)
    #expect(row["problem"]?.stringValue == "the stored forecast does not have this hour")
  }

  @Test func pointsAreThoseOfTheWords() throws {
    func points(_ change: (inout WeatherHour) -> Void) throws -> Int? {
      var hour = WeatherHour(instant: try instant("2026-07-01T12:00:00Z"))
      change(&hour)
      return PresentHour.points(hour)
    }
    #expect(try points { _ in } == nil)
    #expect(try points { $0.apparentCelsius = 22 } == 100)
    // The air feels as it is where nothing else is known.
    #expect(try points { $0.temperatureCelsius = 12 } == 80)
    #expect(try points { ($0.temperatureCelsius, $0.apparentCelsius) = (22, 27) } == 90)
    #expect(try points { ($0.apparentCelsius, $0.windKilometersPerHour) = (22, 20) } == 100)
    #expect(try points { ($0.apparentCelsius, $0.windKilometersPerHour, $0.gustKilometersPerHour) = (22, 15, 35) } == 85)
    #expect(try points { ($0.apparentCelsius, $0.precipitationMillimeters) = (22, 1.5) } == 70)
    #expect(
      try points { hour in
        var sea = SeaHour(instant: hour.instant)
        sea.waveMeters = 3.5
        (hour.apparentCelsius, hour.sea) = (22, sea)
      } == 75)
    #expect(try points { ($0.apparentCelsius, $0.precipitationMillimeters) = (-30, 9) } == 0)
  }
}
