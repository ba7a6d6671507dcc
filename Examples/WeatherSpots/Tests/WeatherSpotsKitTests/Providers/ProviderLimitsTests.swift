import Foundation
import Larder
import LarderTesting
import Synchronization
import Testing

@testable import WeatherSpotsKit

/// The limits of Open-Meteo, counted as the service counts.
@Suite(.timeLimit(.minutes(1))) struct ProviderLimitsTests {
  @Test func atMostFourFifthsOfEachLimitGoThroughInAnyTimeOfItsLength() async throws {
    let takings = await takings(of: 10, for: .hours(25))
    let most = [Duration.seconds(60), .hours(1), .hours(24)].map { largest(takings, within: $0) }
    // Not more than allowed, and not much less.
    #expect((460.0...480.0).contains(most[0]), "\(most[0]) in a minute")
    #expect((3900.0...4000.0).contains(most[1]), "\(most[1]) in an hour")
    #expect((7800.0...8000.0).contains(most[2]), "\(most[2]) in a day")
  }

  @Test func theLastOfFourRequestsThatWaitIsNotRefused() async throws {
    let clock = ManualClock()
    let place = ForecastPlace(provider: "open-meteo", try #require(Coordinate(latitude: 48, longitude: -4)), timezone: "GMT")
    let request = ProviderRequest(
      place, from: try localDay("2026-01-01"), days: ForecastPeriod.spans.week, [.current, .hourly, .daily])
    let weight = OpenMeteoProvider(now: { clock.now }).weight(of: request) * Double(OpenMeteoProvider.placesPerRequest)
    let host = ProviderLimits.openMeteo(clock: clock).of("forecast")
    try await host.run(weight: ProviderLimits.openMeteoWeightAtOnce) {}
    let requests = (0..<4).map { _ in
      Task {
        do { try await host.run(weight: weight) {} } catch {
          // One that is refused sleeps too, so that there are four sleepers in any case.
          try await clock.sleep(for: .seconds(1))
          throw error
        }
      }
    }
    await clock.waitForSleepers(4)
    clock.advance(by: .seconds(120))
    for request in requests { try await request.value }
  }

  @Test func anEstimateHasTheWaitForWhatIsNotThereAtOnce() async throws {
    let clock = ManualClock()
    let service = try await WeatherService(
      try await SpotStore(backend: InMemoryBackend()), provider: OpenMeteoProvider(now: { clock.now }), limits: .openMeteo(clock: clock),
      clock: clock)
    let spots = try (0..<100).map { try Spot(name: "\($0)", latitude: Double($0 % 80), longitude: Double($0 / 80), timezone: "GMT") }
    func estimate(_ count: Int) async -> ForecastEstimate {
      await service.estimate(
        for: Array(spots.prefix(count)), policy: .cacheFirst, placesPerCall: 25,
        quota: (atOnce: ProviderLimits.openMeteoWeightAtOnce, perMinute: ProviderLimits.openMeteoWeightPerMinute))
    }
    // Two seconds for the calls, and 110 of the weight 410 at three a second.
    let hundred = await estimate(100)
    #expect(hundred.calls == 8 && (409.9...410.1).contains(hundred.weight) && hundred.seconds == 39)
    let fifty = await estimate(50)
    #expect(fifty.calls == 4 && fifty.seconds == 1)
  }

  private struct Taking {
    let instant: Duration
    let weight: Double
  }

  /// Takes as fast as allowed: it waits where the limits wait, and where they refuse, until the time they say.
  private func takings(of weight: Double, for duration: Duration) async -> [Taking] {
    let clock = ManualClock()
    let host = ProviderLimits.openMeteo(clock: clock).of("forecast")
    let takings = Mutex<[Taking]>([])
    let taker = Task {
      while true {
        do {
          try await host.run(weight: weight) {}
          takings.withLock { $0.append(Taking(instant: clock.uptime, weight: weight)) }
        } catch CacheError.quotaExceeded(let until) {
          try await clock.sleep(for: .seconds(max(until.timeIntervalSince(clock.now), 0.001)))
        }
      }
    }
    // Time passes only while the taker sleeps.
    while clock.uptime <= duration {
      await clock.waitForSleepers()
      clock.advance(by: .seconds(1))
    }
    taker.cancel()
    _ = await taker.result
    return takings.withLock { $0 }
  }

  /// Returns the most weight that was taken within any time of a length, its ends included.
  private func largest(_ takings: [Taking], within length: Duration) -> Double {
    var (first, sum, largest) = (0, 0.0, 0.0)
    for taking in takings {
      sum += taking.weight
      while taking.instant - takings[first].instant > length {
        sum -= takings[first].weight
        first += 1
      }
      largest = max(largest, sum)
    }
    return largest
  }
}
