import Foundation
import Larder
import LarderTesting
import StandInServer
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// What a server did, in later runs and for other servers.
@Suite(.timeLimit(.minutes(15))) struct HoldsTests {
  private let clock: ManualClock
  private let day: LocalDay
  init() throws {
    clock = ManualClock(now: try instant("2026-07-01T12:00:00Z"))
    day = try localDay("2026-07-01")
  }

  private func provider(_ transport: any Transport, _ holds: Holds, _ base: String = "http://test") throws -> OpenMeteoProvider {
    let clock = clock
    return OpenMeteoProvider(servers: try server(base), transport: transport, holds: holds, now: { clock.now })
  }

  private func request(_ datasets: Set<WeatherDataset> = [.hourly], latitude: Double = 48) throws -> ProviderRequest {
    let place = ForecastPlace(provider: "open-meteo", try #require(Coordinate(latitude: latitude, longitude: 1)), timezone: "GMT")
    return ProviderRequest(place, from: day, days: 7, datasets)
  }

  @Test(arguments: [(503, "{}", 3600.0), (429, #"{"error":true,"reason":"Daily API request limit exceeded."}"#, 43_200)])
  func whoAsksForTimeGetsItFromLaterRunsToo(_ status: Int, _ body: String, _ seconds: Double) async throws {
    let storage = try await SpotStore(backend: InMemoryBackend())
    let retryAfter: Duration? = status == 503 ? .seconds(seconds) : nil
    let transport = ScriptedTransport(forecast: .body(body, status: status, retryAfter: retryAfter), marine: .body(WeatherServiceTests.sea))
    for _ in 0..<5 {
      let provider = try provider(transport, try await Holds(storage, clock: clock))
      _ = await provider.fetch(try request())
      _ = await provider.fetch(try request([.marine]))
    }
    #expect(transport.requests.count == 1)
    let refused = await (try provider(transport, try await Holds(storage, clock: clock))).fetch(try request()).hourly?.failure
    let end = (clock.now + seconds).formatted(.iso8601)
    #expect(refused?.description.hasSuffix("; not asked again before \(end)") == true)
    // Another host is none of its business.
    _ = await (try provider(transport, try await Holds(storage, clock: clock), "http://other:81")).fetch(try request())
    #expect(transport.requests.count == 2)
    clock.advance(by: .seconds(seconds + 1))
    _ = await (try provider(transport, try await Holds(storage, clock: clock))).fetch(try request())
    #expect(transport.requests.count == 3)
  }

  @Test func aShorterHoldDoesNotEndALongerOne() async {
    let holds = Holds(clock: clock)
    let problem = WeatherProblem(ProviderError.serviceFailed(status: 503))
    for wait in [60, 3_600, 10] { await holds.hold("a", because: problem, for: .seconds(wait)) }
    #expect(holds.hold("a")?.until == clock.now + 3_600)
    // A hold from the future is replaced, since the clock was set back.
    clock.setWall(by: -7_200)
    await holds.hold("a", because: problem, for: .seconds(10))
    #expect(holds.hold("a")?.until == clock.now + 10)
  }

  @Test func anAnswerForAnotherNumberOfPlacesIsNotAskedForAgainOneByOne() async throws {
    for (body, found, asked) in [(WeatherServiceTests.land, 1, 25), ("[\(WeatherServiceTests.land),\(WeatherServiceTests.land)]", 2, 1)] {
      let transport = ScriptedTransport(forecast: .body(body), marine: .down)
      let answers = try await provider(transport, Holds(clock: clock)).fetch(try (0..<asked).map { try request(latitude: Double($0)) })
      #expect(transport.requests.count == 1)
      #expect(answers.allSatisfy { $0.hourly?.failure == .mismatched("\(found) places instead of \(asked)") })
    }
  }

  // MARK: What belongs to a server

  private func service(_ storage: SpotStore, _ transport: any Transport, _ base: String) async throws -> WeatherService {
    try await WeatherService(
      storage, provider: try provider(transport, try await Holds(storage, clock: clock), base), limits: .openMeteo(clock: clock),
      retry: .never, clock: clock)
  }

  @Test func whatOneServerDidIsNotBelievedOfAnother() async throws {
    let storage = try await SpotStore(backend: InMemoryBackend())
    let spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "GMT")
    let inland = try Fixture.text("marine-inland-amsterdam-null.json")
    for sea in [ScriptedTransport.Step.body("<html>", status: 502), .body(inland)] {
      let bad = ScriptedTransport(forecast: .body(WeatherServiceTests.land), marine: sea)
      let good = ScriptedTransport(forecast: .body(WeatherServiceTests.land), marine: .body(WeatherServiceTests.sea))
      _ = try await service(storage, bad, "http://bad\(inland.count)").forecast(for: spot)
      let forecast = try await service(storage, good, "http://good:8080").forecast(for: spot)
      #expect(forecast.marine.value != nil && forecast.hourly.value?.provenance.server == "good")
      let seas = RepositorySchema<CachedEntry<ForecastPeriod, MarineForecast>>("weather-marine")
      try await storage.store.repository(seas).replaceAll(with: [])
    }
    // Nobody's data are another's, but when nobody is asked at all the newest are shown.
    let none = try await service(storage, ScriptedTransport(forecast: .down, marine: .down), "http://third").forecast(
      for: spot, policy: .cacheOnly)
    #expect(none.hourly.value == nil)
    let clock = clock
    let own = OpenMeteoProvider(transport: ScriptedTransport(forecast: .down, marine: .down), now: { clock.now })
    let quiet = try await WeatherService(storage, provider: own, limits: .openMeteo(clock: clock), retry: .never, clock: clock)
    #expect(try await quiet.forecast(for: spot, policy: .cacheOnly).hourly.value != nil)
    #expect(try await quiet.forecast(for: spot, policy: .cacheFirst).hourly.value == nil)
  }

  @Test func afterMidnightYesterdaysAnswerIsShownAtOnceWhileTodaysIsFetched() async throws {
    let storage = try await SpotStore(backend: InMemoryBackend())
    let spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "GMT")
    let transport = GatedTransport(WeatherServiceTests.land)
    transport.gate.open()
    _ = try await service(storage, transport, "http://test").weather(for: spot, including: .hourly)
    clock.advance(by: .hours(13))
    // Nobody answers any more: who waits for it waits for ever.
    let silent = GatedTransport(WeatherServiceTests.land)
    let later = try await service(storage, silent, "http://test")
    let hourly = try await later.weather(for: spot, policy: .staleWhileRevalidate, including: .hourly)
    #expect(hourly.cached?.fetchedAt == clock.now - 13 * 3600)
    await silent.gate.calls.wait { $0.active == 1 }
    silent.gate.open()
    await later.settled()
    #expect(silent.gate.calls.value.count == 1)
  }

  @Test func moreSpotsThanEverHaveRoomForTheirForecasts() async throws {
    let storage = try await SpotStore(backend: InMemoryBackend())
    let spots = try (0..<560).map {
      try Spot(name: "\($0)", latitude: Double($0 % 160) / 2, longitude: Double($0 / 160) * 3, timezone: "GMT")
    }
    try await storage.spots.save(contentsOf: spots)
    let transport = ScriptedTransport(forecast: .body(hourlyBody("2026-07-01", [("temperature_2m", "°C", "1")])), marine: .down)
    let limits = ProviderLimits(concurrency: 4, quotas: [])
    let provider = try provider(transport, Holds(clock: clock))
    let service = try await WeatherService(storage, provider: provider, limits: limits, retry: .never, clock: clock)
    for spot in spots { #expect(try await service.weather(for: spot, including: .hourly).value != nil) }
    var there = 0
    for spot in spots where try await service.weather(for: spot, policy: .cacheOnly, including: .hourly).value != nil { there += 1 }
    #expect(there == 560)
  }
}
