import Foundation
import Larder
import LarderTesting
import StandInServer
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// WeatherKit's REST API against a real server on loopback.
///
/// The bodies were written by hand, of the documented shape.
@Suite(.needsSigning, .timeLimit(.minutes(15))) struct WeatherKitProviderTests {
  private let vector: WeatherKitTokenTests.Vector
  private let place: ForecastPlace
  private let day: LocalDay
  private let body: String
  private let clock: ManualClock
  private let spot: Spot

  init() throws {
    vector = try WeatherKitTokenTests.Vector.read()
    place = ForecastPlace(
      provider: "weatherkit", try #require(Coordinate(latitude: 48.39, longitude: -4.49)), timezone: "Europe/Paris", country: "FR")
    day = try localDay("2026-07-01")
    body = try Fixture.text("weatherkit-all-datasets.json")
    clock = ManualClock(now: try instant("2026-07-01T12:00:00Z"))
    spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "Europe/Paris", country: "FR")
  }

  private func provider(_ url: URL) throws -> WeatherKitProvider {
    let clock = clock
    return WeatherKitProvider(key: try vector.key(), server: url, timeout: .seconds(300), now: { clock.now })
  }

  private func request(_ datasets: Set<WeatherDataset>) -> ProviderRequest { ProviderRequest(place, from: day, days: 7, datasets) }

  /// Returns the answer of a server, and the requests that the server got.
  private func answer(
    _ datasets: Set<WeatherDataset>, _ handler: @escaping LoopbackServer.Handler
  ) async throws -> (ProviderAnswer, [LoopbackServer.Request]) {
    let server = try LoopbackServer(handler)
    let answer = try await provider(server.start()).fetch(request(datasets))
    await server.stop()
    return (answer, server.requests)
  }

  /// A server that has the data sets of all names, or others, and answers for them with a status.
  private func server(_ names: String? = nil, status: AwaitableState<Int> = .init(200)) throws -> LoopbackServer {
    let (body, names) = (body, names ?? #"["currentWeather","forecastDaily","forecastHourly","weatherAlerts"]"#)
    return try LoopbackServer { request in
      if request.path.contains("availability") { return .init(200, names) }
      return .init(request.query["dataSets"]?.contains("weatherAlerts") == true ? status.value : 200, body)
    }
  }

  @Test func oneSignedRequestAsksForTheDataSetsAndTheirDays() async throws {
    let (body, pem) = (body, vector.pkcs8_pem)
    let (answer, requests) = try await answer([.current, .hourly, .daily, .alerts]) { request in
      let token = request.headers["authorization"]?.replacing("Bearer ", with: "") ?? ""
      return .init(try Signing.verifies(token, pem) ? 200 : 401, body)
    }
    #expect(requests.map(\.path) == ["/api/v1/weather/en/48.39500/-4.48814"])
    #expect(
      requests.first?.query == [
        "dataSets": "currentWeather,forecastHourly,forecastDaily,weatherAlerts", "timezone": "Europe/Paris", "countryCode": "FR",
        "hourlyStart": "2026-06-30T22:00:00Z", "hourlyEnd": "2026-07-07T22:00:00Z", "dailyStart": "2026-06-30T22:00:00Z",
        "dailyEnd": "2026-07-07T22:00:00Z",
      ])
    let current = try #require(answer.current?.data).conditions
    #expect(current.temperatureCelsius == 17.6 && current.humidityPercent == 77 && current.condition == "Blowing dust")
    let hours = try #require(answer.hourly?.data).hours
    #expect(hours.count == 48 && hours[0].precipitationPercent == 29 && hours[1].words == "Partly cloudy")
    // The rain of the hour that begins at 22:00 is that of the row of 23:00.
    #expect(hours[0].precipitationMillimeters == nil && hours[3].precipitationMillimeters == 0.2)
    let days = try #require(answer.daily?.data).days
    #expect(days.map(\.day.description) == ["2026-07-01", "2026-07-02", "2026-07-03"] && days[0].windDegrees == 245)
    let alert = try #require(answer.alerts?.data?.alerts.first)
    #expect(alert.summary == "Moderate Wind" && alert.source == "Météo-France" && alert.severity == "moderate")
  }

  @Test func aRefusedTokenIsRenewedOnceAndThenWorks() async throws {
    let body = body
    let refused = Mutex<String?>(nil)
    let (answer, requests) = try await answer([.current]) { request in
      let token = request.headers["authorization"]
      let first = refused.withLock { first in
        first = first ?? token
        return first
      }
      return .init(token == first ? 401 : 200, body)
    }
    #expect(answer.current?.data != nil && requests.count == 2)
    #expect(Set(requests.map { $0.headers["authorization"] }).count == 2)
  }

  @Test func aKeyThatIsNotAcceptedIsAskedTwiceAndNeverInALoop() async throws {
    let (answer, requests) = try await answer([.current]) { _ in .init(401, #"{"reason":"NOT_ENABLED"}"#) }
    #expect(answer.current?.failure == .unauthorized(reason: "NOT_ENABLED") && requests.count == 2)
  }

  @Test func manyRequestsShareOneToken() async throws {
    let body = body
    let server = try LoopbackServer { _ in .init(200, body) }
    let provider = try provider(await server.start())
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<20 { group.addTask { _ = await provider.fetch(request([.current])) } }
    }
    #expect(server.requests.count == 20 && Set(server.requests.map { $0.headers["authorization"] }).count == 1)
    await server.stop()
  }

  @Test(
    arguments: [
      (404, #"{"status":404,"error":"Not Found","message":"no route","path":"/x"}"#, .rejected(status: 404, reason: "no route")),
      (400, #"{"status":400,"error":"Bad Request","message":"bad\u001b[2J zone"}"#, .rejected(status: 400, reason: "bad[2J zone")),
      (403, "", .unauthorized(reason: "status 403")), (500, "<html>", .serviceFailed(status: 500)),
      (429, "", .rateLimited(.minute, retryAfter: .seconds(60), reason: "status 429")), (200, "<html>", .notJSON(status: 200)),
      (200, #"{"currentWeather":{"metadata":"#, .interrupted),
      (200, #"{"currentWeather":{"metadata":{"expireTime":"soon"}}}"#, .malformed("currentWeather.metadata is not as documented")),
    ] as [(Int, String, ProviderError)])
  func everyFailureIsOneTypedError(_ status: Int, _ text: String, _ error: ProviderError) async throws {
    let (answer, _) = try await answer([.current]) { _ in .init(status, text) }
    #expect(answer.current?.failure == error)
  }

  @Test(arguments: [429, 500, 503]) func aServiceThatAsksToWaitSaysHowLong(_ status: Int) async throws {
    let (answer, _) = try await answer([.current]) { _ in .init(status, "", headers: ["Retry-After": "90"]) }
    #expect(answer.current?.failure?.retryAfter == .seconds(90))
  }

  @Test func aMissingDataSetIsNotOfferedAndAnotherUnitIsRefused() async throws {
    let text =
      #"{"currentWeather":{"metadata":{"expireTime":"2026-07-01T12:05:00Z","units":"e"},"asOf":"2026-07-01T12:00:00Z","temperature":64}}"#
    let (answer, _) = try await answer([.current, .hourly]) { _ in .init(200, text) }
    #expect(answer.hourly?.failure == .unsupported)
    #expect(answer.current?.failure == .unexpectedUnit(column: "units", unit: "e"))
  }

  @Test func availabilityIsAskedOnceAndBeforeWarningsArePromised() async throws {
    let server = try server(#"["currentWeather","forecastDaily","forecastHourly"]"#)
    let service = try await service(server.start())
    for _ in 0..<2 {
      let (current, alerts, marine) = try await service.weather(for: spot, including: .current, .alerts, .marine)
      #expect(current.value != nil && alerts.words.state == "unsupported" && marine.words.state == "unsupported")
    }
    #expect(server.requests.map(\.path) == ["/api/v1/availability/48.39500/-4.48814", "/api/v1/weather/en/48.39500/-4.48814"])
    #expect(server.requests.first?.query == ["country": "FR"])
    #expect(server.requests.last?.query["dataSets"] == "currentWeather")
    await server.stop()
  }

  @Test func theProvidersExpiryWinsOverOurs() async throws {
    let server = try server()
    let service = try await service(server.start())
    _ = try await service.weather(for: spot, including: .current)
    clock.advance(by: .seconds(299))
    let fresh = try await service.weather(for: spot, policy: .cacheOnly, including: .current)
    #expect(fresh.cached?.state == .fresh)
    clock.advance(by: .seconds(2))
    let stale = try await service.weather(for: spot, policy: .cacheOnly, including: .current)
    #expect(stale.cached?.state == .stale)  // ours would be ten minutes
    await server.stop()
  }

  @Test func warningsAreNeverShownWhenTheyAreOld() async throws {
    let status = AwaitableState(200)
    let server = try server(#"["weatherAlerts"]"#, status: status)
    let service = try await service(server.start())
    let first = try await service.weather(for: spot, including: .alerts)
    #expect(first.value?.alerts.count == 1)
    status.update { $0 = 500 }
    clock.advance(by: .seconds(301))
    let later = try await service.weather(for: spot, including: .alerts)
    #expect(later.value == nil && later.problem != nil)
    await server.stop()
  }

  @Test func theWarningsOfTheLastAnswerAreShownAsSuchWhenTheyCannotBeRefreshed() async throws {
    let status = AwaitableState(200)
    let server = try server(status: status)
    let service = try await service(server.start())
    #expect(try await service.forecast(for: spot).card(.init()).contains("ALERT  moderate, Moderate Wind"))
    status.update { $0 = 500 }
    clock.advance(by: .seconds(600))
    let later = try await service.forecast(for: spot)
    let card = later.card(.init())
    #expect(card.contains("ALERT? last known 10 min ago, not current, moderate, Moderate Wind"))
    #expect(later.alerts?.value == nil && later.lastKnownAlerts?.ageSeconds == 600)
    // What has ended since is not said any more.
    clock.advance(by: .hours(10))
    #expect(try await service.forecast(for: spot).lastKnownAlerts?.alerts.isEmpty == true)
    await server.stop()
  }

  @Test func aDataSetWithAGapDoesNotSinkTheOthersAndSaysWhatItLacks() async throws {
    let gap = body.replacing(#""expireTime": "2026-07-01T12:05:00Z","#, with: "", maxReplacements: 1)
      .replacing(#""expireTime":"2026-07-01T12:05:00Z","#, with: "", maxReplacements: 1)
    #expect(gap != body)
    let (answer, _) = try await answer([.current, .hourly, .daily, .alerts]) { _ in .init(200, gap) }
    #expect(answer.hourly?.data?.hours.count == 48 && answer.daily?.data?.days.count == 3 && answer.alerts?.data != nil)
    #expect(answer.current?.failure == .malformed("currentWeather.metadata.expireTime is missing"))
  }

  @Test func aPartThatIsNoPartIsLeftOutAndTheHourStays() throws {
    let text = #"""
      {"forecastHourly":{"metadata":{"expireTime":"2026-07-01T13:00:00Z"},
       "hours":[{"forecastStart":"2026-07-01T13:00:00Z","precipitationChance":1e308,"humidity":0.5}]}}
      """#
    let answer = try WeatherKitResponse(Data(text.utf8)).answer(to: [.hourly], in: .gmt, .init(provider: "", server: "", isRecorded: true))
    let hour = try #require(answer.hourly?.data?.hours.first)
    #expect(hour.precipitationPercent == nil && hour.humidityPercent == 50)
  }

  @Test func aDayThatCannotBeWrittenIsLeftOut() throws {
    let text = #"""
      {"forecastDaily":{"metadata":{"expireTime":"2026-07-01T13:00:00Z"},
       "days":[{"forecastStart":"9999-12-31T23:00:00Z"},{"forecastStart":"2026-07-01T00:00:00Z"}]}}
      """#
    let answer = try WeatherKitResponse(Data(text.utf8)).answer(to: [.daily], in: .gmt, .init(provider: "", server: "", isRecorded: true))
    #expect(answer.daily?.data?.days.map(\.day.description) == ["2026-07-01"])
  }

  @Test func theWindOfADayIsNotTheMeanOfItsDaytime() async throws {
    let server = try server(#"["currentWeather","forecastDaily","forecastHourly"]"#)
    let service = try await service(server.start())
    let forecast = try await service.forecast(for: spot, days: 2)
    #expect(forecast.daily.value?.days.first?.windKilometersPerHour == nil)
    let interval = forecast.day.interval(in: spot.zone)
    let hours = forecast.hours.filter { interval.start <= $0.instant && $0.instant < interval.end }
    let strongest = hours.compactMap(\.windKilometersPerHour).max()
    let report = try #require(ForecastReport(forecast))
    #expect(report.days.first?.windMaxKmh == strongest && strongest != 21.5)
    await server.stop()
  }

  @Test func aRefusedKeyMakesNoStormAndStaysRefusedAcrossRuns() async throws {
    let server = try LoopbackServer { _ in .init(401, #"{"reason":"NOT_ENABLED"}"#) }
    let url = try await server.start()
    let storage = try await SpotStore(backend: InMemoryBackend())
    let spots = try (0..<100).map {
      try Spot(name: "\($0)", latitude: Double($0) / 2, longitude: 2, timezone: "Europe/Paris", country: "FR")
    }
    func run() async throws {
      let clock = clock
      let provider = WeatherKitProvider(
        key: try vector.key(), server: url, timeout: .seconds(300), holds: try await Holds(storage, clock: clock), now: { clock.now })
      let service = try await WeatherService(storage, provider: provider, limits: .weatherKit(clock: clock), retry: .never, clock: clock)
      await withTaskGroup(of: Void.self) { group in
        for spot in spots {
          group.addTask { do { _ = try await service.forecast(for: spot) } catch { Issue.record(error) } }
        }
      }
    }
    try await run()
    // Four may be under way with the first token; then one tries another.
    #expect(server.requests.count <= 5)
    #expect(Set(server.requests.map { $0.headers["authorization"] }).count == 2)
    let before = server.requests.count
    for _ in 0..<3 { try await run() }
    #expect(server.requests.count == before)
    clock.advance(by: WeatherKitTokens.refusalLifetime + .seconds(1))
    try await run()
    #expect(server.requests.count > before && server.requests.count <= 2 * before)
    await server.stop()
  }

  @Test func theAttributionHasTheNameAndWholeURLs() async throws {
    let server = try LoopbackServer { _ in
      .init(200, #"{"logoDark@1x":"/assets/branding/en/Apple_Weather_blk.png","serviceName":"Apple Weather"}"#)
    }
    let url = try await server.start()
    let marks = try await provider(url).attributionMarks()
    #expect(marks.serviceName == "Apple Weather")
    #expect(marks.marks["logoDark@1x"]?.absoluteString == "\(url)/assets/branding/en/Apple_Weather_blk.png")
    #expect(server.requests.first?.headers["authorization"] == nil)
    await server.stop()
  }

  @Test func aRedirectToAnotherHostDoesNotGetTheToken() async throws {
    let other = try LoopbackServer { _ in .init(200, "{}") }
    // Another name of loopback is another host.
    let target = try await other.start().absoluteString.replacing("127.0.0.1", with: "localhost")
    let server = try LoopbackServer { _ in .init(302, "", headers: ["Location": "\(target)/elsewhere"]) }
    _ = try await provider(server.start()).fetch(request([.current]))
    #expect(other.requests.allSatisfy { $0.headers["authorization"] == nil })
    await server.stop()
    await other.stop()
  }

  private func service(_ url: URL) async throws -> WeatherService {
    try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: try provider(url), limits: .weatherKit(clock: clock), retry: .never,
      clock: clock)
  }

}
