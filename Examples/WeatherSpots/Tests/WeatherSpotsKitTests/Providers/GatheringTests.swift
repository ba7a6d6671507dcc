import Foundation
import Larder
import LarderTesting
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// Places that are asked for at the same moment, in one call.
@Suite(.timeLimit(.minutes(10))) struct GatheringTests {
  private let day: LocalDay
  init() throws { day = try localDay("2026-07-01") }

  private func request(_ number: Int, _ datasets: Set<WeatherDataset> = [.hourly], days: Int = 7) throws -> ProviderRequest {
    let place = ForecastPlace(provider: "fake", try #require(Coordinate(latitude: Double(number), longitude: 10)), timezone: "GMT")
    return ProviderRequest(place, from: day, days: days, datasets)
  }

  private func gathering(_ fake: PlacesProvider) -> GatheringProvider {
    GatheringProvider(fake, limits: ProviderLimits(concurrency: nil, quotas: []))
  }

  /// Asks for places; the first come first, and each is on its way before the next begins.
  private func ask(_ requests: [ProviderRequest], _ gathering: GatheringProvider) async -> [Task<ProviderAnswer, Never>] {
    var tasks: [Task<ProviderAnswer, Never>] = []
    for request in requests {
      let before = gathering.counts.waiting + gathering.counts.asked
      tasks.append(Task { await gathering.fetch(request) })
      while gathering.counts.waiting + gathering.counts.asked == before { await Task.yield() }
    }
    return tasks
  }

  private func temperature(_ answer: ProviderAnswer) -> Double? { answer.hourly?.here()?.hours.first?.temperatureCelsius }

  @Test func whatComesWhileFourCallsRunGoesTogetherInTheNext() async throws {
    let fake = PlacesProvider(isOpen: false)
    let gathering = gathering(fake)
    let tasks = await ask(try (0..<60).map { try request($0) }, gathering)
    await fake.waitForCalls(4)
    #expect(gathering.counts.waiting == 56 && fake.calls.map(\.count) == [1, 1, 1, 1])
    fake.open()
    for (number, task) in tasks.enumerated() { #expect(temperature(await task.value) == Double(number)) }
    #expect(fake.calls.map(\.count).sorted() == [1, 1, 1, 1, 6, 25, 25] && fake.mostAtATime == 4)
    #expect(gathering.counts == (0, 0))
  }

  @Test func onlyWhatWantsTheSameGoesTogether() async throws {
    let fake = PlacesProvider(isOpen: false)
    let gathering = gathering(fake)
    let wanted: [ProviderRequest] =
      try (0..<4).map { try request($0) }
      + (4..<24).map { try request($0, $0 % 2 == 0 ? [.hourly] : [.marine], days: $0 % 4 < 2 ? 7 : 16) }
    let tasks = await ask(wanted, gathering)
    await fake.waitForCalls(4)
    fake.open()
    for task in tasks { _ = await task.value }
    #expect(fake.calls.map(\.count).sorted() == [1, 1, 1, 1, 5, 5, 5, 5])
    for call in fake.calls { #expect(Set(call.map(\.datasets)).count == 1 && Set(call.map(\.days)).count == 1) }
  }

  @Test func aCallThatFailsIsAskedAgainOneByOneAndOnlyThePlaceThatFailsFails() async throws {
    let fake = PlacesProvider(isOpen: false) { requests in
      requests.contains { $0.place.cell.center.latitude.rounded(.down) == 11 } ? .serviceFailed(status: 502) : nil
    }
    let gathering = gathering(fake)
    let tasks = await ask(try (0..<20).map { try request($0) }, gathering)
    await fake.waitForCalls(4)
    fake.open()
    for (number, task) in tasks.enumerated() {
      let answer = await task.value
      #expect(temperature(answer) == (number == 11 ? nil : Double(number)))
      #expect(answer.hourly?.failure == (number == 11 ? .serviceFailed(status: 502) : nil))
    }
    #expect(fake.calls.count == 4 + 1 + 16)
    // From then on the service is asked for one at a time.
    fake.close()
    let later = await ask(try (30..<40).map { try request($0) }, gathering)
    fake.open()
    for task in later { _ = await task.value }
    #expect(fake.calls.dropFirst(21).allSatisfy { $0.count == 1 })
  }

  @Test(arguments: [ProviderError.serviceFailed(status: 500), .network(.timedOut(host: "test", after: .seconds(1)))])
  func aServiceThatIsOutMakesNoStorm(_ error: ProviderError) async throws {
    let fake = PlacesProvider(isOpen: false) { _ in error }
    let gathering = gathering(fake)
    let tasks = await ask(try (0..<90).map { try request($0) }, gathering)
    await fake.waitForCalls(4)
    fake.open()
    for task in tasks { #expect(await task.value.hourly?.failure == error) }
    // Five failures in a row are enough; three more may be under way then.
    #expect(fake.calls.count <= 8)
  }

  @Test(
    arguments: [
      ProviderError.rateLimited(.minute, retryAfter: .seconds(60), reason: "Minutely API"),
      .serviceFailed(status: 503, retryAfter: .seconds(60)),
    ]) func whoAsksForTimeIsNotAskedAgainForEachPlace(_ failure: ProviderError) async throws
  {
    let fake = PlacesProvider(isOpen: false) { _ in failure }
    // One call at a time: with more, as many failures as are enough would end it too.
    let gathering = GatheringProvider(fake, limits: ProviderLimits(concurrency: nil, quotas: []), callsAtATime: 1)
    let tasks = await ask(try (0..<20).map { try request($0) }, gathering)
    await fake.waitForCalls(1)
    fake.open()
    for task in tasks { #expect(await task.value.hourly?.failure == failure) }
    #expect(fake.calls.map(\.count) == [1])
  }

  @Test func whoLeavesLeavesTheOthersAndTheLastOneTakesTheCallAlong() async throws {
    let fake = PlacesProvider(isOpen: false)
    let gathering = gathering(fake)
    let first = await ask(try (0..<4).map { try request($0) }, gathering)
    await fake.waitForCalls(4)
    let waiting = await ask(try (4..<7).map { try request($0) }, gathering)
    waiting[0].cancel()
    #expect(await waiting[0].value.hourly?.failure == .network(.cancelled))
    #expect(gathering.counts.waiting == 2)
    // Nobody waits for the first call any more: it ends, and the two go.
    first[0].cancel()
    #expect(await first[0].value.hourly?.failure == .network(.cancelled))
    await fake.waitForCalls(5)
    #expect(fake.calls[4].count == 2 && fake.cancelled == 1)
    waiting[1].cancel()
    #expect(await waiting[1].value.hourly?.failure == .network(.cancelled))
    #expect(fake.cancelled == 1)
    fake.open()
    #expect(temperature(await waiting[2].value) == 6)
    for task in first.dropFirst() { #expect(temperature(await task.value) != nil) }
    #expect(fake.calls.count == 5)
  }

  @Test func quotasCountPlacesAndAFailureOfOneIsKeptApart() async throws {
    let clock = ManualClock(now: try Date("2026-07-01T12:00:00Z", strategy: .iso8601))
    let fake = PlacesProvider(isOpen: false)
    let quota = TokenBucket(1000, per: .hours(24), clock: clock)
    let limits = ProviderLimits(concurrency: nil, quotas: [quota], clock: clock)
    let service = try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: GatheringProvider(fake, limits: limits), limits: limits, retry: .never,
      clock: clock)
    let spots = try (0..<30).map { try Spot(name: "\($0)", latitude: Double($0), longitude: 10, timezone: "GMT") }
    let callers = spots.map { spot in Task { try await service.weather(for: spot, including: .hourly, .daily) } }
    await fake.waitForCalls(4)
    fake.open()
    for (number, caller) in callers.enumerated() {
      let (hourly, daily) = try await caller.value
      #expect(hourly.value?.hours.first?.temperatureCelsius == Double(number) && daily.value != nil)
    }
    // One request for each spot, of two kinds; as many places as were asked for one by one.
    #expect(fake.calls.reduce(0) { $0 + $1.count } == 30 && quota.available == 1000 - 60)
    #expect(fake.calls.allSatisfy { $0.allSatisfy { $0.datasets == [.hourly, .daily] } })
    for spot in spots { #expect(try await service.weather(for: spot, policy: .cacheOnly, including: .hourly).value != nil) }
  }

  @Test func onePlaceThatCannotBeReadDoesNotSinkTheOthers() async throws {
    let whole = hourlyBody("2026-07-01", [("temperature_2m", "°C", "21.5")])
    let broken = whole.replacing("\"temperature_2m\":[21.5,", with: "\"temperature_2m\":[")
    let transport = PlacesTransport { $0.hasPrefix("5.") ? broken : whole }
    let provider = OpenMeteoProvider(servers: try server("http://test"), transport: transport)
    let answers = await provider.fetch(try (0..<10).map { try request($0) })
    #expect(answers.map { $0.hourly?.here() != nil } == (0..<10).map { $0 != 5 })
    #expect(answers[5].hourly?.failure == .malformed("columns of different lengths"))
    #expect(transport.count == 11)
  }

  @Test func whatIsRefusedToThreeIsRefusedToAll() async throws {
    let transport = PlacesTransport { _ in #"{"error":true,"reason":"Cannot initialize"}"# }
    let provider = OpenMeteoProvider(servers: try server("http://test"), transport: transport)
    let answers = await provider.fetch(try (0..<25).map { try request($0) })
    #expect(answers.count == 25 && answers.allSatisfy { $0.hourly?.failure == .rejected(status: 200, reason: "Cannot initialize") })
    #expect(transport.count == 4)
  }
}

/// Answers for several places, when the gate is open, with a temperature that is the place's latitude.
private final class PlacesProvider: SeveralPlacesProvider {
  private struct State {
    var isOpen: Bool
    var calls: [[ProviderRequest]] = []
    var running = 0
    var mostAtATime = 0
    var cancelled = 0
    var held: [Int: CheckedContinuation<Bool, Never>] = [:]
    var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state: Mutex<State>
  private let failure: @Sendable ([ProviderRequest]) -> ProviderError?

  init(isOpen: Bool, failure: @escaping @Sendable ([ProviderRequest]) -> ProviderError? = { _ in nil }) {
    state = Mutex(State(isOpen: isOpen))
    self.failure = failure
  }

  var name: String { "fake" }
  var attribution: [String] { [] }
  var needsCountry: Bool { false }
  func service(of dataset: WeatherDataset) -> String? { dataset == .marine ? "marine" : dataset == .alerts ? nil : "forecast" }
  func weight(of request: ProviderRequest) -> Double { Double(request.datasets.count) }
  func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> { [.hourly, .daily, .marine] }

  var calls: [[ProviderRequest]] { state.withLock { $0.calls } }
  var mostAtATime: Int { state.withLock { $0.mostAtATime } }
  var cancelled: Int { state.withLock { $0.cancelled } }

  func close() { state.withLock { $0.isOpen = false } }

  func open() {
    let held = state.withLock { state in
      state.isOpen = true
      defer { state.held = [:] }
      return Array(state.held.values)
    }
    for continuation in held { continuation.resume(returning: true) }
  }

  /// Waits until so many calls came in all.
  func waitForCalls(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.calls.count >= count { return true }
        state.watchers.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func fetch(_ request: ProviderRequest) async -> ProviderAnswer {
    await fetch([request]).first ?? ProviderAnswer(failure: .malformed("no place"), of: request.datasets)
  }

  func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    let (id, ready) = state.withLock { state in
      state.calls.append(requests)
      state.running += 1
      state.mostAtATime = max(state.mostAtATime, state.running)
      let ready = state.watchers.filter { $0.count <= state.calls.count }
      state.watchers.removeAll { $0.count <= state.calls.count }
      return (state.calls.count, ready)
    }
    for watcher in ready { watcher.continuation.resume() }
    let isLet = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: Bool? = state.withLock { state in
          if Task.isCancelled { return false }
          if state.isOpen { return true }
          state.held[id] = continuation
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      state.withLock { $0.held.removeValue(forKey: id) }?.resume(returning: false)
    }
    state.withLock { state in
      state.running -= 1
      state.cancelled += isLet ? 0 : 1
    }
    let error = isLet ? failure(requests) : .network(.cancelled)
    return requests.map { request in
      if let error { return ProviderAnswer(failure: error, of: request.datasets) }
      return Self.answer(request)
    }
  }

  private static func answer(_ request: ProviderRequest) -> ProviderAnswer {
    let provenance = Provenance(provider: "fake", server: "test", isRecorded: false)
    var hour = WeatherHour(instant: request.day.noon(in: .gmt))
    hour.temperatureCelsius = request.place.cell.center.latitude.rounded(.down)
    var answer = ProviderAnswer()
    if request.datasets.contains(.hourly) { answer.hourly = .success(.here(HourlyForecast(hours: [hour], provenance: provenance))) }
    if request.datasets.contains(.daily) {
      answer.daily = .success(.here(DailyForecast(days: [WeatherDay(request.day)], provenance: provenance)))
    }
    if request.datasets.contains(.marine) { answer.marine = .success(.nowhere(for: .hours(1))) }
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
