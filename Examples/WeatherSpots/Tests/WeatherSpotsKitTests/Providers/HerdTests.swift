import Foundation
import Larder
import LarderTesting
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// Many callers at the same time.
@Suite(.timeLimit(.minutes(15))) struct HerdTests {
  @Test func tenThousandCallersOfFiftySpotsMakeFiftyRequestsOfWhichFourRunAtATime() async throws {
    let transport = GatedTransport(WeatherServiceTests.land)
    let clock = ManualClock(now: try instant("2026-07-01T12:00:00Z"))
    let provider = OpenMeteoProvider(servers: try server("http://test"), transport: transport, now: { clock.now })
    let service = try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: provider, limits: .openMeteo(clock: clock), clock: clock)
    let spots = try (0..<50).map { try Spot(name: "\($0)", latitude: Double($0), longitude: 10, timezone: "GMT") }
    let answered = try await withThrowingTaskGroup(of: Bool.self) { group in
      for index in 0..<10_000 {
        group.addTask {
          let (hourly, daily, current) = try await service.weather(for: spots[index % 50], including: .hourly, .daily, .current)
          return hourly.value != nil && daily.value != nil && current.value != nil
        }
      }
      await transport.waitForWaiting(4)
      transport.open()
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(answered == 10_000)
    // A caller whose kinds of data were begun by several others may come too late for their request.
    #expect((50...54).contains(transport.count))
    #expect(transport.mostAtATime == 4)
  }

  @Test func whenTheLastCallerLeavesTheRequestIsCancelled() async throws {
    let transport = GatedTransport(WeatherServiceTests.land)
    let provider = OpenMeteoProvider(servers: try server("http://test"), transport: transport)
    let service = try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: provider, limits: .openMeteo())
    let spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "GMT")
    let callers = (0..<20).map { _ in Task { try await service.weather(for: spot, including: .hourly, .daily) } }
    await transport.waitForWaiting(1)
    for caller in callers { caller.cancel() }
    for caller in callers { await #expect(throws: CancellationError.self) { _ = try await caller.value } }
    await transport.waitForCancelled(1)
    #expect(transport.count == 1)
  }
}

/// Lets every request wait until the gate is opened, and counts.
final class GatedTransport: Transport {
  private struct State {
    var isOpen = false
    var count = 0
    var running = 0
    var mostAtATime = 0
    var cancelled = 0
    var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
    var watchers: [(isDone: @Sendable (Int, Int) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let body: String
  private let state = Mutex(State())

  init(_ body: String) { self.body = body }

  var count: Int { state.withLock { $0.count } }
  var mostAtATime: Int { state.withLock { $0.mostAtATime } }

  func open() {
    let waiting = state.withLock { state in
      state.isOpen = true
      defer { state.waiting = [:] }
      return state.waiting.values.map { $0 }
    }
    for continuation in waiting { continuation.resume(returning: true) }
  }

  func waitForWaiting(_ count: Int) async { await wait { waiting, _ in waiting >= count } }
  func waitForCancelled(_ count: Int) async { await wait { _, cancelled in cancelled >= count } }

  private func wait(_ isDone: @escaping @Sendable (Int, Int) -> Bool) async {
    await withCheckedContinuation { continuation in
      state.withLock { $0.watchers.append((isDone, continuation)) }
      tellWatchers()
    }
  }

  private func tellWatchers() {
    let ready = state.withLock { state in
      let (waiting, cancelled) = (state.waiting.count, state.cancelled)
      let ready = state.watchers.filter { $0.isDone(waiting, cancelled) }
      state.watchers.removeAll { $0.isDone(waiting, cancelled) }
      return ready.map(\.continuation)
    }
    for continuation in ready { continuation.resume() }
  }

  nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    let id = state.withLock { state in
      state.count += 1
      state.running += 1
      state.mostAtATime = max(state.mostAtATime, state.running)
      return state.count
    }
    let isDone = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: Bool? = state.withLock { state in
          if Task.isCancelled { return false }
          if state.isOpen { return true }
          state.waiting[id] = continuation
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
        tellWatchers()
      }
    } onCancel: {
      state.withLock { $0.waiting.removeValue(forKey: id) }?.resume(returning: false)
    }
    state.withLock { state in
      state.running -= 1
      state.cancelled += isDone ? 0 : 1
    }
    tellWatchers()
    guard isDone else { throw .cancelled }
    return TransportResponse(status: 200, body: Data(body.utf8))
  }
}
