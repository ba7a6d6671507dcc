import Foundation
import Larder
import LarderTesting
import Testing

@testable import WeatherSpotsKit

@Suite(.timeLimit(.minutes(15))) struct WeatherServiceTests {
  static let land = fullBody("2026-07-01", days: 7)
  static let sea = hourlyBody("2026-07-01", [("wave_height", "m", "1.2")])

  private let transport = ScriptedTransport(forecast: .body(land), marine: .body(sea))
  private let clock: ManualClock
  private let (spot, cadiz): (Spot, Spot)

  init() throws {
    clock = ManualClock(now: try instant("2026-07-01T12:00:00Z"))
    spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "GMT")
    cadiz = try Spot(name: "Cadiz", latitude: 36.53, longitude: -6.29, timezone: "GMT")
  }

  private func service(
    _ storage: SpotStore? = nil, limits: ProviderLimits? = nil, retry: RetryPolicy = .never
  ) async throws -> WeatherService {
    let memory = try await SpotStore(backend: InMemoryBackend())
    let clock = clock
    let provider = OpenMeteoProvider(servers: try server("http://test"), transport: transport, now: { clock.now })
    let limits = limits ?? .openMeteo(clock: clock)
    return try await WeatherService(storage ?? memory, provider: provider, limits: limits, retry: retry, clock: clock)
  }

  @Test func theAnswerIsATupleOfExactlyWhatWasAsked() async throws {
    let service = try await service()
    let (marine, current) = try await service.weather(for: spot, including: .marine, .current)
    let waves: Double? = marine.value?.hours.first?.waveMeters
    let temperature: Double? = current.value?.conditions.temperatureCelsius
    #expect(waves == 1.2 && temperature == 19)
    let query = try #require(transport.requests.first { $0.path == "/v1/forecast" }?.query())
    #expect(query.contains("current=") && !query.contains("hourly=") && !query.contains("daily="))
    #expect(transport.requests.count == 2)
  }

  @Test func astronomyIsComputedAndNothingIsFetched() async throws {
    let service = try await service()
    let sky = try await service.weather(for: spot, days: 3, including: .astronomy)
    #expect(sky.value?.map(\.day.description) == ["2026-07-01", "2026-07-02", "2026-07-03"])
    #expect(transport.requests.isEmpty)
  }

  @Test func whatIsAskedTogetherIsOneRequestToEachService() async throws {
    let service = try await service()
    let (current, hourly, daily, marine) = try await service.weather(for: spot, including: .current, .hourly, .daily, .marine)
    #expect(transport.count("/v1/forecast") == 1 && transport.count("/v1/marine") == 1)
    #expect(current.value != nil && hourly.value != nil && daily.value?.days.count == 7 && marine.value != nil)
  }

  @Test func eachKindOfDataHasItsOwnFreshness() async throws {
    let service = try await service()
    func ask() async throws -> [String] {
      let before = transport.requests.count
      _ = try await service.weather(for: spot, including: .current, .hourly, .daily, .marine)
      return transport.requests.dropFirst(before).map { url in
        let query = url.query() ?? ""
        return url.lastPathComponent + ["current=", "hourly=", "daily="].filter(query.contains).joined()
      }.sorted()
    }
    #expect(try await ask() == ["forecastcurrent=hourly=daily=", "marinehourly="])
    clock.advance(by: .seconds(500))
    #expect(try await ask() == [])
    clock.advance(by: .seconds(101))
    #expect(try await ask() == ["forecastcurrent="])
    clock.advance(by: .seconds(3000))
    #expect(try await ask() == ["forecastcurrent=hourly=daily="])
    clock.advance(by: .hours(3))
    #expect(try await ask() == ["forecastcurrent=hourly=daily=", "marinehourly="])
  }

  @Test func withoutANetworkTheLastKnownForecastIsShownForTwoDays() async throws {
    let service = try await service()
    _ = try await service.weather(for: spot, including: .hourly, .current)
    transport.set(forecast: .down, marine: .down)
    clock.advance(by: .hours(47))
    let day = try localDay("2026-07-01")
    let (hourly, current) = try await service.weather(for: spot, on: day, including: .hourly, .current)
    #expect(hourly.cached?.state == .stale)
    #expect(hourly.problem?.description == "test cannot be reached (connection refused)")
    #expect(current.words.state == "unavailable", "conditions of two days ago passed off as those of the moment")
    clock.advance(by: .hours(2))
    let reading = try await service.weather(for: spot, on: day, including: .hourly)
    #expect(reading.words.state == "unavailable" && reading.problem?.isTransient == true, "an expired forecast was shown")
  }

  @Test func noCoverageAndUnavailableAreDifferentAndKeptForDifferentTimes() async throws {
    let service = try await service()
    transport.set(forecast: .body(Self.land), marine: .body(try Fixture.text("error-400-no-data-for-location.json"), status: 400))
    let day = try localDay("2026-07-01")
    let reading = try await service.weather(for: spot, on: day, including: .marine)
    #expect(reading.words.state == "no coverage")
    clock.advance(by: .hours(6 * 24))
    _ = try await service.weather(for: spot, on: day, including: .marine)
    #expect(transport.requests.count == 1)
    clock.advance(by: .hours(25))
    _ = try await service.weather(for: spot, on: day, including: .marine)
    #expect(transport.requests.count == 2)
  }

  @Test func anUnavailableSeaIsTriedAgainInMinutesAndNotAtEveryGlance() async throws {
    let service = try await service()
    transport.set(forecast: .body(Self.land), marine: .body("<html>", status: 502))
    for _ in 0..<3 {
      let (hourly, marine) = try await service.weather(for: spot, including: .hourly, .marine)
      #expect(hourly.value?.hours.isEmpty == false)
      #expect(marine.problem?.description == "the weather service failed (status 502)")
    }
    #expect(transport.count("/v1/marine") == 1)
    transport.set(forecast: .body(Self.land), marine: .body(Self.sea))
    let asked = try await service.weather(for: spot, policy: .networkFirst(timeout: .seconds(60)), including: .marine)
    #expect(asked.value != nil, "an explicit refresh asks")
    clock.advance(by: .seconds(181))
    let later = try await service.weather(for: spot, including: .marine)
    #expect(later.value != nil)
  }

  @Test func warningsAreNotOfferedByOpenMeteoAndNotAskedFor() async throws {
    let reading = try await service().weather(for: spot, including: .alerts)
    #expect(reading.words.state == "unsupported" && transport.requests.isEmpty)
  }

  @Test func aFailedRequestIsSharedTooAndSoIsItsRetry() async throws {
    let service = try await service(retry: RetryPolicy(attempts: 2, base: .zero))
    transport.set(forecast: .body("oops", status: 500), marine: .down)
    let (current, hourly, daily) = try await service.weather(for: spot, including: .current, .hourly, .daily)
    #expect(current.problem != nil && hourly.problem != nil && daily.problem != nil)
    #expect(transport.count("/v1/forecast") == 2)
  }

  @Test func aServiceThatFailsIsLeftAloneAndTheOtherIsNot() async throws {
    let service = try await service()
    transport.set(forecast: .body(Self.land), marine: .down)
    for index in 0..<20 {
      let other = try Spot(name: "\(index)", latitude: 40 + Double(index), longitude: 0, timezone: "GMT")
      let (hourly, marine) = try await service.weather(for: other, including: .hourly, .marine)
      #expect(hourly.value != nil && marine.value == nil)
    }
    #expect(transport.count("/v1/marine") == 5 && transport.count("/v1/forecast") == 20)
  }

  @Test func theOwnQuotaIsAnErrorAndNotARequest() async throws {
    let limits = ProviderLimits(concurrency: 4, quotas: [TokenBucket(4, per: .hours(1), clock: clock)], clock: clock)
    let service = try await service(limits: limits)
    // Current, hours and days weigh 3.1 together.
    _ = try await service.weather(for: spot, including: .current, .hourly, .daily)
    let reading = try await service.weather(for: cadiz, including: .hourly)
    #expect(reading.problem?.description.hasPrefix("request quota exhausted until 2026-07-01T12:") == true)
    #expect(transport.requests.count == 1)
  }

  @Test func cacheOnlyNeverAsksAndNetworkOnlyAlwaysDoes() async throws {
    let service = try await service()
    let reading = try await service.weather(for: spot, policy: .cacheOnly, including: .hourly)
    #expect(reading.words.state == "unavailable" && reading.problem?.isTransient == false && transport.requests.isEmpty)
    for _ in 0..<2 { _ = try await service.weather(for: spot, policy: .networkOnly, including: .hourly, .daily) }
    #expect(transport.requests.count == 2)
  }

  @Test func staleWhileRevalidateAnswersAtOnceAndRefreshesWithOneRequest() async throws {
    let service = try await service()
    _ = try await service.weather(for: spot, including: .hourly, .daily)
    clock.advance(by: .hours(2))
    let (hourly, _) = try await service.weather(for: spot, policy: .staleWhileRevalidate, including: .hourly, .daily)
    #expect(hourly.cached?.state == .stale)
    await service.settled()
    #expect(transport.requests.count == 2)
    let refreshed = try await service.weather(for: spot, policy: .cacheOnly, including: .hourly)
    #expect(refreshed.cached?.state == .fresh)
  }

  @Test func dataOfOneProviderAreNeverThoseOfAnother() async throws {
    let storage = try await SpotStore(backend: InMemoryBackend())
    let clock = clock
    let recorded = try await WeatherService(
      storage, provider: OpenMeteoProvider.recorded(now: { clock.now }), limits: .openMeteo(clock: clock), clock: clock)
    let old = try await recorded.weather(for: spot, including: .hourly)
    #expect(old.value?.provenance.isRecorded == true)
    let real = try await service(storage).weather(for: spot, including: .hourly)
    #expect(real.value?.provenance == Provenance(provider: "open-meteo", server: "test", isRecorded: false))
  }

  @Test func anotherDayIsAnotherForecast() async throws {
    let service = try await service()
    _ = try await service.weather(for: spot, including: .hourly)
    _ = try await service.weather(for: spot, on: localDay("2026-07-02"), including: .hourly)
    #expect(transport.requests.count == 2)
    _ = try await service.weather(for: spot, days: 5, including: .hourly)
    #expect(transport.requests.count == 2)
    _ = try await service.weather(for: spot, days: 10, including: .hourly)
    #expect(transport.requests.count == 3)
  }

  @Test func aForecastThatCannotBeStoredIsShownAndKnownNotToBeStored() async throws {
    let disk = FaultInjectingBackend(InMemoryBackend())
    let service = try await service(try await SpotStore(backend: disk))
    let stored = try await service.forecast(for: spot)
    #expect(await service.isStored(stored) && service.storageProblem == nil)
    for call in 1...100 { disk.fail(.commit, call: call, with: RepositoryError(.full)) }
    let shown = try await service.forecast(for: cadiz)
    #expect(shown.hourly.value != nil && shown.marine.value != nil)
    #expect(await !service.isStored(shown) && service.storageProblem == "the disk is full")
    let again = try await service.forecast(for: spot)
    #expect(await service.isStored(again))
    clock.advance(by: .hours(2))
    let refreshed = try await service.forecast(for: spot)
    #expect(refreshed.hourly.cached?.state == .fresh)
    #expect(await !service.isStored(refreshed), "what is stored is the one before it")
  }
}

/// A body with all three sections in GMT: noon of the first day, hours and days from it on.
func fullBody(_ first: String, days: Int) -> String {
  let start = LocalDay(first)
  let dates = (0..<days).map { "\(start?.advanced(by: $0).description ?? "")" }
  let hours = dates.flatMap { date in (0..<24).map { "\"\(date)T\($0 < 10 ? "0" : "")\($0):00\"" } }
  return """
    {"utc_offset_seconds":0,"timezone":"GMT","current_units":{"time":"iso8601","interval":"seconds","temperature_2m":"°C"},
    "current":{"time":"\(first)T12:00","interval":900,"temperature_2m":19},
    "hourly_units":{"time":"iso8601","temperature_2m":"°C"},
    "hourly":{"time":[\(hours.joined(separator: ","))],"temperature_2m":[\(hours.map { _ in "20.5" }.joined(separator: ","))]},
    "daily_units":{"time":"iso8601","temperature_2m_max":"°C"},
    "daily":{"time":[\(dates.map { "\"\($0)\"" }.joined(separator: ","))],"temperature_2m_max":[\(dates.map { _ in "25" }.joined(separator: ","))]}}
    """
}
