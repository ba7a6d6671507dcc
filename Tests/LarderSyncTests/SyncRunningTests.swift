import Foundation
import LarderTesting
import TestSupport
import Testing

@testable import Larder
@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// The work of an engine that runs by itself.
@Suite(.timeLimit(.minutes(15))) struct SyncRunningTests {
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

  /// Advances the clock in steps until something is the case.
  ///
  /// A single step may come before the wait that it should end, since other tasks of the engine wait, too.
  private func advance(by step: Duration, until isOver: () -> Bool) async throws {
    while !isOver() {
      try Task.checkCancellation()
      clock.advance(by: step)
      await Task.yield()
    }
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

  /// An engine that is stopped while one of its writes waits for the disk has not failed.
  @Test func aStopIsNoFailure() async throws {
    let disk = FaultInjectingBackend(InMemoryBackend())
    let store = try await Store.open(disk)
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    let sync = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"], clock: clock)
    try await notes.save(Note(id: "a"))
    disk.hold(.commit)
    let save = Task { try await notes.save(Note(id: "b")) }
    await disk.waitUntilHeld(.commit)
    await sync.start()
    try await until { notes.core.waitingWriteCount == 1 }
    await sync.stop()
    #expect(sync.status.current.lastError == nil)
    disk.release(.commit)
    _ = try await save.value
    try await sync.exchange()
    #expect(server.records(of: "user/1").count == 2)
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
    let polls = here.2.polls
    try await advance(by: HeadWatch.pause) { here.2.polls > polls }
    #expect(try await changes.next()?.changes.first?.new?.text == "news")
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

  /// Nothing else is a reason for an exchange then: no news, no edit.
  @Test func anEditThatCouldNotBeSentIsTriedAgain() async throws {
    let (notes, sync, transport) = try await device()
    await sync.start()
    _ = try await status(of: sync) { $0.phase == .idle && $0.lastExchange != nil }
    while transport.questions == 0, !Task.isCancelled { await Task.yield() }
    for round in 0..<20 {
      transport.set { $0.pushProblem = .unreachable("cut off") }
      try await notes.save(Note(id: "a", text: "\(round)"))
      _ = try await status(of: sync) { $0.phase == .waiting }
      transport.set { $0.pushProblem = nil }
      try await advance(by: .seconds(1)) { sync.status.current.phase == .idle && sync.status.current.pending == 0 }
    }
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
    try await advance(by: Backoff.base) { sync.status.current.phase == .idle && sync.status.current.lastError == nil }
    transport.set { $0.pushProblem = .unavailable(retryAfter: 1_000) }
    try await notes.save(Note(id: "b"))
    #expect(try await status(of: sync) { $0.phase == .waiting }.pending == 1)
    transport.set { $0.pushProblem = nil }
    sync.wake()
    _ = try await status(of: sync) { $0.phase == .idle && $0.pending == 0 }
    #expect(server.records(of: "user/1").count == 2)
    await sync.stop()
  }

  /// What the server asks for is kept, whatever the user does meanwhile.
  @Test(arguments: [true, false]) func newsAreNotAskedForBeforeTheServerWantsIt(ofEvents: Bool) async throws {
    let (notes, sync, transport) = try await device()
    transport.set { rules in
      rules.hasEvents = false
      if ofEvents {
        rules.eventsProblem = .tooManyRequests(retryAfter: 600)
      } else {
        rules.pollProblem = .tooManyRequests(retryAfter: 600)
      }
    }
    await sync.start()
    _ = try await status(of: sync) { $0.phase == .idle && $0.lastExchange != nil }
    if ofEvents {
      while transport.questions == 0 { await Task.yield() }
      await clock.waitForSleepers()
    } else {
      while transport.polls == 0 {
        await clock.waitForSleepers()
        clock.advance(by: HeadWatch.pause)
      }
    }
    let asked = (transport.questions, transport.polls)
    for id in 0..<50 {
      try await notes.save(Note(id: "\(id)"))
      _ = try await status(of: sync) { $0.phase == .idle && $0.pending == 0 }
      await clock.waitForSleepers()
      clock.advance(by: .seconds(4))
    }
    #expect(transport.questions == asked.0 && transport.polls == asked.1)
    await sync.stop()
  }

  /// As by a server that has no room for one more stream.
  @Test func whereEventsAreRefusedForAWhileNewsAreAskedFor() async throws {
    let (here, there) = (try await device(), try await device())
    here.2.set { ($0.hasEvents, $0.eventsProblem) = (false, .unavailable(retryAfter: 5)) }
    await here.1.start()
    _ = try await status(of: here.1) { $0.phase == .idle && $0.lastExchange != nil }
    var changes = here.0.changes().makeAsyncIterator()
    try await there.0.save(Note(id: "a", text: "news"))
    try await there.1.exchange()
    while here.2.polls == 0 {
      await clock.waitForSleepers()
      clock.advance(by: .seconds(7))
    }
    #expect(try await changes.next()?.changes.first?.new?.text == "news")
    await here.1.stop()
  }

  @Test func callsThatComeTogetherAreExchangesOneAfterAnother() async throws {
    let (notes, sync, transport) = try await device()
    for round in 0..<200 {
      try await notes.save(Note(id: "\(round)"))
      let before = transport.pulls
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { try await sync.exchange() } }
        try await group.waitForAll()
      }
      try #require(transport.pulls >= before + 4)
    }
    #expect(server.records(of: "user/1").count == 200)
  }

  @Test func anEngineEndsWithItsStore() async throws {
    let store = try await Store.open(InMemoryBackend())
    _ = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    let sync = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"], clock: clock)
    await sync.start()
    _ = try await status(of: sync) { $0.phase == .idle && $0.lastExchange != nil }
    try await store.close()
    _ = try await status(of: sync) { $0.phase == .stopped }
    #expect(await sync.tasks.isEmpty)
  }

  @Test func theProgressIsThatOfAllScopes() async throws {
    var engines: [SyncEngine] = []
    for device in 0..<2 {
      let store = try await Store.open(InMemoryBackend())
      let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: { "user/\($0.text)" }))
      let transport = GatedTransport(server)
      transport.set { rules in
        rules.page = { page in
          var page = page
          page.total = page.changes.count
          return page
        }
      }
      engines.append(try await SyncEngine(store, transport: transport, scopes: ["user/1", "user/2"], clock: clock))
      if device == 0 { try await notes.save(contentsOf: (0..<5).map { Note(id: "\($0)", text: $0 < 2 ? "1" : "2") }) }
      try await engines[device].exchange()
    }
    #expect(engines[0].status.current.pushed == 5)
    let status = engines[1].status.current
    #expect(status.pulled == 5)
    #expect(status.total == 5)
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
    #expect(backoff.delay(after: SyncProblem.refused(status: 400, detail: ""), random: 0) == .seconds(150))
    // Whoever was too slow is tried again as after an outage.
    #expect(backoff.delay(after: SyncProblem.refused(status: 408, detail: ""), random: 0) == .zero)
    #expect(backoff.delay(after: SyncProblem.unavailable(retryAfter: .nan), random: 1) == Backoff.cap)
  }
}
