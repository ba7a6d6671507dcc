import Foundation
import Larder
import LarderTesting
import StandInServer
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// Places that are asked for at the same moment, in one call.
@Suite(.timeLimit(.minutes(15))) struct GatheringTests {
  private let day: LocalDay
  init() throws { day = try localDay("2026-07-01") }

  private func request(_ number: Int, _ datasets: Set<WeatherDataset> = [.hourly], days: Int = 7) throws -> ProviderRequest {
    let place = ForecastPlace(provider: "fake", try #require(Coordinate(latitude: Double(number), longitude: 10)), timezone: "GMT")
    return ProviderRequest(place, from: day, days: days, datasets)
  }

  private func source(_ fake: PlacesProvider, requestsAtATime: Int = 4) -> GatheredSource<ProviderRequest, ProviderAnswer> {
    ServiceSource(provider: fake, maxKeysPerRequest: 25).limited(
      by: HostLimits(concurrency: ConcurrencyLimit(requestsAtATime), breaker: CircuitBreaker()))
  }

  private typealias Answers = [Task<ProviderAnswer, any Error>]

  /// Asks for places, each after the one before is being fetched.
  private func askInTurn(
    _ requests: [ProviderRequest], _ source: GatheredSource<ProviderRequest, ProviderAnswer>, _ fake: PlacesProvider
  ) async -> Answers {
    var answers: Answers = []
    for request in requests {
      let before = fake.calls.count
      answers.append(Task { try await Self.fetch(request, source) })
      await fake.gate.calls.wait { $0.count >= before + 1 }
    }
    return answers
  }

  /// Asks for places while as many requests run as may: when this returns, all of them wait.
  @MainActor private func ask(
    _ requests: [ProviderRequest], _ source: GatheredSource<ProviderRequest, ProviderAnswer>
  ) async -> Answers {
    // The calls run on this actor until they wait, so the task that comes last finds all of them waiting.
    let answers = requests.map { request in Task { @MainActor in try await Self.fetch(request, source) } }
    await Task { @MainActor in }.value
    return answers
  }

  /// Asks for places one by one until four requests run, and then for more, which wait.
  private func ask(_ more: [ProviderRequest], after fake: PlacesProvider) async throws -> Answers {
    let source = source(fake)
    return try await askInTurn((0..<4).map { try request($0) }, source, fake) + ask(more, source)
  }

  private static func fetch(
    _ request: ProviderRequest, _ source: GatheredSource<ProviderRequest, ProviderAnswer>
  ) async throws -> ProviderAnswer {
    guard case .value(let answer, _, _) = try await source.fetch(request, validator: nil) else { throw ProviderError.interrupted }
    return answer
  }

  private func failure(_ task: Task<ProviderAnswer, any Error>) async -> (any Error)? {
    do {
      _ = try await task.value
      return nil
    } catch { return error }
  }

  private func temperature(_ answer: ProviderAnswer) -> Double? { answer.hourly?.data?.hours.first?.temperatureCelsius }

  @Test func whatComesWhileFourCallsRunGoesTogetherInTheNext() async throws {
    let fake = PlacesProvider()
    let tasks = try await ask(try (4..<60).map { try request($0) }, after: fake)
    #expect(fake.calls.map(\.count) == [1, 1, 1, 1])
    fake.gate.open()
    for (number, task) in tasks.enumerated() { #expect(temperature(try await task.value) == Double(number)) }
    #expect(fake.calls.map(\.count).sorted() == [1, 1, 1, 1, 6, 25, 25] && fake.gate.calls.value.mostActive == 4)
  }

  @Test func onlyWhatWantsTheSameGoesTogether() async throws {
    let fake = PlacesProvider()
    let wanted = try (4..<24).map { try request($0, $0 % 2 == 0 ? [.hourly] : [.daily], days: $0 % 4 < 2 ? 7 : 16) }
    let tasks = try await ask(wanted, after: fake)
    fake.gate.open()
    for task in tasks { _ = try await task.value }
    #expect(fake.calls.map(\.count).sorted() == [1, 1, 1, 1, 5, 5, 5, 5])
    for call in fake.calls { #expect(Set(call.map(\.datasets)).count == 1 && Set(call.map(\.days)).count == 1) }
  }

  @Test func aCallThatFailsIsDividedUntilOnlyThePlaceThatFailsFails() async throws {
    let fake = PlacesProvider { requests in
      requests.contains { $0.place.cell.center.latitude.rounded(.down) == 11 } ? .serviceFailed(status: 502) : nil
    }
    let tasks = try await ask(try (4..<20).map { try request($0) }, after: fake)
    fake.gate.open()
    for (number, task) in tasks.enumerated() {
      if number == 11 {
        #expect(await failure(task) as? ProviderError == .serviceFailed(status: 502))
      } else {
        #expect(temperature(try await task.value) == Double(number))
      }
    }
    // Of sixteen, halves of the one with the bad place: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
    #expect(fake.calls.count == 4 + 1 + 8)
  }

  @Test(arguments: [ProviderError.serviceFailed(status: 500), .network(.timedOut(host: "test", after: .seconds(1)))])
  func aServiceThatIsOutMakesNoStorm(_ error: ProviderError) async throws {
    let fake = PlacesProvider { _ in error }
    let tasks = try await ask(try (4..<90).map { try request($0) }, after: fake)
    fake.gate.open()
    for task in tasks {
      let failure = await failure(task)
      if case CacheError.circuitOpen? = failure { continue }
      #expect(failure as? ProviderError == error)
    }
    // Five failures in a row are enough; three more may be under way then.
    #expect(fake.calls.count <= 8)
  }

  @Test(arguments: [
    ProviderError.rateLimited(.minute, retryAfter: .seconds(60), reason: "Minutely"), .serviceFailed(status: 503, retryAfter: .seconds(60)),
  ])
  func whoAsksForTimeIsNotAskedAgainForEachPlace(_ failure: ProviderError) async throws {
    let fake = PlacesProvider { _ in failure }
    let source = source(fake, requestsAtATime: 1)
    let first = await askInTurn([try request(0)], source, fake)
    let tasks = first + (await ask(try (1..<20).map { try request($0) }, source))
    fake.gate.open()
    #expect(await self.failure(tasks[0]) as? ProviderError == failure)
    for task in tasks.dropFirst() {
      guard case CacheError.circuitOpen? = await self.failure(task) else {
        Issue.record("a place was requested before the time was over")
        continue
      }
    }
    #expect(fake.calls.map(\.count) == [1])
  }

  @Test func whoLeavesLeavesTheOthersAndTheLastOneTakesTheCallAlong() async throws {
    let fake = PlacesProvider()
    let source = source(fake)
    let first = await askInTurn(try (0..<4).map { try request($0) }, source, fake)
    let waiting = await ask(try (4..<7).map { try request($0) }, source)
    waiting[0].cancel()
    #expect(await failure(waiting[0]) is CancellationError)
    // Nobody waits for the first call any more: it ends, and the two go.
    first[0].cancel()
    #expect(await failure(first[0]) is CancellationError)
    await fake.gate.calls.wait { $0.count >= 5 }
    #expect(fake.calls[4].count == 2 && fake.gate.calls.value.cancelled == 1)
    waiting[1].cancel()
    #expect(await failure(waiting[1]) is CancellationError)
    #expect(fake.gate.calls.value.cancelled == 1)
    fake.gate.open()
    #expect(temperature(try await waiting[2].value) == 6)
    for task in first.dropFirst() { #expect(temperature(try await task.value) != nil) }
    #expect(fake.calls.count == 5)
  }

  @Test func quotasCountPlacesAndAFailureOfOneIsKeptApart() async throws {
    let clock = ManualClock(now: try Date("2026-07-01T12:00:00Z", strategy: .iso8601))
    let fake = PlacesProvider()
    let quota = TokenBucket(1000, per: .hours(24), clock: clock)
    let limits = ProviderLimits(concurrency: 4, quotas: [quota], clock: clock)
    let service = try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: fake, limits: limits, retry: .never, gathersPlaces: true, clock: clock)
    let spots = try (0..<30).map { try Spot(name: "\($0)", latitude: Double($0), longitude: 10, timezone: "GMT") }
    let callers = spots.map { spot in Task { try await service.weather(for: spot, including: .hourly, .daily) } }
    await fake.gate.calls.wait { $0.count >= 1 }
    fake.gate.open()
    for (number, caller) in callers.enumerated() {
      let (hourly, daily) = try await caller.value
      #expect(hourly.value?.hours.first?.temperatureCelsius == Double(number) && daily.value != nil)
    }
    // One request for each spot, of two kinds; as many places as were asked for one by one.
    #expect(fake.calls.reduce(0) { $0 + $1.count } == 30 && quota.available == 1000 - 60)
    #expect(fake.calls.allSatisfy { $0.allSatisfy { $0.datasets == [.hourly, .daily] } })
    for spot in spots { #expect(try await service.weather(for: spot, policy: .cacheOnly, including: .hourly).value != nil) }
  }

  /// Answers each place with a body for its latitude, several as an array.
  private func places(_ body: @escaping @Sendable (String) -> String) throws -> (transport: PlacesTransport, provider: OpenMeteoProvider) {
    let transport = PlacesTransport(body)
    return (transport, OpenMeteoProvider(servers: try server("http://test"), transport: transport))
  }

  @Test func onePlaceThatCannotBeReadDoesNotSinkTheOthers() async throws {
    let whole = hourlyBody("2026-07-01", [("temperature_2m", "°C", "21.5")])
    let broken = whole.replacing("\"temperature_2m\":[21.5,", with: "\"temperature_2m\":[")
    let (transport, provider) = try places { $0.hasPrefix("5.") ? broken : whole }
    let source = ServiceSource(provider: provider, maxKeysPerRequest: 25).limited(
      by: HostLimits(concurrency: ConcurrencyLimit(1), breaker: CircuitBreaker()))
    let tasks = await ask(try (0..<10).map { try request($0) }, source)
    for (number, task) in tasks.enumerated() {
      if number == 5 {
        #expect(await failure(task) as? ProviderError == .malformed("columns of different lengths"))
      } else {
        #expect(try await task.value.hourly?.data != nil)
      }
    }
    // All ten, or one and nine, and then halves of those with the bad one.
    #expect(transport.count <= 11)
  }

  @Test func aServiceThatRefusesEverythingMakesNoStorm() async throws {
    let (transport, provider) = try places { _ in #"{"error":true,"reason":"Cannot initialize"}"# }
    let source = ServiceSource(provider: provider, maxKeysPerRequest: 25).limited(by: HostLimits(breaker: CircuitBreaker()))
    for task in await ask(try (0..<90).map { try request($0) }, source) {
      let failure = await failure(task)
      if case CacheError.circuitOpen? = failure { continue }
      #expect(failure as? ProviderError == .rejected(status: 200, reason: "Cannot initialize"))
    }
    // Five failures in a row are enough; five more may be under way then.
    #expect(transport.count <= 10)
  }
}

/// Answers for several places, when the gate is open, with a temperature that is the place's latitude.
private final class PlacesProvider: ForecastProvider {
  let gate = CallGate()
  private let asked = Mutex<[[ProviderRequest]]>([])
  private let failure: @Sendable ([ProviderRequest]) -> ProviderError?

  init(failure: @escaping @Sendable ([ProviderRequest]) -> ProviderError? = { _ in nil }) {
    self.failure = failure
  }

  var name: String { "fake" }
  var attribution: [String] { [] }
  var needsCountry: Bool { false }
  var placesPerRequest: Int { 25 }
  func service(of dataset: WeatherDataset) -> String? { dataset == .marine ? "marine" : dataset == .alerts ? nil : "forecast" }
  func weight(of request: ProviderRequest) -> Double { Double(request.datasets.count) }
  func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> { [.hourly, .daily, .marine] }

  var calls: [[ProviderRequest]] { asked.withLock { $0 } }

  func fetch(_ request: ProviderRequest) async -> ProviderAnswer {
    await fetch([request]).first ?? ProviderAnswer(failure: .malformed("no place"), of: request.datasets)
  }

  func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    asked.withLock { $0.append(requests) }
    let isLet = await gate.pass()
    let error = isLet ? failure(requests) : .network(.cancelled)
    return requests.map { request in error.map { ProviderAnswer(failure: $0, of: request.datasets) } ?? Self.answer(request) }
  }

  private static func answer(_ request: ProviderRequest) -> ProviderAnswer {
    let provenance = Provenance(provider: "fake", server: "test", isRecorded: false)
    var hour = WeatherHour(instant: request.day.noon(in: .gmt))
    hour.temperatureCelsius = request.place.cell.center.latitude.rounded(.down)
    var answer = ProviderAnswer()
    if request.datasets.contains(.hourly) { answer.hourly = .data(HourlyForecast(hours: [hour], provenance: provenance)) }
    if request.datasets.contains(.daily) {
      answer.daily = .data(DailyForecast(days: [WeatherDay(request.day)], provenance: provenance))
    }
    if request.datasets.contains(.marine) { answer.marine = .noCoverage(for: .hours(1)) }
    return answer
  }
}

/// Answers with a body for each asked latitude, as an array when there are several.
private final class PlacesTransport: Transport {
  private let body: @Sendable (String) -> String
  private let requests = Mutex(0)

  init(_ body: @escaping @Sendable (String) -> String) { self.body = body }

  var count: Int { requests.withLock { $0 } }

  nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    requests.withLock { $0 += 1 }
    let items = URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
    let latitudes = (items.first { $0.name == "latitude" }?.value ?? "").split(separator: ",").map(String.init)
    let bodies = latitudes.map(body)
    return TransportResponse(status: 200, body: Data((bodies.count == 1 ? bodies[0] : "[\(bodies.joined(separator: ","))]").utf8))
  }
}
