import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// The fate of work that a server does not take.
@Suite struct SyncRefusalTests {
  private let server = SimulatedSyncServer()

  private func device() async throws -> (LocalRepository<Note>, SyncEngine, GatedTransport) {
    let transport = GatedTransport(server)
    let store = try await Store.open(InMemoryBackend())
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    return (notes, try await SyncEngine(store, transport: transport, scopes: ["user/1"]), transport)
  }

  @Test func aPushThatIsTooLargeIsDivided() async throws {
    let (notes, sync, transport) = try await device()
    transport.set { ($0.mostRecords, $0.tooLarge) = (7, "42") }
    for id in 0..<100 { try await notes.save(Note(id: "\(id)")) }
    try await sync.exchange()
    #expect(server.records(of: "user/1").count == 99)
    #expect(try await sync.rejected.loadAll().map(\.recordID) == ["42"])
    #expect(try await sync.rejected.first(Query())?.code == "tooLarge")
    #expect(try await sync.pending == 1)
    #expect(try await notes.count() == 100)
    transport.set { $0.tooLarge = nil }
    for rejection in try await sync.rejected.loadAll() { try await sync.retry(rejection) }
    try await sync.exchange()
    #expect(server.records(of: "user/1").count == 100)
  }

  @Test func aScopeThatIsOnlyReadSetsEditsAside() async throws {
    let (notes, sync, transport) = try await device()
    transport.set { $0.pushProblem = .forbidden }
    try await notes.save(contentsOf: (0..<100).map { Note(id: "\($0)") })
    try await sync.exchange()
    #expect(try await Set(sync.rejected.loadAll().map(\.code)) == ["forbidden"])
    #expect(try await sync.rejected.count() == 100)
    #expect(try await notes.count() == 100)
    #expect(transport.pushes == 1)
  }

  @Test func aPushThatDoesNotComeInTimeIsDivided() async throws {
    let (notes, sync, transport) = try await device()
    transport.set { ($0.mostRecords, $0.problemOfMore) = (7, .refused(status: 408, detail: "too slow")) }
    for id in 0..<20 { try await notes.save(Note(id: "\(id)")) }
    try await sync.exchange()
    #expect(server.records(of: "user/1").count == 20)
    // What belongs together is not cut for that, and nothing is set aside: the line may only have stood still.
    try await notes.save(contentsOf: (20..<30).map { Note(id: "\($0)") })
    await #expect(throws: SyncProblem.self) { try await sync.exchange() }
    #expect(try await sync.rejected.count() == 0)
    transport.set { $0.mostRecords = .max }
    try await sync.exchange()
    #expect(server.records(of: "user/1").count == 30)
  }

  /// What was called for before the device was signed out takes nothing back afterwards.
  @Test func signingOutEndsAnExchangeThatIsUnderWay() async throws {
    let (store, transport) = (try await Store.open(InMemoryBackend()), GatedTransport(server))
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: { "user/\($0.id)" }))
    let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1", "user/2"])
    try await notes.save(contentsOf: [Note(id: "1"), Note(id: "2")])
    try await sync.exchange()
    let (entered, continuation) = AsyncStream.makeStream(of: Void.self)
    let (never, other) = AsyncStream.makeStream(of: Void.self)
    transport.set { rules in
      rules.meanwhile = {
        continuation.yield()
        for await _ in never {}
        try Task.checkCancellation()
      }
    }
    let exchanges = [Task { try await sync.exchange() }, Task { try await sync.exchange() }]
    // Both scopes wait for their pages.
    var count = 0
    for await _ in entered {
      count += 1
      if count == 2 { break }
    }
    transport.set { $0.meanwhile = nil }
    let pulls = transport.pulls
    try await sync.signOut()
    for exchange in exchanges { await #expect(throws: CancellationError.self) { try await exchange.value } }
    #expect(transport.pulls == pulls)
    #expect(try await notes.count() == 0)
    other.finish()
  }

  @Test func aScopeThatIsLeftKeepsWhatIsUnsent() async throws {
    let (notes, sync, transport) = try await device()
    transport.set { ($0.pushProblem, $0.pullProblem) = (.forbidden, .forbidden) }
    try await notes.save(Note(id: "a"))
    await #expect(throws: SyncProblem.forbidden) { try await sync.exchange() }
    #expect(try await sync.pending == 1)
    #expect(try await notes.count() == 1)
    #expect(try await sync.rejected.count() == 0)
  }

  @Test func anOldAppTakesWhatIsNewAndKeepsItsWork() async throws {
    let (notes, sync, transport) = try await device()
    let (others, other, _) = try await device()
    try await others.save(Note(id: "b"))
    try await other.exchange()
    transport.set { $0.minimum = 2 }
    try await notes.save(Note(id: "a"))
    try await sync.exchange()
    #expect(try await notes.loadAll().map(\.id) == ["a", "b"])
    #expect(try await sync.pending == 1)
    let rejection = try #require(try await sync.rejected.loadAll().first)
    #expect(rejection.recordID == "a" && rejection.code == "upgradeRequired")
    #expect(rejection.detail == "The scope needs a newer version of the app. Expected schema version 2, found 1.")
  }

  @Test func whatAnOldAppCouldNotSendIsSentByANewerOne() async throws {
    let (backend, transport) = (InMemoryBackend(), GatedTransport(server))
    for version in [1, 2] {
      let store = try await Store.open(backend)
      let notes = try await store.repository(RepositorySchema<Note>("notes", version: version).synced(in: "user/1"))
      let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"])
      transport.set { $0.minimum = 2 }
      try await notes.save(Note(id: "a", text: "of version \(version)"))
      try await sync.exchange()
      #expect(try await sync.rejected.count() == (version == 1 ? 1 : 0))
      try await store.close()
    }
    #expect(server.records(of: "user/1").map(\.version) == [2])
  }

  @Test func anEditIsAsOldAsItIsWhenItArrives() async throws {
    let (here, there) = (ManualClock(), ManualClock())
    let server = SimulatedSyncServer { there.now.milliseconds }
    let (store, transport) = (try await Store.open(InMemoryBackend()), GatedTransport(server))
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1", clock: here))
    let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"], clock: here)
    try await sync.exchange()
    let edited = there.now.milliseconds
    try await notes.save(Note(id: "a"))
    transport.set { $0.pushProblem = .unreachable("cut off") }
    await #expect(throws: SyncProblem.self) { try await sync.exchange() }
    for clock in [here, there] { clock.setWall(by: 5 * 3_600) }
    transport.set { $0.pushProblem = nil }
    try await sync.exchange()
    #expect(server.records(of: "user/1").map(\.stamp) == [edited])
  }

  @Test func signingOutLosesNothingUnasked() async throws {
    let (notes, sync, _) = try await device()
    try await notes.save(Note(id: "a"))
    await #expect(throws: SyncUnsentEdits.self) { try await sync.signOut() }
    #expect(try await notes.count() == 1)
    try await sync.exchange()
    try await sync.signOut()
    #expect(try await notes.count() == 0)
    #expect(server.records(of: "user/1").count == 1)
    try await sync.exchange()
    #expect(try await notes.count() == 1, "to sign in is to take everything again")
    try await notes.save(Note(id: "b"))
    try await sync.signOut(force: true)
    #expect(try await notes.count() == 0 && server.records(of: "user/1").count == 1)
  }

  @Test func whatSyncKeepsMayBeLargerThanARecord() async throws {
    let backend = InMemoryBackend()
    var options = StoreOptions()
    options.limits = .init(recordBytes: 200, keyBytes: 8)
    let schema = RepositorySchema<Note>("notes").synced(in: "user/1")
    for text in ["x", "y", "z"] {
      let store = try await Store.open(backend, options: options)
      let notes = try await store.repository(schema)
      let sync = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"])
      if text == "z" { try await sync.exchange() }
      try await notes.save(Note(id: "12345678", text: String(repeating: text, count: 150)))
      if text == "x" { try await sync.exchange() }
      #expect(store.openReport.undecodable.isEmpty)
      try await store.close()
    }
    let value = try #require(server.records(of: "user/1").first?.value)
    #expect(String(decoding: value, as: UTF8.self).contains("yyy"))
  }

  @Test func eventsAreReadFromAnyPieces() {
    let text = ": hello\r\n\r\nid: 7\nevent: head\ndata: {\"head\":7}\n\ndata: nonsense\n\ndata: {\"head\":\ndata: 8}\n\n"
    for size in 1...text.utf8.count {
      var (events, heads) = (EventStream(), [Int]())
      let bytes = Array(text.utf8)
      for start in stride(from: 0, to: bytes.count, by: size) {
        heads += events.heads(in: Data(bytes[start..<min(start + size, bytes.count)]))
      }
      #expect(heads == [7, 8])
    }
  }
}
