import Foundation
import Larder
import LarderTesting
import StandInServer
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// A real server that asks to be left alone for a while.
@Suite(.timeLimit(.minutes(15))) struct RetryAfterTests {
  @Test(arguments: [429, 500, 503]) func aServerThatAsksToWaitIsNotAskedBefore(_ status: Int) async throws {
    let isWell = Mutex(false)
    let server = try LoopbackServer { _ in
      isWell.withLock { $0 }
        ? .init(200, WeatherServiceTests.land) : .init(status, #"{"error":true,"reason":"busy"}"#, headers: ["Retry-After": "60"])
    }
    let url = try await server.start()
    let clock = ManualClock(now: try instant("2026-07-01T12:00:00Z"))
    let provider = OpenMeteoProvider(servers: OpenMeteoServers(url), timeout: .seconds(300), now: { clock.now })
    let service = try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: provider, limits: .openMeteo(clock: clock), retry: .never, clock: clock)
    let brest = try Spot(name: "Brest", latitude: 48.39, longitude: -4.49, timezone: "GMT")
    let cadiz = try Spot(name: "Cadiz", latitude: 36.53, longitude: -6.29, timezone: "GMT")
    for _ in 0..<3 {
      for spot in [brest, cadiz] {
        let reading = try await service.weather(for: spot, including: .hourly)
        #expect(reading.value == nil && reading.problem?.isTransient == true)
      }
      clock.advance(by: .milliseconds(19_900))
    }
    #expect(server.requests.count == 1)
    isWell.withLock { $0 = true }
    clock.advance(by: .milliseconds(400))
    let reading = try await service.weather(for: brest, including: .hourly)
    #expect(reading.value != nil && server.requests.count == 2)
    await server.stop()
  }

  @Test(arguments: [
    ("120", Duration.seconds(120)), ("999999999", .seconds(86400)), ("Sun, 06 Nov 1994 08:50:37 GMT", .seconds(60)),
    ("Sun, 06 Nov 1994 08:00:00 GMT", .zero), ("Sun, 06 Nov 1994 9223372036854775807:49:37 GMT", nil),
    ("Sun, 06 Nov 1994 08:49:-9223372036854775808 GMT", nil), ("Sun, 06 Nov 1994 +8:50:37 GMT", nil),
    ("Sun, 06 Nov 1994 8:50:37 GMT", nil), ("Sun, 99 Nov 1994 08:00:00 GMT", nil), ("soon", nil), ("", nil), ("-5", nil),
    (" 7 ", .seconds(7)),
  ])
  func aWaitIsANumberOrADateAndNothingElse(_ text: String, _ wait: Duration?) throws {
    #expect(RetryAfter.wait(text, at: try instant("1994-11-06T08:49:37Z")) == wait)
  }
}
