import Foundation
import Larder
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
  var count = 0
}

/// A store of a device in a directory of its own.
private struct Device {
  enum Kind: String, CaseIterable, Sendable {
    case json, sqlite
  }

  let kind: Kind
  let directory: TemporaryDirectory
  let store: Store
  let notes: LocalRepository<Note>
  let sync: SyncEngine
  let transport: GatedTransport

  init(_ kind: Kind, _ server: SimulatedSyncServer, in directory: TemporaryDirectory? = nil) async throws {
    (self.kind, self.directory) = (kind, try directory ?? TemporaryDirectory(inMemory: true))
    let file = self.directory.file("notes.\(kind.rawValue)")
    let backend: any StorageBackend = kind == .json ? JSONFileBackend(file: file) : SQLiteBackend(file: file)
    store = try await Store.open(backend)
    notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1", merge: .fields(counters: [\.count])))
    transport = GatedTransport(server)
    sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"])
  }

  /// Expects that a killed process and a closed one leave a store that opens, with an edit that was acknowledged and not sent.
  func expectToReopen(_ server: SimulatedSyncServer, with count: Int) async throws {
    let killed = try directory.copy()
    try await store.close()
    for place in [killed, directory] {
      let again = try await Device(kind, server, in: place)
      #expect(again.store.openReport.cutTail == nil)
      #expect(try await again.notes.find(by: "mine")?.count == 1)
      #expect(try await again.sync.pending == 1)
      #expect(try await again.sync.rejected.count() == count)
      #expect(await again.store.verify().isSound)
      try await again.store.close()
    }
  }
}

/// Records of other devices and of servers that no backend could read back: they reach no commit, and nothing else is lost for them.
@Suite struct HostilePeerTests {
  private let server = SimulatedSyncServer()

  @Test(arguments: Device.Kind.allCases, HostileRecord.all)
  fileprivate func aPageHoldsARecord(_ kind: Device.Kind, _ hostile: HostileRecord) async throws {
    let (here, there) = (try await Device(kind, server), try await Device(.json, server))
    try await there.notes.save(contentsOf: [Note(id: "a"), Note(id: "b"), Note(id: "c")])
    try await there.sync.exchange()
    // The record between two good ones of a page.
    here.transport.set { rules in
      rules.page = { page in
        var page = page
        page.changes = page.changes.map { $0.id == "b" ? hostile.of($0) : $0 }
        return page
      }
    }
    try await here.sync.exchange()
    #expect(try await here.notes.find(by: "a") != nil)
    #expect(try await here.notes.find(by: "c") != nil)
    let rejected = try await here.sync.rejected.loadAll()
    #expect(rejected.map(\.code) == hostile.fate.codes)
    for rejection in rejected {
      #expect(rejection.id.utf8.count < 1_100 && !rejection.detail.isEmpty && rejection.detail.utf8.count <= 1_024)
    }
    try await here.notes.save(Note(id: "mine", count: 1))
    try await here.expectToReopen(server, with: rejected.count)
    try await there.store.close()
  }

  @Test(arguments: Device.Kind.allCases, HostileRecord.all)
  fileprivate func aConflictHoldsARecord(_ kind: Device.Kind, _ hostile: HostileRecord) async throws {
    let (here, there) = (try await Device(kind, server), try await Device(.json, server))
    try await there.notes.save(contentsOf: [Note(id: "a"), Note(id: "b")])
    for sync in [there.sync, here.sync] { try await sync.exchange() }
    for notes in [there.notes, here.notes] { for id in ["a", "b"] { try await notes.update(id) { $0.count += 1 } } }
    try await there.sync.exchange()
    here.transport.set { rules in
      rules.reply = { reply in
        var reply = reply
        reply.receipt.outcomes = reply.receipt.outcomes.map { outcome in
          guard case .conflict(let records) = outcome else { return outcome }
          return .conflict(records.map { $0.id == "b" ? hostile.of($0) : $0 })
        }
        return reply
      }
      rules.page = { page in
        var page = page
        page.changes = page.changes.map { $0.id == "b" ? hostile.of($0) : $0 }
        return page
      }
    }
    try await here.sync.exchange()
    // The other record of the push is merged and sent; this one waits, or what came of it is stored.
    #expect(try await here.notes.find(by: "a")?.count == 2)
    let sent = try #require(server.records(of: "user/1").first { $0.id == "a" }?.value)
    #expect(try JSONDecoder().decode(Note.self, from: sent).count == 2)
    if hostile.fate == .setAside { #expect(try await here.notes.find(by: "b")?.count == 1) }
    let count = try await here.sync.rejected.count()
    let pending = try await here.sync.pending
    try await here.notes.save(Note(id: "mine", count: 1))
    let killed = try here.directory.copy()
    try await here.store.close()
    for place in [killed, here.directory] {
      let again = try await Device(kind, server, in: place)
      #expect(try await again.notes.find(by: "mine")?.count == 1)
      #expect(try await again.sync.pending == pending + 1)
      #expect(try await again.sync.rejected.count() == count)
      try await again.store.close()
    }
    try await there.store.close()
  }

  /// What was set aside goes on by itself once the server has a good record.
  @Test(arguments: Device.Kind.allCases)
  fileprivate func aGoodRecordTakesThePlaceOfOneThatWasSetAside(_ kind: Device.Kind) async throws {
    let (here, there) = (try await Device(kind, server), try await Device(.json, server))
    try await there.notes.save(contentsOf: [Note(id: "a"), Note(id: "b")])
    for sync in [there.sync, here.sync] { try await sync.exchange() }
    for (notes, id) in [(there.notes, "a"), (there.notes, "b"), (here.notes, "b")] { try await notes.update(id) { $0.count += 1 } }
    try await there.sync.exchange()
    let spoil = { @Sendable (record: SyncRecord) in
      var record = record
      record.version = 0
      return record
    }
    here.transport.set { rules in
      rules.page = { page in
        var page = page
        page.changes = page.changes.map(spoil)
        return page
      }
      rules.reply = { reply in
        var reply = reply
        reply.receipt.outcomes = reply.receipt.outcomes.map { outcome in
          if case .conflict(let records) = outcome { .conflict(records.map(spoil)) } else { outcome }
        }
        return reply
      }
    }
    try await here.sync.exchange()
    #expect(try await here.sync.rejected.loadAll().map(\.recordID) == ["a", "b"])
    #expect(try await here.notes.find(by: "a")?.count == 0)
    here.transport.set { ($0.page, $0.reply) = (nil, nil) }
    for id in ["a", "b"] { try await there.notes.update(id) { $0.text = "good" } }
    for sync in [there.sync, here.sync, there.sync] { try await sync.exchange() }
    #expect(try await here.sync.rejected.count() == 0)
    for notes in [here.notes, there.notes] {
      #expect(try await notes.loadAll() == [Note(id: "a", text: "good", count: 1), Note(id: "b", text: "good", count: 2)])
    }
    for store in [here.store, there.store] { try await store.close() }
  }

  /// A full pass takes what it has not seen for deleted; a record that was set aside was seen.
  @Test func aFullPassKeepsTheRecordOfOneThatWasSetAside() async throws {
    let here = try await Device(.json, server)
    try await here.notes.save(contentsOf: [Note(id: "a"), Note(id: "b")])
    try await here.sync.exchange()
    here.transport.set { rules in
      rules.page = { page in
        var page = page
        page.changes = page.changes.map { record in
          var record = record
          record.version = 1 << 40
          return record
        }
        return page
      }
    }
    server.restore(server.backup())
    try await here.sync.exchange()
    #expect(try await here.notes.count() == 2)
    #expect(try await here.sync.rejected.count() == 2)
    try await here.store.close()
  }

  /// A good record behind a full pass of another history is taken, whatever number it has there.
  @Test func aGoodRecordOfAnotherHistoryIsTaken() async throws {
    let (here, there) = (try await Device(.json, server), try await Device(.json, server))
    let backup = server.backup()
    for text in ["1", "2", "3"] {
      try await here.notes.save(Note(id: "a", text: text))
      try await here.sync.exchange()
    }
    server.restore(backup)
    try await there.notes.save(Note(id: "a", text: "other"))
    try await there.sync.exchange()
    here.transport.set { rules in
      rules.page = { page in
        var page = page
        for position in page.changes.indices { page.changes[position].version = 0 }
        return page
      }
    }
    try await here.sync.exchange()
    here.transport.set { $0.page = nil }
    try await there.notes.update("a") { $0.text = "good" }
    for sync in [there.sync, here.sync] { try await sync.exchange() }
    #expect(try await here.notes.find(by: "a")?.text == "good")
    #expect(try await here.sync.rejected.count() == 0)
    for store in [here.store, there.store] { try await store.close() }
  }

  /// One commit may bring the conflict with a bad record and, behind it, a good one.
  @Test func aGoodRecordBehindABadOneInOneCommitIsTaken() async throws {
    let (here, there) = (try await Device(.json, server), try await Device(.json, server))
    try await there.notes.save(Note(id: "a"))
    for sync in [there.sync, here.sync] { try await sync.exchange() }
    for notes in [there.notes, here.notes] { try await notes.update("a") { $0.count += 1 } }
    try await there.sync.exchange()
    here.transport.set { rules in
      rules.reply = { _ in throw SyncProblem.unreachable("lost") }
      rules.page = { page in
        var page = page
        let outcomes = page.last?.outcomes ?? []
        page.last?.outcomes = outcomes.map { outcome in
          guard case .conflict(var records) = outcome else { return outcome }
          for position in records.indices { records[position].version = 0 }
          return .conflict(records)
        }
        return page
      }
    }
    try await here.sync.exchange()
    #expect(try await here.notes.find(by: "a")?.count == 2)
    #expect(try await here.sync.rejected.count() == 0)
    #expect(try await here.sync.pending == 0)
    for store in [here.store, there.store] { try await store.close() }
  }

  /// A record out of bounds in the bytes of a page is set aside alone, as one that a transport hands over.
  @Test(arguments: [#""rev":-1"#, #""rev":9223372036854775807"#, #""rev":1,"stamp":-5"#, #""rev":1,"stamp":9007199254740993"#])
  func aRecordOutOfBoundsInABodyIsSetAside(_ members: String) async throws {
    let (here, there) = (try await Device(.json, server), try await Device(.json, server))
    try await there.notes.save(Note(id: "a"))
    try await there.sync.exchange()
    try await there.notes.save(Note(id: "b"))
    try await there.sync.exchange()
    here.transport.set { rules in
      rules.pageText = { text in
        text.replacing(/"rev":1,"stamp":[0-9]+/, with: members)
      }
    }
    try await here.sync.exchange()
    #expect(try await here.sync.rejected.loadAll().map { "\($0.recordID) \($0.code)" } == ["a malformed"])
    #expect(try await here.notes.loadAll().map(\.id) == ["b"])
    for store in [here.store, there.store] { try await store.close() }
  }

  /// Another scope's rejections are not a server's business either, and what a scope has set aside goes with it.
  @Test func rejectionsStayWithinTheirScope() async throws {
    let (store, transport) = (try await Store.open(InMemoryBackend()), GatedTransport(server))
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: { $0.id.hasPrefix("2") ? "user/2" : "user/1" }))
    let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1", "user/2"])
    transport.set { $0.refusal = { push in push.groups.joined().contains { $0.id == "2" } ? .upgradeRequired(minimum: 2) : nil } }
    try await notes.save(Note(id: "2"))
    try await sync.exchange()
    #expect(try await sync.rejected.loadAll().map { "\($0.scope ?? "") \($0.code)" } == ["user/2 upgradeRequired"])
    // The server of the first scope names the record of the second one, in both forms, and a record of its own.
    for version in [0, 1] {
      transport.set { rules in
        rules.page = { page in
          var page = page
          let value = Data(#"{"id":"2","text":"","count":0}"#.utf8)
          page.changes.append(SyncRecord(collection: "notes", id: "2", revision: 9, version: version, value: value))
          page.changes.append(SyncRecord(collection: "notes", id: "1 bad", revision: 9, version: 0, value: value))
          return page
        }
      }
      let one = try await SyncEngine(store, transport: transport, scopes: ["user/1"])
      try await one.exchange()
    }
    #expect(try await sync.rejected.find(by: "notes/2")?.code == "upgradeRequired")
    #expect(try await sync.rejected.find(by: "notes/1 bad")?.code == "malformed")
    let one = try await SyncEngine(store, transport: transport, scopes: ["user/1"])
    try await one.signOut()
    #expect(try await sync.rejected.loadAll().map(\.recordID) == ["2"])
  }

  /// The words of a server are cut before they are stored, and steer no terminal.
  @Test func theWordsOfARefusalAreCut() async throws {
    let here = try await Device(.json, server)
    server.refuse { _ in "no" }
    here.transport.set { rules in
      rules.reply = { reply in
        var reply = reply
        let words = "\u{1B}[31m" + String(repeating: "w", count: 1 << 20)
        reply.receipt.outcomes = reply.receipt.outcomes.map { _ in .rejected(code: words, detail: words) }
        return reply
      }
    }
    try await here.notes.save(Note(id: "a"))
    try await here.sync.exchange()
    let rejection = try #require(try await here.sync.rejected.loadAll().first)
    #expect(rejection.code == "[31m" + String(repeating: "w", count: 60))
    #expect(rejection.detail.utf8.count == 1_024 && rejection.detail.hasPrefix("[31mw"))
    try await here.store.close()
  }

  /// A record of this device that a server would refuse holds up nothing, and is not sent.
  @Test func aRecordOutOfBoundsIsNotSent() async throws {
    var options = StoreOptions()
    options.limits = .init(keyBytes: 4_096)
    let (store, transport) = (try await Store.open(InMemoryBackend(), options: options), GatedTransport(server))
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"])
    try await notes.save(contentsOf: [String(repeating: "i", count: 1_025), "a\0b"].map { Note(id: $0) })
    try await notes.save(Note(id: "good"))
    try await sync.exchange()
    #expect(server.records(of: "user/1").map(\.id) == ["good"])
    #expect(try await sync.rejected.loadAll().map(\.code) == ["malformed", "malformed"])
    #expect(transport.pushes == 1)
  }
}
