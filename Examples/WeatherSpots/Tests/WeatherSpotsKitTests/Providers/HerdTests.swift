import Foundation
import Larder
import LarderTesting
import StandInServer
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
      await transport.gate.calls.wait { $0.active == 4 }
      transport.gate.open()
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(answered == 10_000)
    // A caller whose kinds of data were begun by several others may come too late for their request.
    #expect((50...54).contains(transport.gate.calls.value.count))
    #expect(transport.gate.calls.value.mostActive == 4)
  }

  @Test func whenTheLastCallerLeavesTheRequestIsCancelled() async throws {
    let transport = GatedTransport(WeatherServiceTests.land)
    let provider = OpenMeteoProvider(servers: try server("http://test"), transport: transport)
    let service = try await WeatherService(try await SpotStore(backend: InMemoryBackend()), provider: provider, limits: .openMeteo())
    let spot = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "GMT")
    let callers = (0..<20).map { _ in Task { try await service.weather(for: spot, including: .hourly, .daily) } }
    await transport.gate.calls.wait { $0.active == 1 }
    for caller in callers { caller.cancel() }
    for caller in callers { await #expect(throws: CancellationError.self) { _ = try await caller.value } }
    await transport.gate.calls.wait { $0.cancelled == 1 }
    #expect(transport.gate.calls.value.count == 1)
  }
}

/// Lets every request wait until the gate is opened, and counts.
final class GatedTransport: Transport {
  let gate = CallGate()
  private let body: String

  init(_ body: String) { self.body = body }

  nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    guard await gate.pass() else { throw .cancelled }
    return TransportResponse(status: 200, body: Data(body.utf8))
  }
}
