import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder
@testable import LarderSync

private struct Spot: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var name: String
  var visits = 0
  var tags: [String] = []
}

private struct NewSpot: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var name: String
  var visits = 0
  var tags: [String] = []
  var place: [String: Int] = [:]
}

/// A transport straight to a simulated server.
private struct DirectTransport: SyncTransport {
  let server: SimulatedSyncServer
  /// Whether the network is gone once a push has arrived.
  var losesAnswers = false
  let pushed = Counter()

  final class Counter: Sendable {
    let count = Mutex(0)
  }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    pushed.count.withLock { $0 += push.groups.joined().count }
    let reply = try SyncPushReply(json: server.push(SyncPush(json: push.json), to: scope).json)
    if losesAnswers { throw SyncProblem.unreachable("lost") }
    return reply
  }
  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    if losesAnswers, pushed.count.withLock({ $0 > 0 }) { throw SyncProblem.unreachable("lost") }
    return try SyncChanges(json: server.changes(request, in: scope).json)
  }
  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }
}

@Suite struct SyncEngineTests {
  private let server = SimulatedSyncServer()

  private func device<Item: Codable & Identifiable & Sendable>(
    _ type: Item.Type, version: Int = 1, merge: MergePolicy<Item> = .fields()
  ) async throws -> (repository: LocalRepository<Item>, sync: SyncEngine, transport: DirectTransport)
  where Item.ID: Hashable & Codable & Sendable {
    let transport = DirectTransport(server: server)
    let store = try await Store.open(InMemoryBackend())
    let schema = RepositorySchema<Item>("spots", version: version).synced(in: "user/42", merge: merge)
    let repository = try await store.repository(schema)
    return (repository, try await SyncEngine(store, transport: transport, scopes: ["user/42"]), transport)
  }

  @Test func twoDevicesEndUpTheSame() async throws {
    let (here, there) = (
      try await device(Spot.self, merge: .fields(counters: [\.visits], sets: [\.tags])),
      try await device(Spot.self, merge: .fields(counters: [\.visits], sets: [\.tags]))
    )
    try await here.repository.save(Spot(id: "a", name: "Jogashima", visits: 1, tags: ["pier"]))
    try await here.sync.exchange()
    try await there.sync.exchange()
    try await here.repository.update("a") { ($0.visits, $0.tags) = (2, ["pier", "sea"]) }
    try await there.repository.update("a") { ($0.visits, $0.tags, $0.name) = (2, [], "Jogashima Pier") }
    for sync in [here.sync, there.sync, here.sync] { try await sync.exchange() }
    let expected = Spot(id: "a", name: "Jogashima Pier", visits: 3, tags: ["sea"])
    #expect(try await here.repository.find(by: "a") == expected)
    #expect(try await there.repository.find(by: "a") == expected)
  }

  @Test func manyEditsOfARecordAreOnePush() async throws {
    let device = try await device(Spot.self)
    for round in 0..<100 {
      try await device.repository.save(contentsOf: (0..<100).map { Spot(id: "\($0)", name: "edit \(round)") })
    }
    try await device.sync.exchange()
    #expect(device.transport.pushed.count.withLock { $0 } == 100)
    #expect(server.records(of: "user/42").count == 100)
    #expect(try await device.sync.pending == 0)
  }

  @Test func recordsFromBeforeTheCollectionWasSyncedAreSent() async throws {
    let backend = InMemoryBackend()
    let plain = try await Store.open(backend)
    try await plain.repository(RepositorySchema<Spot>("spots")).save(Spot(id: "old", name: "before"))
    try await plain.close()
    let store = try await Store.open(backend)
    _ = try await store.repository(RepositorySchema<Spot>("spots").synced(in: "user/42"))
    try await SyncEngine(store, transport: DirectTransport(server: server), scopes: ["user/42"]).exchange()
    #expect(server.records(of: "user/42").map(\.id) == ["old"])
  }

  @Test func aRecordWithoutAScopeHoldsNothingUp() async throws {
    let backend = InMemoryBackend()
    let plain = try await Store.open(backend)
    let spots = try await plain.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(contentsOf: [Spot(id: "a", name: "42"), Spot(id: "b", name: "a blank"), Spot(id: "c", name: "a blank")])
    try await plain.close()
    let store = try await Store.open(backend)
    let synced = try await store.repository(RepositorySchema<Spot>("spots").synced(in: { "user/\($0.name)" }))
    let sync = try await SyncEngine(store, transport: DirectTransport(server: server), scopes: ["user/42", "user/43"])
    try await sync.exchange()
    #expect(server.records(of: "user/42").map(\.id) == ["a"])
    #expect(try await sync.rejected.loadAll().map(\.code) == ["noScope", "noScope"])
    #expect(try await synced.delete("c"))
    #expect(try await sync.rejected.loadAll().map(\.recordID) == ["b"])
    try await synced.save(Spot(id: "b", name: "43"))
    #expect(try await sync.rejected.count() == 0)
    try await sync.exchange()
    #expect(server.records(of: "user/43").map(\.id) == ["b"])
  }

  @Test func aRefusedEditStaysAndHoldsNothingUp() async throws {
    let device = try await device(Spot.self)
    server.refuse { $0.id == "bad" ? "forbidden" : nil }
    try await device.repository.save(Spot(id: "bad", name: "mine"))
    try await device.repository.save(Spot(id: "good", name: "mine"))
    try await device.sync.exchange()
    #expect(server.records(of: "user/42").map(\.id) == ["good"])
    #expect(try await device.repository.find(by: "bad")?.name == "mine")
    let rejection = try #require(try await device.sync.rejected.first(Query()))
    #expect(rejection.code == "forbidden" && rejection.recordID == "bad")
    server.refuse { _ in nil }
    try await device.sync.exchange()
    #expect(server.records(of: "user/42").count == 1, "it is not sent by itself")
    try await device.sync.retry(rejection)
    try await device.sync.exchange()
    #expect(server.records(of: "user/42").count == 2)
    #expect(try await device.sync.rejected.count() == 0)
  }

  @Test func aRefusedEditCanBeRevertedOrEdited() async throws {
    let device = try await device(Spot.self)
    try await device.repository.save(contentsOf: [Spot(id: "a", name: "old"), Spot(id: "b", name: "old")])
    try await device.sync.exchange()
    server.refuse { String(decoding: $0.value ?? Data(), as: UTF8.self).contains("bad") ? "profane" : nil }
    try await device.repository.save(Spot(id: "a", name: "bad"))
    try await device.repository.save(Spot(id: "b", name: "bad"))
    try await device.sync.exchange()
    for rejection in try await device.sync.rejected.fetch(Query().filter { $0.recordID == "a" }) {
      try await device.sync.revert(rejection)
    }
    #expect(try await device.repository.find(by: "a")?.name == "old")
    try await device.repository.save(Spot(id: "b", name: "better"))
    #expect(try await device.sync.rejected.count() == 0)
    try await device.sync.exchange()
    #expect(server.records(of: "user/42").map { String(decoding: $0.value ?? Data(), as: UTF8.self).contains("better") } == [false, true])
    #expect(try await device.sync.pending == 0)
  }

  @Test func membersThatAnAppDoesNotKnowSurviveItsEdit() async throws {
    let (new, old) = (try await device(NewSpot.self), try await device(Spot.self))
    try await new.repository.save(NewSpot(id: "a", name: "x", place: ["latitude": 35]))
    try await new.sync.exchange()
    try await old.sync.exchange()
    try await old.repository.update("a") { $0.name = "y" }
    try await old.sync.exchange()
    try await new.sync.exchange()
    #expect(try await new.repository.find(by: "a") == NewSpot(id: "a", name: "y", place: ["latitude": 35]))
  }

  @Test func theySurviveTheEditOfAnAppOfANewerVersionToo() async throws {
    let (other, newer) = (try await device(NewSpot.self), try await device(Spot.self, version: 2))
    try await other.repository.save(NewSpot(id: "a", name: "x", place: ["latitude": 35]))
    try await other.sync.exchange()
    try await newer.sync.exchange()
    try await newer.repository.update("a") { $0.name = "y" }
    try await newer.sync.exchange()
    let record = try #require(server.records(of: "user/42").first)
    #expect(record.version == 2)
    #expect(try JSONDecoder().decode(NewSpot.self, from: record.value ?? Data()).place == ["latitude": 35])
  }

  @Test func aRecordOfANewerVersionIsKeptAndNotEdited() async throws {
    let (new, old) = (try await device(NewSpot.self, version: 2), try await device(Spot.self))
    try await new.repository.save(NewSpot(id: "a", name: "x"))
    try await new.sync.exchange()
    try await old.repository.save(Spot(id: "b", name: "mine"))
    try await old.sync.exchange()
    await #expect(throws: RepositoryError.self) { try await old.repository.find(by: "a") }
    await #expect(throws: RepositoryError.self) { try await old.repository.save(Spot(id: "a", name: "y")) }
    #expect(try await old.repository.find(by: "b")?.name == "mine")
    #expect(server.records(of: "user/42").map(\.version) == [2, 1])
    #expect(try await old.repository.delete("a"))
    try await old.sync.exchange()
    #expect(server.records(of: "user/42").map(\.id) == ["b"])
  }

  @Test func editsThatOnlyANewerAppCanMergeWaitForIt() async throws {
    let backend = InMemoryBackend()
    let options = StoreOptions(migration: .init(mode: .manual))
    let old = try await Store.open(backend, options: options)
    let spots = try await old.repository(RepositorySchema<Spot>("spots").synced(in: "user/42", merge: .fields(counters: [\.visits])))
    let sync = try await SyncEngine(old, transport: DirectTransport(server: server), scopes: ["user/42"])
    let other = try await device(NewSpot.self, version: 2, merge: .fields(counters: [\.visits]))
    try await spots.save(Spot(id: "a", name: "x"))
    try await spots.save(Spot(id: "b", name: "x"))
    try await sync.exchange()
    try await other.sync.exchange()
    try await spots.update("a") { $0.visits = 3 }
    try await spots.update("b") { $0.visits = 3 }
    for id in ["a", "b"] { try await other.repository.save(NewSpot(id: id, name: "new", visits: 2)) }
    try await other.sync.exchange()
    try await sync.exchange()
    #expect(try await spots.find(by: "a") == Spot(id: "a", name: "x", visits: 3))
    let waiting = try await sync.rejected.loadAll()
    #expect(waiting.map(\.code) == ["newerSchema", "newerSchema"])
    for rejection in waiting where rejection.recordID == "b" { try await sync.revert(rejection) }
    await #expect(throws: RepositoryError.self) { try await spots.find(by: "b") }
    try await old.close()
    let store = try await Store.open(backend, options: options)
    let raised = RepositorySchema<NewSpot>("spots", version: 2, migrations: [.init(from: 1) { $0["place"] = [:] }])
    let newer = try await store.repository(raised.synced(in: "user/42", merge: .fields(counters: [\.visits])))
    let newSync = try await SyncEngine(store, transport: DirectTransport(server: server), scopes: ["user/42"])
    try await newSync.exchange()
    #expect(try await newer.find(by: "a") == NewSpot(id: "a", name: "new", visits: 5))
    #expect(try await newer.find(by: "b") == NewSpot(id: "b", name: "new", visits: 2))
    #expect(try await newSync.rejected.count() == 0)
    #expect(try await newSync.pending == 0)
  }

  @Test func recordsThatWereRewrittenAreSent() async throws {
    let backend = InMemoryBackend()
    let options = StoreOptions(migration: .init(mode: .manual))
    let old = try await Store.open(backend, options: options)
    try await old.repository(RepositorySchema<Spot>("spots").synced(in: "user/42")).save(Spot(id: "a", name: "x"))
    try await old.close()
    let store = try await Store.open(backend, options: options)
    let raised = RepositorySchema<NewSpot>("spots", version: 2, migrations: [.init(from: 1) { $0["place"] = [:] }])
    let spots = try await store.repository(raised.synced(in: "user/42"))
    try await spots.finishMigration()
    let sync = try await SyncEngine(store, transport: DirectTransport(server: server), scopes: ["user/42"])
    try await sync.exchange()
    #expect(server.records(of: "user/42").map(\.version) == [2])
  }

  /// A migration between a push and its answer is no edit: one would undo a deletion elsewhere.
  @Test func aMigrationIsNoEdit() async throws {
    let backend = InMemoryBackend()
    let options = StoreOptions(migration: .init(mode: .manual))
    let old = try await Store.open(backend, options: options)
    try await old.repository(RepositorySchema<Spot>("spots").synced(in: "user/42")).save(Spot(id: "a", name: "x"))
    let lossy = DirectTransport(server: server, losesAnswers: true)
    let sync = try await SyncEngine(old, transport: lossy, scopes: ["user/42"])
    await #expect(throws: SyncProblem.self) { try await sync.exchange() }
    #expect(server.records(of: "user/42").map(\.version) == [1])
    try await old.close()
    let store = try await Store.open(backend, options: options)
    let raised = RepositorySchema<NewSpot>("spots", version: 2, migrations: [.init(from: 1) { $0["place"] = [:] }])
    let spots = try await store.repository(raised.synced(in: "user/42"))
    try await spots.finishMigration()
    let other = try await device(Spot.self)
    try await other.sync.exchange()
    #expect(try await other.repository.delete("a"))
    let newer = try await SyncEngine(store, transport: DirectTransport(server: server), scopes: ["user/42"])
    for _ in 0..<2 {
      try await newer.exchange()
      try await other.sync.exchange()
    }
    #expect(server.records(of: "user/42").map(\.value) == [])
    #expect(try await spots.count() == 0)
    #expect(try await newer.conflicts.count() == 0)
  }

  @Test func aRecordStaysInItsScope() async throws {
    let store = try await Store.open(InMemoryBackend())
    let spots = try await store.repository(RepositorySchema<Spot>("spots").synced(in: { "team/\($0.name)" }))
    try await spots.save(Spot(id: "a", name: "7"))
    await #expect(throws: RepositoryError.self) { try await spots.save(Spot(id: "a", name: "8")) }
    await #expect(throws: RepositoryError.self) { try await spots.save(Spot(id: "b", name: "a blank")) }
    #expect(try await spots.loadAll() == [Spot(id: "a", name: "7")])
  }

  @Test func whatLosesIsKept() async throws {
    let (here, there) = (try await device(Spot.self), try await device(Spot.self))
    try await here.repository.save(Spot(id: "a", name: "x"))
    try await here.sync.exchange()
    try await there.sync.exchange()
    try await here.repository.update("a") { $0.name = "here" }
    try await there.repository.update("a") { $0.name = "there" }
    for sync in [here.sync, there.sync, here.sync] { try await sync.exchange() }
    let name = try #require(try await here.repository.find(by: "a")?.name)
    #expect(try await there.repository.find(by: "a")?.name == name)
    let conflict = try #require(try await there.sync.conflicts.first(Query()))
    #expect(conflict.lost == ["name": name == "here" ? "\"there\"" : "\"here\""])
  }

  @Test func changesOfOtherDevicesSayWhereTheyComeFrom() async throws {
    let (here, there) = (try await device(Spot.self), try await device(Spot.self))
    var changes = here.repository.changes().makeAsyncIterator()
    try await there.repository.save(contentsOf: [Spot(id: "a", name: "x"), Spot(id: "b", name: "y")])
    try await there.sync.exchange()
    try await here.sync.exchange()
    let set = try #require(try await changes.next())
    #expect(set.changes.map(\.origin) == [.remote, .remote])
  }
}
