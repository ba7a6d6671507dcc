import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct ManualClockTests {
  @Test func sleepersWakeWhenTheirTimeHasPassed() async throws {
    let clock = ManualClock()
    let short = Task { try await clock.sleep(for: .seconds(1)) }
    let long = Task { try await clock.sleep(for: .seconds(3)) }
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    try await short.value
    #expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(2))
    try await long.value
  }

  @Test func settingTheWallClockWakesNobody() async throws {
    let clock = ManualClock()
    let sleeper = Task { try await clock.sleep(for: .seconds(1)) }
    await clock.waitForSleepers()
    clock.setWall(to: .distantFuture)
    clock.setWall(by: -10)
    #expect(clock.now == Date.distantFuture - 10)
    #expect(clock.uptime == .zero)
    #expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(1))
    try await sleeper.value
  }

  @Test func aCancelledSleeperWakesAtOnce() async throws {
    let clock = ManualClock()
    let sleeper = Task { try await clock.sleep(for: .seconds(1)) }
    await clock.waitForSleepers()
    sleeper.cancel()
    #expect(await failure { try await sleeper.value } is CancellationError)
    #expect(clock.sleeperCount == 0)
    try await clock.sleep(for: .zero)
  }

  @Test func theSystemsClocksGoOn() async throws {
    let clock = SystemClock()
    let (now, uptime) = (clock.now, clock.uptime)
    try await until { clock.uptime > uptime && clock.now > now }
    let sleeper = Task { try await clock.sleep(for: .hours(1)) }
    sleeper.cancel()
    #expect(await failure { try await sleeper.value } is CancellationError)
  }
}
