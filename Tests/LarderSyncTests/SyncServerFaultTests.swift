import Foundation
import Larder
import Synchronization
import Testing

@testable import LarderSync
@testable import LarderTesting

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
  var count = 0
}

/// What a server may do that it should not, and answers that are too large: an exchange ends, and one scope or record blocks no other.
@Suite struct SyncServerFaultTests {
  private let server = SimulatedSyncServer()

  private func device(
    _ server: SimulatedSyncServer, _ backend: InMemoryBackend = InMemoryBackend(), limits: StoreOptions.Limits = .init()
  ) async throws -> (notes: LocalRepository<Note>, sync: SyncEngine, transport: GatedTransport, store: Store) {
    let transport = GatedTransport(server)
    var options = StoreOptions()
    options.limits = limits
    let store = try await Store.open(backend, options: options)
    let schema = RepositorySchema<Note>("notes").synced(in: "user/1", merge: .fields(counters: [\.count]))
    let notes = try await store.repository(schema)
    return (notes, try await SyncEngine(store, transport: transport, scopes: ["user/1"]), transport, store)
  }

  // MARK: Answers that are too large

  @Test func aPageThatIsTooLargeIsAskedForInParts() async throws {
    let (here, there) = (try await device(server), try await device(server))
    for id in 0..<100 { try await there.notes.save(Note(id: "\(id)")) }
    try await there.sync.exchange()
    here.transport.set { $0.mostRecordsOfPage = 7 }
    try await here.sync.exchange()
    #expect(try await here.notes.count() == 100)
    here.transport.set { $0.mostRecordsOfPage = 0 }
    try await there.notes.save(Note(id: "one more"))
    try await there.sync.exchange()
    await #expect(throws: SyncProblem.answerTooLarge) { try await here.sync.exchange() }
  }

  @Test func anAnswerOverTheLimitSaysSo() throws {
    let problem = Mutex<SyncProblem?>(nil)
    let call = HTTPCall(limit: 10) { result in
      if case .failure(let error) = result { problem.withLock { $0 = error as? SyncProblem } }
    }
    #expect(call.receive(Data(count: 10), status: 200))
    #expect(!call.receive(Data(count: 1), status: 200))
    #expect(problem.withLock { $0 } == .answerTooLarge)
  }

  @Test func plainHTTPOnAppleSystemsNamesAppTransportSecurity() {
    let words = HTTPCall.words(for: URLError.Code(rawValue: -1_022))
    #expect(words.contains("App Transport Security") && words.contains("https") && words.contains("Info.plist"))
  }

  @Test func whatAConflictLeavesOutComesWithTheChanges() async throws {
    let server = SimulatedSyncServer(conflictBytes: 0) { 1_767_225_600_000 }
    let (here, there) = (try await device(server), try await device(server))
    try await here.notes.save(Note(id: "a"))
    for sync in [here.sync, there.sync] { try await sync.exchange() }
    for notes in [here.notes, there.notes] { try await notes.update("a") { $0.count += 1 } }
    for sync in [here.sync, there.sync, here.sync] { try await sync.exchange() }
    #expect(server.leftOut == 1)
    for notes in [here.notes, there.notes] { #expect(try await notes.find(by: "a")?.count == 2) }
  }

  @Test func aPullThatFailsAtEachPageGoesOnFromThere() async throws {
    let there = try await device(server)
    for id in 0..<100 { try await there.notes.save(Note(id: "\(id)")) }
    try await there.sync.exchange()
    let (backend, transport) = (InMemoryBackend(), GatedTransport(server))
    for call in 1...10 {
      // A process of its own for each page.
      let store = try await Store.open(backend)
      let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
      let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"], pageSize: 10)
      transport.set { $0.pagesUntilCut = 1 }
      if call < 10 {
        await #expect(throws: SyncProblem.unreachable("cut off")) { try await sync.exchange() }
      } else {
        try await sync.exchange()
      }
      #expect(try await notes.count() == 10 * call)
      try await store.close()
    }
    // Each was asked for once, and the one behind it in vain.
    #expect(transport.pulls == 19)
  }

  @Test func aPushWhoseAnswerWasLostIsNoFailureOnceAPageTellsItsOutcome() async throws {
    let here = try await device(server)
    here.transport.set { $0.reply = { _ in throw SyncProblem.unreachable("lost") } }
    // More than one push.
    try await here.notes.save(contentsOf: (0..<1_200).map { Note(id: "\($0)") })
    try await here.sync.exchange()
    #expect(try await here.sync.pending == 0)
    #expect(server.records(of: "user/1").count == 1_200)
    // A pause that the server asks for is made all the same, and what it says wrongly is told.
    for (problem, id) in [(SyncProblem.unavailable(retryAfter: 7), "one"), (.malformed("no JSON"), "another")] {
      here.transport.set { $0.reply = { _ in throw problem } }
      try await here.notes.save(Note(id: id))
      await #expect(throws: problem) { try await here.sync.exchange() }
    }
    #expect(server.records(of: "user/1").count == 1_202)
  }

  // MARK: Records over a limit of the store

  @Test func aRecordOverALoweredLimitHoldsNothingUp() async throws {
    let (backend, there) = (InMemoryBackend(), try await device(server))
    let before = try await device(server, backend)
    try await before.notes.save(Note(id: "large", text: String(repeating: "x", count: 400)))
    try await before.notes.save(Note(id: "edited", text: String(repeating: "x", count: 400)))
    try await before.sync.exchange()
    try await before.notes.update("edited") { $0.count += 1 }
    try await before.store.close()

    let lowered = try await device(server, backend, limits: .init(recordBytes: 200))
    #expect(lowered.store.openReport.undecodable.count == 2)
    try await lowered.notes.save(Note(id: "small"))
    try await lowered.sync.exchange()
    #expect(server.records(of: "user/1").map(\.id) == ["edited", "large", "small"])
    #expect(try await lowered.sync.rejected.loadAll().map { "\($0.recordID) \($0.code)" } == ["edited tooLarge"])
    // What others do meanwhile is taken, or held where it must be merged with what cannot be read.
    try await there.sync.exchange()
    for id in ["large", "edited"] { try await there.notes.update(id) { ($0.text, $0.count) = ("short", $0.count + 1) } }
    try await there.sync.exchange()
    try await lowered.sync.exchange()
    #expect(try await lowered.notes.find(by: "large")?.text == "short")
    try await lowered.store.close()

    let raised = try await device(server, backend)
    for rejection in try await raised.sync.rejected.loadAll() { try await raised.sync.retry(rejection) }
    try await raised.sync.exchange()
    #expect(try await raised.notes.find(by: "edited") == Note(id: "edited", text: "short", count: 2))
    #expect(try await raised.sync.pending == 0)
    #expect(try await raised.sync.rejected.count() == 0)
  }

  // MARK: Exchanges without an end

  @Test func moreWithoutAnythingIsAnError() async throws {
    let here = try await device(server)
    here.transport.set {
      $0.page = { page in SyncChanges(history: page.history, since: page.since, until: page.since, head: 9, more: true) }
    }
    await #expect(throws: SyncProblem.noProgress("The server says that there are more changes behind commit 0, and gives none.")) {
      try await here.sync.exchange()
    }
    #expect(here.transport.pulls == 1)
  }

  @Test func aPageThatWasNotAskedForIsAnError() async throws {
    let here = try await device(server)
    here.transport.set { $0.page = { SyncChanges(history: $0.history, since: $0.since + 1, until: 9, head: 9, more: true) } }
    await #expect(throws: SyncProblem.malformed("expected the changes behind commit 0, found those behind 1")) {
      try await here.sync.exchange()
    }
    #expect(here.transport.pulls == 1)
  }

  @Test func historiesThatAlternateAreAnError() async throws {
    let here = try await device(server)
    here.transport.set { rules in
      rules.page = { SyncChanges(history: UUID().uuidString, since: $0.since, until: $0.until, head: $0.head) }
    }
    try await here.sync.exchange()
    await #expect(throws: SyncProblem.noProgress("The server tells another history each time it is asked.")) {
      try await here.sync.exchange()
    }
    #expect(here.transport.pulls <= SyncEngine.passLimit + 2)
  }

  @Test func roundsWithoutProgressAreAnError() async throws {
    let here = try await device(server)
    let others = Atomic(0)
    here.transport.set { rules in
      rules.reply = { reply in
        var reply = reply
        // Others have written the record again, each time.
        let revision = others.wrappingAdd(1, ordering: .relaxed).newValue
        let value = Data(#"{"id":"a","text":"others \#(revision)"}"#.utf8)
        reply.receipt.outcomes = [.conflict([SyncRecord(collection: "notes", id: "a", revision: revision, value: value)])]
        return reply
      }
      rules.page = { page in
        var page = page
        page.last = nil
        return page
      }
    }
    // The server has taken nothing.
    server.refuse { _ in "refused" }
    try await here.notes.save(Note(id: "a"))
    do {
      try await here.sync.exchange()
      Issue.record("expected an error")
    } catch SyncProblem.noProgress {}
    #expect(here.transport.pushes <= SyncEngine.roundLimit + 1)
    #expect(try await here.sync.pending == 1)
    #expect(here.sync.status.current.lastError as? SyncProblem != nil)
  }

  /// An app may save as fast as a network sends: each push is accepted, and there is always something left.
  @Test func editsWithoutAnEndAreNoFailure() async throws {
    let here = try await device(server)
    try await here.notes.save(Note(id: "a"))
    here.transport.set { [notes = here.notes] in $0.meanwhile = { try await notes.update("a") { $0.count += 1 } } }
    try await here.sync.exchange()
    #expect(here.transport.pushes >= SyncEngine.roundLimit)
  }

  // MARK: Refusals that concern the scope

  @Test func oneScopeTooManySetsNothingAside() async throws {
    let here = try await device(server)
    here.transport.set { $0.pushProblem = .tooManyScopes(most: 3) }
    try await here.notes.save(Note(id: "a"))
    await #expect(throws: SyncProblem.tooManyScopes(most: 3)) { try await here.sync.exchange() }
    #expect(try await here.sync.pending == 1)
    #expect(try await here.sync.rejected.count() == 0)
    here.transport.set { $0.pushProblem = nil }
    try await here.sync.exchange()
    #expect(server.records(of: "user/1").count == 1)
    let problem = SyncProblem.tooManyScopes(most: 3)
    #expect(SyncProblem(status: problem.status, body: problem.json) == problem)
    let other = SyncProblem.refused(status: 422, detail: "x")
    #expect(SyncProblem(status: other.status, body: other.json) == other)
  }

  /// A server that is full takes deletions, however many edits are before them, and of what is saved as much as fits.
  @Test func deletionsMakeRoomAtAServerThatIsFull() async throws {
    let here = try await device(server)
    for id in ["y", "z"] { try await here.notes.save(Note(id: id)) }
    try await here.sync.exchange()
    here.transport.set { [server] rules in
      rules.refusal = { push in
        let stored = Set(server.records(of: "user/1").map(\.id))
        let growth = push.groups.joined().reduce(0) { $0 + ($1.value == nil ? -1 : stored.contains($1.id) ? 0 : 1) }
        return growth > 0 && stored.count + growth > 3 ? .overQuota("full") : nil
      }
    }
    for id in 100..<700 { try await here.notes.save(Note(id: "\(id)")) }
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(try await here.sync.rejected.count() == 0)
    #expect(server.records(of: "user/1").map(\.id) == ["100", "y", "z"])
    for id in ["y", "z"] { try await here.notes.delete(id) }
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").map(\.id) == ["100", "101", "102"])
    #expect(try await here.sync.pending == 597)
    // A transaction is not divided for a quota.
    for id in ["100", "101"] { try await here.notes.delete(id) }
    let notes = here.notes
    for id in 102..<700 { try await notes.delete("\(id)") }
    try await notes.transaction { transaction in for id in 0..<4 { try transaction.save(Note(id: "t\(id)"), in: notes) } }
    await #expect(throws: SyncProblem.overQuota("full")) { try await here.sync.exchange() }
    #expect(server.records(of: "user/1").isEmpty)
    #expect(here.sync.status.current.dividedTransactions == 0)
    here.transport.set { $0.refusal = nil }
    try await here.sync.exchange()
    #expect(server.records(of: "user/1").count == 4)
    let problem = SyncProblem.overQuota("full")
    #expect(SyncProblem(status: 507, body: problem.json) == problem)
    // As a proxy says it.
    #expect(SyncProblem(status: 507, body: Data("<html>".utf8)) == .unavailable(retryAfter: nil))
  }

  // MARK: What is asked, and what is left

  @Test func aCommaInTheNameOfACollectionIsEscaped() {
    var request = SyncChangesRequest(device: "d", since: 0, collections: ["a,b", "c"])
    #expect(HTTPTransport.query(of: request) == "since=0&limit=1000&device=d&collections=a%2Cb,c")
    request.pending = 3
    #expect(HTTPTransport.query(of: request) == "since=0&limit=1000&device=d&collections=a%2Cb,c&pending=3")
  }

  @Test func signingOutRemovesConflicts() async throws {
    let (here, there) = (try await device(server), try await device(server))
    try await here.notes.save(Note(id: "a"))
    for sync in [here.sync, there.sync] { try await sync.exchange() }
    try await here.notes.update("a") { $0.text = "here" }
    try await there.notes.update("a") { $0.text = "there" }
    for sync in [here.sync, there.sync, here.sync] { try await sync.exchange() }
    #expect(try await there.sync.conflicts.loadAll().map(\.scope) == ["user/1"])
    try await there.sync.signOut()
    #expect(try await there.sync.conflicts.count() == 0)
  }

  @Test func withoutANetworkNewsAreAskedForMoreAndMoreRarely() async throws {
    let (clock, transport, alarm) = (ManualClock(), GatedTransport(server), ScopeAlarm())
    transport.set { ($0.pullProblem, $0.hasEvents) = (.unreachable("no network"), false) }
    let watch = HeadWatch(transport: transport, scope: "user/1", alarm: alarm, clock: clock)
    let task = Task { await watch.run { SyncChangesRequest(device: "d", since: 0, wait: HeadWatch.wait) } }
    for _ in 0..<600 {
      await clock.waitForSleepers()
      clock.advance(by: HeadWatch.pause)
    }
    await clock.waitForSleepers()
    #expect(transport.polls > 1 && transport.polls < 60, "of 600 that there would be every 2 s")
    let polls = transport.polls
    alarm.markUrgent()
    for _ in 0..<10_000 where transport.polls == polls {
      await clock.waitForSleepers()
      clock.advance(by: .milliseconds(1))
      await Task.yield()
    }
    #expect(transport.polls > polls)
    task.cancel()
    await task.value
  }
}
