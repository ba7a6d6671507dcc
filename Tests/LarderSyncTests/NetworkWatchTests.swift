import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
}

/// The exchanges that a change of the network begins, and those that it does not.
@Suite(.timeLimit(.minutes(15))) struct NetworkWatchTests {
  private let server = SimulatedSyncServer()
  private let clock = ManualClock()
  private let network = TestNetwork()

  private func device() async throws -> (LocalRepository<Note>, SyncEngine, GatedTransport) {
    let transport = GatedTransport(server)
    transport.set { $0.hasEvents = false }
    let store = try await Store.open(InMemoryBackend())
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    return (notes, try await SyncEngine(store, transport: transport, scopes: ["user/1"], clock: clock), transport)
  }

  /// Returns once the engine is in the phase.
  private func wait(for phase: SyncStatus.Phase, of sync: SyncEngine) async throws {
    for await status in sync.status where status.phase == phase && (phase != .idle || status.lastExchange != nil) { return }
    throw CancellationError()
  }

  @Test func whatWaitsIsTriedAtOnceWhenTheNetworkComes() async throws {
    let (notes, sync, transport) = try await device()
    transport.set { $0.pullProblem = .unreachable("no network") }
    try await notes.save(Note(id: "a"))
    await sync.start(watching: network.watch)
    try await wait(for: .waiting, of: sync)
    try await until { network.asked == 1 }
    transport.set { $0.pullProblem = nil }
    network.change()
    try await wait(for: .idle, of: sync)
    #expect(clock.uptime == .zero && server.records(of: "user/1").map(\.id) == ["a"])
    await sync.stop()
  }

  @Test func anIdleEngineDoesNotExchange() async throws {
    let (notes, sync, transport) = try await device()
    let alarm = try #require(sync.alarms["user/1"])
    await sync.start(watching: network.watch)
    // One for the exchange, which has succeeded.
    try await until { alarm.hintCount == 1 && network.asked == 1 }
    let pulls = transport.pulls
    for number in 2...4 {
      network.change()
      try await until { network.asked == number }
    }
    // The watch for news goes on at once.
    #expect(alarm.hintCount == 4 && transport.pulls == pulls)
    try await notes.save(Note(id: "a"))
    try await until { !server.records(of: "user/1").isEmpty }
    await sync.stop()
  }

  @Test func nothingIsWokenAfterTheStop() async throws {
    let (notes, sync, transport) = try await device()
    let alarm = try #require(sync.alarms["user/1"])
    transport.set { $0.pullProblem = .unreachable("no network") }
    try await notes.save(Note(id: "a"))
    #expect(network.watchers == 0, "an engine that was not started watches nothing")
    await sync.start(watching: network.watch)
    try await wait(for: .waiting, of: sync)
    try await until { network.asked == 1 }
    await sync.stop()
    let (hints, pulls) = (alarm.hintCount, transport.pulls)
    #expect(network.watchers == 0)
    network.change()
    #expect(alarm.hintCount == hints && transport.pulls == pulls && network.asked == 1)
    transport.set { $0.pullProblem = nil }
    await sync.start(watching: network.watch)
    try await wait(for: .idle, of: sync)
    try await until { network.watchers == 1 }
    await sync.stop()
  }

  @Test func aBurstOfChangesWakesTwice() async throws {
    let wakes = Mutex(0)
    let task = Task {
      await network.watch.run(clock) {
        wakes.withLock { $0 += 1 }
        return true
      }
    }
    try await until { network.asked == 1 }
    network.change()
    await clock.waitForSleepers()
    for _ in 0..<100 { network.change() }
    #expect(wakes.withLock { $0 } == 1)
    clock.advance(by: NetworkWatch.pause)
    await clock.waitForSleepers()
    #expect(wakes.withLock { $0 } == 2)
    clock.advance(by: NetworkWatch.pause)
    try await until { network.asked == 3 }
    #expect(wakes.withLock { $0 } == 2)
    task.cancel()
    await task.value
  }

  #if os(Linux)
    @Test func onLinuxTheRetryGoesOnWithoutAWatch() async throws {
      for await _ in NetworkWatch.system.changes() { Issue.record("nothing watches the network") }
      let (transport, clock) = (GatedTransport(SimulatedSyncServer()), ManualClock())
      transport.set { $0.pullProblem = .unreachable("no network") }
      let sync = try await SyncEngine(Store.open(InMemoryBackend()), transport: transport, scopes: ["user/1"], clock: clock)
      await sync.start()
      for await status in sync.status where status.phase == .waiting { break }
      transport.set { $0.pullProblem = nil }
      try await until {
        clock.advance(by: .milliseconds(1))
        return transport.pulls > 1
      }
      for await status in sync.status where status.phase == .idle { break }
      await sync.stop()
    }
  #endif
}
