import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// The work of an engine that runs by itself.
@Suite struct SyncRunningTests {
  private let server = SimulatedSyncServer()
  private let clock = ManualClock()

  private func device(_ transport: GatedTransport? = nil) async throws -> (LocalRepository<Note>, SyncEngine, GatedTransport) {
    let transport = transport ?? GatedTransport(server)
    let store = try await Store.open(InMemoryBackend())
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    return (notes, try await SyncEngine(store, transport: transport, scopes: ["user/1"], clock: clock), transport)
  }

  /// Returns the first status that is as expected.
  private func status(of sync: SyncEngine, where isExpected: (SyncStatus) -> Bool) async throws -> SyncStatus {
    for await status in sync.status where isExpected(status) { return status }
    throw CancellationError()
  }

  @Test func aLocalWriteIsSentByItself() async throws {
    let (notes, sync, _) = try await device()
    await sync.start()
    _ = try await status(of: sync) { $0.phase == .idle && $0.lastExchange != nil }
    try await notes.save(Note(id: "a"))
    _ = try await status(of: sync) { $0.phase == .idle && $0.pending == 0 && !server.records(of: "user/1").isEmpty }
    await sync.stop()
    try await notes.save(Note(id: "b"))
    #expect(server.records(of: "user/1").map(\.id) == ["a"])
    #expect(try await status(of: sync) { _ in true }.phase == .stopped)
  }

  @Test func aPokeBringsWhatIsNew() async throws {
    let (here, there) = (try await device(), try await device())
    await here.1.start()
    _ = try await status(of: here.1) { $0.phase == .idle && $0.lastExchange != nil }
    var changes = here.0.changes().makeAsyncIterator()
    try await there.0.save(Note(id: "a", text: "news"))
    try await there.1.exchange()
    here.2.poke()
    #expect(try await changes.next()?.changes.first?.new?.text == "news")
    await here.1.stop()
  }

  @Test func withoutEventsItAsks() async throws {
    let (here, there) = (try await device(), try await device())
    here.2.set { $0.hasEvents = false }
    await here.1.start()
    _ = try await status(of: here.1) { $0.phase == .idle && $0.lastExchange != nil }
    var changes = here.0.changes().makeAsyncIterator()
    try await there.0.save(Note(id: "a", text: "news"))
    try await there.1.exchange()
    await clock.waitForSleepers()
    clock.advance(by: HeadWatch.pause)
    #expect(try await changes.next()?.changes.first?.new?.text == "news")
    #expect(here.2.polls > 0)
    await here.1.stop()
  }

  @Test func newsOfTheServerEndTheWaitAfterAnOutage() async throws {
    let (notes, sync, transport) = try await device()
    transport.set { $0.pullProblem = .unreachable("cut off") }
    try await notes.save(Note(id: "a"))
    await sync.start()
    _ = try await status(of: sync) { $0.phase == .waiting }
    transport.set { $0.pullProblem = nil }
    // No time passes; it may be that the events are not asked for yet.
    let poking = Task {
      while !Task.isCancelled {
        transport.poke()
        await Task.yield()
      }
    }
    _ = try await status(of: sync) { $0.phase == .idle && $0.pending == 0 }
    poking.cancel()
    await poking.value
    #expect(server.records(of: "user/1").map(\.id) == ["a"])
    await sync.stop()
  }

  @Test func aFailureIsTriedAgainLaterOrWhenWoken() async throws {
    let (notes, sync, transport) = try await device()
    transport.set { $0.pullProblem = .unreachable("cut off") }
    try await notes.save(Note(id: "a"))
    await sync.start()
    let failed = try await status(of: sync) { $0.phase == .waiting }
    #expect(failed.lastError as? SyncProblem == .unreachable("cut off"))
    transport.set { $0.pullProblem = nil }
    await clock.waitForSleepers()
    clock.advance(by: Backoff.base)
    _ = try await status(of: sync) { $0.phase == .idle && $0.lastError == nil }
    transport.set { $0.pushProblem = .unavailable(retryAfter: 1_000) }
    try await notes.save(Note(id: "b"))
    #expect(try await status(of: sync) { $0.phase == .waiting }.pending == 1)
    transport.set { $0.pushProblem = nil }
    sync.wake()
    _ = try await status(of: sync) { $0.phase == .idle && $0.pending == 0 }
    #expect(server.records(of: "user/1").count == 2)
    await sync.stop()
  }

  @Test func anEngineThatIsDroppedEnds() async throws {
    func statuses() async throws -> SyncStatuses {
      let (_, sync, _) = try await device()
      await sync.start()
      _ = try await status(of: sync) { $0.phase == .idle && $0.lastExchange != nil }
      return sync.status
    }
    for await _ in try await statuses() {}
  }

  @Test func waitsAreRandomAndBounded() {
    var backoff = Backoff()
    let waits = (0..<12).map { _ in backoff.delay(after: SyncProblem.unreachable(""), random: 1) / .seconds(1) }
    #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300])
    #expect(backoff.delay(after: SyncProblem.unreachable(""), random: 0) == .zero)
    #expect(backoff.delay(after: SyncProblem.tooManyRequests(retryAfter: 7), random: 0) == .seconds(7))
    #expect(backoff.delay(after: SyncProblem.unavailable(retryAfter: 1e300), random: 0) == .seconds(3_600))
    #expect(backoff.delay(after: SyncProblem.forbidden, random: 0) == .seconds(150))
    #expect(backoff.delay(after: SyncProblem.unavailable(retryAfter: .nan), random: 1) == Backoff.cap)
  }
}
