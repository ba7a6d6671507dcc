import Foundation
import Larder
import Synchronization
import TestSupport
import Testing

@testable import LarderSync
@testable import LarderTesting

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// What an engine tells its user: what is not saved and why, and that it goes on by itself once it can.
@Suite(.timeLimit(.minutes(15))) struct SyncStatusTests {
  private let server = SimulatedSyncServer()

  private struct Device: Sendable {
    let notes: LocalRepository<Note>
    let sync: SyncEngine
    let transport: GatedTransport
    var status: SyncStatus { sync.status.current }
  }

  private func device(_ scopes: [String] = ["user/1"], clock: any WallClock = SystemClock()) async throws -> Device {
    let transport = GatedTransport(server)
    let store = try await Store.open(InMemoryBackend())
    let schema = RepositorySchema<Note>("notes").synced(
      in: { note in note.id.contains("@") ? String(note.id.drop { $0 != "@" }.dropFirst()) : "user/1" }, merge: .fields())
    let notes = try await store.repository(schema)
    let sync = try await SyncEngine(store, transport: transport, scopes: scopes, clock: clock)
    return Device(notes: notes, sync: sync, transport: transport)
  }

  private func exchange(_ devices: Device...) async throws { for device in devices { try await device.sync.exchange() } }

  // MARK: What is not saved

  @Test func aRefusedEditIsNotSaved() async throws {
    let here = try await device()
    #expect(here.status.isSaved)
    server.refuse { $0.id == "bad" ? "bad" : nil }
    try await here.notes.save(Note(id: "bad"))
    try await here.notes.save(Note(id: "good"))
    try await exchange(here)
    #expect(here.status.pending == 0 && here.status.rejected == 1)
    #expect(!here.status.isSaved)
    for refusal in try await here.sync.rejected.loadAll() { try await here.sync.revert(refusal) }
    #expect(here.status.isSaved)
  }

  /// The operator of a server sees how many edits wait on a device.
  @Test func aQuestionTellsHowManyEditsWait() async throws {
    let here = try await device()
    server.refuse { $0.id == "bad" ? "bad" : nil }
    for id in ["bad", "good"] { try await here.notes.save(Note(id: id)) }
    here.transport.set { $0.pushProblem = .unreachable("cut off") }
    await #expect(throws: SyncProblem.self) { try await exchange(here) }
    #expect(here.transport.pending == 2)
    here.transport.set { $0.pushProblem = nil }
    try await exchange(here)
    // The number is that of the last commit that was announced to observers, which may be the one before the push was settled.
    try await exchange(here)
    #expect(here.transport.pending == 1)
    for refusal in try await here.sync.rejected.loadAll() { try await here.sync.revert(refusal) }
    try await exchange(here)
    #expect(here.transport.pending == 0)
    // A question that waits for news tells it, too, or the server would take it for unknown again.
    here.transport.set { ($0.hasEvents, $0.pending) = (false, nil) }
    await here.sync.start()
    try await until { here.transport.polls > 0 }
    #expect(here.transport.pending == 0)
    await here.sync.stop()
  }

  /// Such a record would otherwise wait for ever, and count as something that is about to be sent.
  @Test func editsInAnotherScopeAreNamed() async throws {
    let here = try await device()
    for id in ["a", "b@user/2", "c@user/2", "d@user/3"] { try await here.notes.save(Note(id: id)) }
    try await exchange(here)
    #expect(here.status.pending == 0)
    #expect(here.status.otherScopes == ["user/2": 2, "user/3": 1])
    #expect(!here.status.isSaved)
    #expect(try await here.sync.pending == 3)
  }

  /// Also while nothing runs, and for records from before their collection was synced, in any scope.
  @Test func whatWasJustWrittenIsNotSaved() async throws {
    let here = try await device()
    try await exchange(here)
    #expect(here.status.isSaved)
    try await here.notes.save(Note(id: "a"))
    #expect(!here.status.isSaved && here.status.pending == 1)
    let store = try await Store.open(InMemoryBackend())
    let before = try await store.repository(RepositorySchema<Note>("notes"))
    try await before.save(contentsOf: [Note(id: "1"), Note(id: "2@user/2")])
    _ = try await store.repository(RepositorySchema<Note>("notes").synced(in: { $0.id == "1" ? "user/1" : "user/2" }))
    let sync = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"])
    #expect(!sync.status.current.isSaved)
    try await sync.exchange()
    #expect(sync.status.current.otherScopes == ["user/2": 1] && sync.status.current.pending == 0)
    #expect(!sync.status.current.isSaved)
  }

  @Test func aTransactionThatIsDividedIsSaid() async throws {
    let here = try await device()
    let notes = here.notes
    try await notes.transaction { transaction in for id in ["a", "b", "c"] { try transaction.save(Note(id: id), in: notes) } }
    try await exchange(here)
    #expect(here.status.dividedTransactions == 0)
    here.transport.set { $0.mostRecords = 2 }
    try await notes.transaction { transaction in for id in ["d", "e", "f", "g", "h"] { try transaction.save(Note(id: id), in: notes) } }
    try await exchange(here)
    #expect(here.status.dividedTransactions > 0 && here.status.isSaved)
    #expect(server.records(of: "user/1").count == 8)
  }

  // MARK: Single records

  @Test func aRecordSaysHowItStands() async throws {
    let (here, there) = (try await device(), try await device())
    func state(_ id: String) async throws -> SyncRecordState { try await here.sync.state(of: id, in: here.notes) }
    #expect(try await state("a") == .clean)
    try await here.notes.save(Note(id: "a"))
    #expect(try await state("a") == .waiting)
    here.transport.set { $0.pushProblem = .unavailable(retryAfter: 1) }
    await #expect(throws: SyncProblem.self) { try await here.sync.exchange() }
    #expect(try await state("a") == .inFlight)
    #expect(here.status.lastErrorScope == "user/1")
    #expect(here.status.lastErrorRecord?.recordID == "a")
    here.transport.set { $0.pushProblem = nil }
    server.refuse { $0.id == "bad" ? "bad" : nil }
    try await here.notes.save(Note(id: "bad"))
    try await exchange(here)
    #expect(here.status.lastErrorScope == nil && here.status.lastErrorRecord == nil)
    #expect(try await state("a") == .clean)
    guard case .refused(let refusal) = try await state("bad") else { throw Unexpected() }
    #expect(refusal.code == "bad")
    // A deletion waits as any edit does.
    try await here.notes.delete("a")
    #expect(try await state("a") == .waiting)
    try await here.notes.save(Note(id: "a"))
    try await exchange(here, there)
    try await there.notes.save(Note(id: "a", text: "there"))
    try await here.notes.save(Note(id: "a", text: "here"))
    try await exchange(there, here)
    guard case .conflict(let lost) = try await state("a") else { throw Unexpected() }
    #expect(lost.count == 1)
    let plain = try await LocalRepository<Note>(inMemory: .init())
    await #expect { _ = try await here.sync.state(of: "a", in: plain) } throws: { ($0 as? RepositoryError)?.code == .unsupported }
  }

  private struct Unexpected: Error {}

  @Test func pendingRecordsComeAsASequence() async throws {
    let here = try await device()
    var lists = here.sync.pendingRecords.makeAsyncIterator()
    #expect(await lists.next() == [])
    server.refuse { $0.id == "b" ? "bad" : nil }
    for id in ["a", "b"] { try await here.notes.save(Note(id: id)) }
    #expect(here.sync.pendingRecords.current.map(\.recordID) == ["a", "b"])
    try await exchange(here)
    var newest: [SyncPendingRecord]?
    repeat { newest = await lists.next() } while newest?.count != 1
    let refused = here.sync.pendingRecords.current
    #expect(newest == refused)
    #expect(refused.first?.recordID == "b" && refused.first?.isRefused == true && refused.first?.scope == "user/1")
    #expect(refused.first?.collection == "notes")
  }

  // MARK: What has lost

  @Test func theNewestThousandConflictsAreKept() async throws {
    let clock = ManualClock()
    let (here, there) = (try await device(), try await device(clock: clock))
    // 30 conflicts, and a second later as many as are kept.
    for ids in [(0..<30).map { "old\($0)" }, (0..<SyncEngine.conflictLimit).map { "new\($0)" }] {
      try await here.notes.save(contentsOf: ids.map { Note(id: $0) })
      try await exchange(here, there)
      try await here.notes.save(contentsOf: ids.map { Note(id: $0, text: "here") })
      try await there.notes.save(contentsOf: ids.map { Note(id: $0, text: "there") })
      try await exchange(here, there)
      clock.advance(by: .seconds(1))
    }
    let kept = try await there.sync.conflicts.loadAll()
    #expect(kept.count == SyncEngine.conflictLimit && there.status.conflicts == kept.count)
    #expect(kept.allSatisfy { $0.recordID.hasPrefix("new") })
  }

  @Test func aDeletionThatAnEditHasUndoneIsTold() async throws {
    let (here, there) = (try await device(), try await device())
    for id in ["edited", "untouched"] { try await here.notes.save(Note(id: id)) }
    try await exchange(here, there)
    try await there.notes.save(Note(id: "edited", text: "there"))
    for id in ["edited", "untouched"] { try await here.notes.delete(id) }
    try await exchange(there, here)
    #expect(here.notes.snapshot.loadAll() == [Note(id: "edited", text: "there")])
    let found = try await here.sync.conflicts.loadAll()
    #expect(found.map(\.recordID) == ["edited"])
    #expect(found.first?.lost == [:] && found.first?.isLocal == true)
    #expect(try await there.sync.conflicts.count() == 0)
  }

  // MARK: Going on by itself

  @Test func editsGoWhenTheRightComesBack() async throws {
    let clock = ManualClock()
    let here = try await device(clock: clock)
    here.transport.set { ($0.listsScopes, $0.mayWrite, $0.pushProblem) = (true, false, .forbidden) }
    for id in ["a", "b"] { try await here.notes.save(Note(id: id)) }
    try await exchange(here)
    #expect(try await here.sync.rejected.count() == 2)
    // Nothing is sent as long as there is no right.
    let pushes = here.transport.pushes
    try await exchange(here)
    #expect(here.transport.pushes == pushes)
    #expect(try await here.sync.rejected.count() == 2)
    here.transport.set { ($0.mayWrite, $0.pushProblem) = (true, nil) }
    await here.sync.start()
    while server.records(of: "user/1").count < 2 { try await pass(.seconds(10), clock) }
    #expect(try await here.sync.rejected.count() == 0)
    await here.sync.stop()
  }

  /// A server's own rule may have the same code.
  @Test func aRuleOfTheServerIsNotTakenForAMissingRight() async throws {
    let here = try await device()
    here.transport.set { $0.listsScopes = true }
    server.refuse { _ in "forbidden" }
    try await here.notes.save(Note(id: "a"))
    try await exchange(here)
    let pushes = here.transport.pushes
    try await exchange(here)
    #expect(here.transport.pushes == pushes)
    #expect(try await here.sync.rejected.count() == 1)
  }

  /// Lets time pass, and then what it has woken run for a while: on a busy machine the clock would otherwise be hours ahead.
  private func pass(_ time: Duration, _ clock: ManualClock) async throws {
    clock.advance(by: time)
    for _ in 0..<100 { await Task.yield() }
  }

  /// The token has run out, and the app has the next one some time later.
  @Test func otherCredentialsAreTriedWithinSeconds() async throws {
    let clock = ManualClock()
    let transport = TokenTransport(server)
    let store = try await Store.open(InMemoryBackend())
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"], clock: clock)
    await sync.start()
    try await notes.save(Note(id: "a"))
    while sync.status.current.lastError as? SyncProblem != .unauthorized { await Task.yield() }
    let requests = transport.requests
    // The app is asked every few seconds, and the server is not.
    while transport.questions < 2 { try await pass(.seconds(1), clock) }
    #expect(transport.requests == requests)
    transport.renew()
    let asked = transport.questions
    while transport.questions == asked { try await pass(.seconds(1), clock) }
    // No more time passes.
    while server.records(of: "user/1").isEmpty { await Task.yield() }
    await sync.stop()
  }

  // MARK: Several scopes

  @Test func oneRequestAsksForTheHeadsOfAllScopes() async throws {
    let scopes = (0..<150).map { "user/\($0)" }
    let here = try await device(scopes)
    here.transport.set { $0.listsScopes = true }
    try await exchange(here)
    let pulls = here.transport.pulls
    #expect(pulls >= 150)
    try await exchange(here)
    #expect(here.transport.pulls == pulls && here.transport.lists == 2)
    // Those with news, and those with edits, are exchanged, and no others.
    let there = try await device(["user/7"])
    try await there.notes.save(Note(id: "news@user/7"))
    try await exchange(there)
    try await here.notes.save(Note(id: "edit@user/9"))
    try await exchange(here)
    #expect(here.notes.snapshot.loadAll().map(\.id).sorted() == ["edit@user/9", "news@user/7"])
    #expect(server.records(of: "user/9").count == 1)
    #expect(here.transport.pulls - pulls <= 4)
    // A server that was restored has other revisions under the same numbers.
    server.restore(server.backup())
    let before = here.transport.pulls
    try await exchange(here)
    #expect(here.transport.pulls - before >= 150)
    #expect(here.status.isSaved)
  }

  @Test func aScopeThatFailsKeepsNoOtherOfThoseExchangedBesideIt() async throws {
    let scopes = (0..<12).map { "user/\($0)" }
    let here = try await device(scopes)
    for scope in scopes { try await here.notes.save(Note(id: "a@\(scope)")) }
    here.transport.set { rules in
      rules.refusal = { $0.groups.joined().contains { $0.id == "a@user/3" } ? .unavailable(retryAfter: 1) : nil }
    }
    await #expect(throws: SyncProblem.unavailable(retryAfter: 1)) { try await here.sync.exchange() }
    #expect(scopes.filter { server.records(of: $0).isEmpty } == ["user/3"])
    #expect(here.status.pending == 1)
  }

  @Test func aRefusedSignOutLeavesEverythingAsItIs() async throws {
    let here = try await device(clock: ManualClock())
    here.transport.set { $0.pushProblem = .unavailable(retryAfter: 100) }
    try await here.notes.save(Note(id: "a"))
    await here.sync.start()
    while here.status.phase != .waiting { await Task.yield() }
    let tasks = await here.sync.tasks
    await #expect(throws: SyncUnsentEdits.self) { try await here.sync.signOut() }
    #expect(await here.sync.tasks == tasks)
    #expect(here.status.phase == .waiting)
    #expect(here.status.lastError as? SyncProblem == .unavailable(retryAfter: 100))
    await here.sync.stop()
  }
}

/// A transport whose token has run out until the app has another one.
private final class TokenTransport: CredentialedTransport {
  private struct State: Sendable {
    var isValid = false
    var (requests, questions) = (0, 0)
  }

  private let server: SimulatedSyncServer
  private let state = Mutex(State())

  init(_ server: SimulatedSyncServer) { self.server = server }

  var requests: Int { state.withLock { $0.requests } }
  var questions: Int { state.withLock { $0.questions } }
  func renew() { state.withLock { $0.isValid = true } }

  private func check() throws(SyncProblem) {
    let isValid = state.withLock { state in
      state.requests += 1
      return state.isValid
    }
    if !isValid { throw .unauthorized }
  }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    try check()
    return try server.push(push, to: scope)
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    // The watch for news has waits of its own.
    if request.wait > 0 { throw SyncProblem.unavailable(retryAfter: 10_000) }
    try check()
    return try server.changes(request, in: scope)
  }

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unavailable(retryAfter: 10_000) }

  func lacksCredentials() async -> Bool { state.withLock { !$0.isValid } }

  func hasOtherCredentials() async -> Bool {
    state.withLock { state in
      state.questions += 1
      return state.isValid
    }
  }
}
