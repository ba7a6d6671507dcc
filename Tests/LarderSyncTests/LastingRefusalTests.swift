import Foundation
import LarderTesting
import Testing

@testable import Larder
@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// Whatever a server refuses for good is set aside by name, and the rest goes: one test for each refusal.
@Suite struct LastingRefusalTests {
  private let server = SimulatedSyncServer()

  /// A refusal of each push that has a record named "bad".
  struct Refusal: Sendable, CustomTestStringConvertible {
    let problem: SyncProblem
    let code: String
    var testDescription: String { "\(problem.status) \(code)" }
  }

  private static let lasting: [Refusal] =
    [Refusal(problem: .tooLarge, code: "tooLarge"), Refusal(problem: .upgradeRequired(minimum: 9), code: "upgradeRequired")]
    // A minimum below every version contradicts itself: the record is found by dividing.
    + [Refusal(problem: .upgradeRequired(minimum: 0), code: "upgradeRequired")]
    + [400, 412, 422, 423, 424, 451].map {
      Refusal(problem: .refused(status: $0, detail: "no"), code: "refused")
    }

  private func device(
    _ backend: InMemoryBackend = InMemoryBackend(), version: Int = 1
  ) async throws -> (notes: LocalRepository<Note>, sync: SyncEngine, transport: GatedTransport) {
    let transport = GatedTransport(server)
    let store = try await Store.open(backend)
    let migrations: [Migration] = version == 1 ? [] : [.init(from: 1) { $0["color"] = "red" }]
    let notes = try await store.repository(RepositorySchema<Note>("notes", version: version, migrations: migrations).synced(in: "user/1"))
    return (notes, try await SyncEngine(store, transport: transport, scopes: ["user/1"]), transport)
  }

  @Test(arguments: lasting, [false, true])
  func aRecordThatIsRefusedForGoodHoldsNothingUp(_ refusal: Refusal, isDeletion: Bool) async throws {
    let (notes, sync, transport) = try await device()
    if isDeletion {
      try await notes.save(Note(id: "bad"))
      try await sync.exchange()
    }
    transport.set { rules in
      rules.refusal = { push in push.groups.joined().contains { $0.id == "bad" } ? refusal.problem : nil }
    }
    if isDeletion { try await notes.delete("bad") } else { try await notes.save(Note(id: "bad")) }
    for id in 0..<20 { try await notes.save(Note(id: "\(id)")) }
    try await sync.exchange()
    #expect(server.records(of: "user/1").count { $0.id != "bad" } == (refusal.problem == .upgradeRequired(minimum: 9) ? 0 : 20))
    let rejected = try await sync.rejected.loadAll()
    #expect(Set(rejected.map(\.code)) == [refusal.code])
    #expect(rejected.contains { $0.recordID == "bad" })
    // What comes after it goes.
    try await notes.save(Note(id: "later"))
    try await sync.exchange()
    #expect(server.records(of: "user/1").contains { $0.id == "later" })
    // And it goes itself once the server takes it.
    transport.set { $0.refusal = nil }
    for rejection in try await sync.rejected.loadAll() { try await sync.retry(rejection) }
    try await sync.exchange()
    #expect(try await sync.pending == 0)
    #expect(server.records(of: "user/1").contains { $0.id == "bad" } == !isDeletion)
  }

  /// Refusals that say nothing about the records: everything waits, and the app is told.
  @Test(
    arguments: [
      SyncProblem.unauthorized, .unavailable(retryAfter: nil), .tooManyRequests(retryAfter: 1), .tooManyScopes(most: 1), .overQuota("x"),
      .malformed("no JSON"),
    ] + [301, 402, 404, 405, 406, 407, 408, 409, 411, 415, 417, 421, 425, 428, 431].map { .refused(status: $0, detail: "") })
  func aRefusalOfTheRequestSetsNothingAside(_ problem: SyncProblem) async throws {
    let (notes, sync, transport) = try await device()
    transport.set { $0.pushProblem = problem }
    for id in 0..<3 { try await notes.save(Note(id: "\(id)")) }
    await #expect(throws: problem) { try await sync.exchange() }
    #expect(try await sync.rejected.count() == 0)
    #expect(try await sync.pending == 3)
    transport.set { $0.pushProblem = nil }
    try await sync.exchange()
    #expect(server.records(of: "user/1").count == 3)
  }

  /// A deletion is of the version of the app that deletes: it is taken where a record of that version is.
  @Test func aDeletionByANewAppIsTaken() async throws {
    let backend = InMemoryBackend()
    let old = try await device(backend)
    try await old.notes.save(contentsOf: [Note(id: "a"), Note(id: "b")])
    try await old.sync.exchange()
    try await old.sync.store.close()
    let new = try await device(backend, version: 2)
    new.transport.set { $0.minimum = 2 }
    try await new.notes.delete("a")
    try await new.notes.update("b") { $0.text = "new" }
    try await new.sync.exchange()
    #expect(server.records(of: "user/1").map(\.id) == ["b"])
    #expect(try await new.sync.rejected.count() == 0)
    #expect(try await new.sync.pending == 0)
  }

  /// The records of an old app wait for the new one, each by name; those of other collections go.
  @Test func whatNeedsANewerAppGoesWithIt() async throws {
    let backend = InMemoryBackend()
    let old = try await device(backend)
    old.transport.set { $0.minimum = 2 }
    try await old.notes.save(contentsOf: [Note(id: "a"), Note(id: "b")])
    try await old.sync.exchange()
    #expect(try await old.sync.rejected.loadAll().map { "\($0.recordID) \($0.code)" } == ["a upgradeRequired", "b upgradeRequired"])
    #expect(server.records(of: "user/1").isEmpty)
    try await old.sync.store.close()
    let new = try await device(backend, version: 2)
    new.transport.set { $0.minimum = 2 }
    try await new.sync.exchange()
    #expect(server.records(of: "user/1").map(\.id) == ["a", "b"])
    #expect(try await new.sync.rejected.count() == 0)
  }

  /// A server of this version takes a deletion whatever its version: only the edit waits.
  @Test func aDeletionByAnOldAppIsTaken() async throws {
    let (notes, sync, transport) = try await device()
    try await notes.save(contentsOf: [Note(id: "edited"), Note(id: "deleted")])
    try await sync.exchange()
    transport.set { ($0.minimum, $0.minimumTakesDeletions) = (2, true) }
    try await notes.update("edited") { $0.text = "old" }
    try await notes.delete("deleted")
    try await sync.exchange()
    #expect(try await sync.rejected.loadAll().map { "\($0.recordID) \($0.code)" } == ["edited upgradeRequired"])
    #expect(server.records(of: "user/1").map(\.id) == ["edited"])
    #expect(try await sync.pending == 1)
  }
}
