import Foundation
import LarderTesting
import Testing

@testable import Larder
@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// What a device does where a server leaves it no way on.
@Suite struct RepeatedConflictTests {
  private let server = SimulatedSyncServer()
  private struct Unexpected: Error {}

  private func device() async throws -> (notes: LocalRepository<Note>, sync: SyncEngine, transport: GatedTransport) {
    let transport = GatedTransport(server)
    let store = try await Store.open(InMemoryBackend())
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: "user/1"))
    return (notes, try await SyncEngine(store, transport: transport, scopes: ["user/1"]), transport)
  }

  /// A server whose files were put back answers with conflicts that bring nothing new.
  @Test(arguments: [nil, 0, 1])
  func aConflictThatBringsNothingIsSetAside(_ back: Int?) async throws {
    let here = try await device()
    try await here.notes.save(Note(id: "a"))
    try await here.sync.exchange()
    let stored = try #require(server.records(of: "user/1").first)
    here.transport.set { rules in
      rules.reply = { reply in
        var reply = reply
        var record = stored
        if let back { record.revision -= back }
        reply.receipt.outcomes[0] = .conflict(back == nil ? [] : [record])
        return reply
      }
      // The page must not bring what the push has stored after all.
      rules.page = { page in
        var page = page
        page.changes.removeAll { $0.id == "a" }
        page.last = nil
        return page
      }
    }
    try await here.notes.save(Note(id: "a", text: "mine"))
    try await here.sync.exchange()
    #expect(try await here.sync.rejected.loadAll().map(\.code) == ["conflict"])
    #expect(try await here.notes.find(by: "a")?.text == "mine")
    #expect(here.transport.pushes < 10)
    here.transport.set { ($0.reply, $0.page) = (nil, nil) }
    try await here.notes.save(Note(id: "b"))
    try await here.sync.exchange()
    for rejection in try await here.sync.rejected.loadAll() { try await here.sync.retry(rejection) }
    try await here.sync.exchange()
    #expect(here.sync.status.current.isSaved)
    #expect(Set(server.records(of: "user/1").map(\.id)) == ["a", "b"])
  }

  /// A record that others keep writing holds its transaction back, and sets no part of it aside.
  @Test func aTransactionWithABusyRecordStaysWhole() async throws {
    let (here, there) = (try await device(), try await device())
    for id in ["busy", "quiet"] { try await here.notes.save(Note(id: id)) }
    for device in [here, there] { try await device.sync.exchange() }
    let (notes, others) = (here.notes, there)
    try await notes.transaction { transaction in
      for id in ["busy", "quiet"] { try transaction.save(Note(id: id, text: "mine"), in: notes) }
    }
    here.transport.set { rules in
      rules.meanwhile = {
        guard try await others.notes.find(by: "busy")?.text.count ?? 9 < 5 else { return }
        try await others.notes.update("busy") { $0.text += "x" }
        try await others.sync.exchange()
      }
    }
    try await here.sync.exchange()
    #expect(try await here.sync.rejected.count() == 0)
    #expect(here.sync.status.current.isSaved)
  }

  /// A combining mark makes one character with the slash that is before the id in an entry's key.
  @Test(arguments: ["\u{301}abc", "\u{301}q/r", "\u{200d}x", "\u{fe0f}y", "/\u{301}", "e\u{301}"])
  func idsAreBytes(_ id: String) async throws {
    let (here, there) = (try await device(), try await device())
    try await here.notes.save(Note(id: id, text: "mine"))
    #expect(here.sync.pendingRecords.current.map(\.recordID) == [id])
    #expect(here.sync.pendingRecords.current.map(\.collection) == ["notes"])
    try await here.sync.exchange()
    #expect(here.sync.status.current.isSaved && server.records(of: "user/1").map(\.id) == [id])
    try await there.sync.exchange()
    try await there.notes.update(id) { $0.text = "theirs" }
    try await there.sync.exchange()
    try await here.sync.exchange()
    #expect(try await here.notes.find(by: id)?.text == "theirs")
    try await here.sync.signOut()
    #expect(try await here.notes.count() == 0)
  }

  @Test func anIdWithOtherBytesHasAStateOfItsOwn() async throws {
    let (here, there) = (try await device(), try await device())
    for device in [here, there] {
      try await device.notes.save(Note(id: "caf\u{e9}", text: device.transport === here.transport ? "a" : "b"))
    }
    for device in [here, there, here] { try await device.sync.exchange() }
    try await there.notes.save(Note(id: "cafe\u{301}"))
    let states = [
      try await there.sync.state(of: "caf\u{e9}", in: there.notes), try await there.sync.state(of: "cafe\u{301}", in: there.notes),
    ]
    guard case .conflict = states[0] else { throw Unexpected() }
    #expect(states[1] == .waiting)
    try await there.sync.exchange()
    let found = try await there.sync.state(of: "cafe\u{301}", in: there.notes)
    #expect(found == .clean)
  }

  /// A record of a scope that no engine has, which is deleted again, leaves nothing to wait for.
  @Test func aDeletedRecordOfAnotherScopeIsNotWaitedFor() async throws {
    let store = try await Store.open(InMemoryBackend())
    let notes = try await store.repository(RepositorySchema<Note>("notes").synced(in: { $0.text.isEmpty ? "user/1" : $0.text }))
    let sync = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"])
    try await notes.save(Note(id: "a", text: "user/2"))
    try await sync.exchange()
    #expect(sync.status.current.otherScopes == ["user/2": 1])
    try await notes.delete("a")
    try await sync.exchange()
    #expect(sync.status.current.isSaved)
  }
}
