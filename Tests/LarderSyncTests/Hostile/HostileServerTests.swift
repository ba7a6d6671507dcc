import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

@testable import LarderSync
@testable import LarderTesting

private struct Page: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var scope = "user/1"
  var text = ""
}

/// A server learns and changes nothing but what the device has asked it about.
@Suite struct HostileServerTests {
  @Test func lyingServersLearnAndChangeNothingElse() async throws {
    for seed in Seeds.list(Torture.count(40, full: 4_000), for: "lyingServersLearnAndChangeNothingElse") {
      let directory = try TemporaryDirectory(inMemory: true)
      let isJSON = seed % 2 == 0
      do {
        try await HostileSyncTrial.run(choices: SeededGenerator(seed), rounds: 8) {
          if isJSON { JSONFileBackend(file: directory.file("s.json")) } else { SQLiteBackend(file: directory.file("s.sqlite")) }
        }
      } catch {
        Issue.record("LARDER_SEED=\(seed): \(error)")
      }
    }
  }

  /// The answer to a push names records that were not sent: of a collection that is not synced, and of a scope that the engine lacks.
  @Test(arguments: [true, false]) func aConflictAboutOtherRecordsIsDropped(_ plants: Bool) async throws {
    let (backend, transport) = (InMemoryBackend(), GatedTransport(SimulatedSyncServer()))
    let before = try await Store.open(backend)
    // A note from before the collection was synced has no entry.
    try await before.repository(RepositorySchema<Page>("notes")).save(Page(id: "monday", scope: "user/2", text: "secret"))
    try await before.close()
    let store = try await Store.open(backend)
    let diary = try await store.repository(RepositorySchema<Page>("diary"))
    let notes = try await store.repository(RepositorySchema<Page>("notes").synced(in: { $0.scope }))
    let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"])
    try await diary.save(Page(id: "monday", text: "secret"))
    let hostile = ["diary", "notes"].flatMap { name in
      ["monday", "new"].map { id in
        let value = Data(#"{"id":"\#(id)","scope":"user/1","text":"planted"}"#.utf8)
        return SyncRecord(collection: name, id: id, revision: 9, value: plants ? value : nil)
      }
    }
    transport.set { rules in
      rules.reply = { reply in
        var reply = reply
        reply.receipt.outcomes = reply.receipt.outcomes.map { _ in .conflict(hostile) }
        return reply
      }
      rules.page = { page in
        var page = page
        page.changes += hostile.filter { $0.id == "monday" }
        return page
      }
    }
    try await notes.save(Page(id: "mine"))
    // The server has taken the push all the same, and its page says so.
    try await sync.exchange()
    #expect(try await diary.loadAll() == [Page(id: "monday", text: "secret")])
    #expect(try await notes.loadAll() == [Page(id: "mine"), Page(id: "monday", scope: "user/2", text: "secret")])
    transport.set { ($0.reply, $0.page) = (nil, nil) }
    try await sync.exchange()
    #expect(transport.server.records(of: "user/1").map(\.id) == ["mine"])
  }

  /// A record from before its collection was synced that does not decode has no scope, so no server gets or changes it by naming it.
  @Test func aRecordWithoutAScopeIsNobodys() async throws {
    struct Odd: Codable, Identifiable, Sendable {
      var id: String
      var text: Int
    }
    let (backend, transport) = (InMemoryBackend(), GatedTransport(SimulatedSyncServer()))
    let before = try await Store.open(backend)
    try await before.repository(RepositorySchema<Odd>("notes")).save(Odd(id: "odd", text: 7))
    try await before.close()
    let store = try await Store.open(backend)
    let notes = try await store.repository(RepositorySchema<Page>("notes").synced(in: { $0.scope }))
    let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"])
    let stored = try store.stored.stored(RecordKey("odd"), in: store.collection(named: "notes"))
    let planted = Data(#"{"id":"odd","scope":"user/1","text":"planted"}"#.utf8)
    transport.set { rules in
      rules.page = { page in
        var page = page
        page.changes.append(SyncRecord(collection: "notes", id: "odd", revision: 9, value: planted))
        return page
      }
    }
    try await notes.save(Page(id: "mine"))
    for _ in 0..<2 { try await sync.exchange() }
    let kept = try store.stored.stored(RecordKey("odd"), in: store.collection(named: "notes"))
    #expect(stored != nil && kept == stored)
    #expect(transport.server.records(of: "user/1").map(\.id) == ["mine"])
  }
}
