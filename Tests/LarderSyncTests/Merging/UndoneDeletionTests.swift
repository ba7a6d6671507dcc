import Foundation
import LarderTesting
import Testing

@testable import Larder
@testable import LarderSync

private struct Note: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var text = ""
}

/// A device is told when another one undoes a deletion that the server had accepted.
@Suite struct UndoneDeletionTests {
  private let server = SimulatedSyncServer()
  private let clock = ManualClock()

  private struct Device {
    let store: Store
    let notes: LocalRepository<Note>
    let sync: SyncEngine

    func exchange() async throws { try await sync.exchange() }
  }

  private func device(
    _ backend: InMemoryBackend = InMemoryBackend(), deleteWins: Bool = false, transport: GatedTransport? = nil
  ) async throws -> Device {
    let store = try await Store.open(backend)
    let schema = RepositorySchema<Note>("notes").synced(
      in: "user/1", merge: .fields(deletion: deleteWins ? .deleteWins : .editWins), clock: clock)
    let notes = try await store.repository(schema)
    let sync = try await SyncEngine(store, transport: transport ?? GatedTransport(server), scopes: ["user/1"], clock: clock)
    return Device(store: store, notes: notes, sync: sync)
  }

  /// Two devices with a record that one has deleted, and the server with it, while the other one edits it.
  private func devices(_ ids: [String], deleteWins: Bool = false) async throws -> (here: Device, there: Device) {
    let (here, there) = (try await device(deleteWins: deleteWins), try await device(deleteWins: deleteWins))
    try await here.notes.save(contentsOf: ids.map { Note(id: $0) })
    for device in [here, there] { try await device.exchange() }
    for id in ids { try await here.notes.delete(id) }
    try await here.exchange()
    #expect(try await here.sync.deletions.count() == ids.count)
    try await there.notes.save(Note(id: ids[0], text: "there"))
    return (here, there)
  }

  private func expectToldOnce(_ here: Device, _ id: String = "a", _ source: SourceLocation = #_sourceLocation) async throws {
    let found = try await here.sync.conflicts.loadAll()
    #expect(found.map(\.recordID) == [id], sourceLocation: source)
    #expect(found.first?.lost == [:] && found.first?.isLocal == true && found.first?.duplicateOf == nil, sourceLocation: source)
    #expect(found.first?.scope == "user/1" && found.first?.collection == "notes", sourceLocation: source)
  }

  @Test func aDeletionThatTheServerHadAcceptedIsTold() async throws {
    let (here, there) = try await devices(["a", "b"])
    for device in [there, here] { try await device.exchange() }
    #expect(here.notes.snapshot.loadAll() == [Note(id: "a", text: "there")])
    try await expectToldOnce(here)
    #expect(try await there.sync.conflicts.count() == 0)
    #expect(try await here.sync.state(of: "a", in: here.notes) == .conflict(here.sync.conflicts.loadAll()))
    // Later edits are those of any record.
    try await there.notes.save(Note(id: "a", text: "again"))
    for device in [there, here] { try await device.exchange() }
    try await expectToldOnce(here)
  }

  @Test func itIsToldByAStoreThatWasOpenedAnew() async throws {
    let backend = InMemoryBackend()
    let (here, there) = (try await device(backend), try await device())
    try await here.notes.save(Note(id: "a"))
    for device in [here, there] { try await device.exchange() }
    try await here.notes.delete("a")
    try await here.exchange()
    try await there.notes.save(Note(id: "a", text: "there"))
    try await there.exchange()
    try await here.store.close()
    let again = try await device(backend)
    try await again.exchange()
    try await expectToldOnce(again)
  }

  @Test func aDeletionThatWinsIsNotTold() async throws {
    let (here, there) = try await devices(["a"], deleteWins: true)
    for device in [there, here] { try await device.exchange() }
    #expect(try await here.notes.count() == 0)
    #expect(try await here.sync.conflicts.count() == 0)
    // The deletion was still remembered: one that comes back whatever the policy says is told.
    try await there.notes.save(Note(id: "a", text: "new"))
    for device in [there, here] { try await device.exchange() }
    try await expectToldOnce(here)
  }

  /// A device cannot tell a new record under an old id from an edit that undoes the deletion.
  @Test func anOrdinaryInsertionUnderTheSameIDIsToldToo() async throws {
    let (here, there) = (try await device(), try await device())
    try await here.notes.save(Note(id: "2026-03-01"))
    for device in [here, there] { try await device.exchange() }
    try await here.notes.delete("2026-03-01")
    for device in [here, there] { try await device.exchange() }
    #expect(try await there.notes.count() == 0)
    try await there.notes.save(Note(id: "2026-03-01", text: "another"))
    for device in [there, here] { try await device.exchange() }
    try await expectToldOnce(here, "2026-03-01")
  }

  /// What comes back then undoes the deletion of that device, which is told.
  @Test func aLaterDeletionOfAnotherDeviceIsThatOnes() async throws {
    let (here, there) = (try await device(), try await device())
    try await here.notes.save(Note(id: "a"))
    for device in [here, there] { try await device.exchange() }
    try await here.notes.delete("a")
    for device in [here, there, here] { try await device.exchange() }
    #expect(try await here.sync.deletions.count() == 1)
    try await there.notes.save(Note(id: "a"))
    try await there.exchange()
    try await there.notes.delete("a")
    for device in [there, here] { try await device.exchange() }
    #expect(try await here.sync.deletions.count() == 0)
    let third = try await device()
    try await third.notes.save(Note(id: "a", text: "third"))
    for device in [third, here, there] { try await device.exchange() }
    #expect(try await here.sync.conflicts.count() == 0)
    try await expectToldOnce(there)
  }

  /// The answer to the deletion was lost, and the record is here again when a page tells that it was accepted.
  @Test func aDeletionThatItsOwnDeviceHasUndoneIsNotKept() async throws {
    let transport = GatedTransport(server)
    let here = try await device(transport: transport)
    try await here.notes.save(Note(id: "a"))
    try await here.exchange()
    try await here.notes.delete("a")
    transport.set {
      $0.reply = { _ in throw SyncProblem.unreachable("cut off") }
      $0.pullProblem = .unreachable("cut off")
    }
    await #expect(throws: SyncProblem.self) { try await here.exchange() }
    try await here.notes.save(Note(id: "a", text: "again"))
    transport.set { ($0.reply, $0.pullProblem, $0.pushProblem) = (nil, nil, .unreachable("cut off")) }
    await #expect(throws: SyncProblem.self) { try await here.exchange() }
    #expect(here.notes.snapshot.loadAll() == [Note(id: "a", text: "again")])
    #expect(try await here.sync.deletions.count() == 0)
  }

  /// A record that its own device has inserted anew is not deleted any more, whatever happens to it afterwards.
  @Test func anInsertionOfThisDeviceIsNotTold() async throws {
    let (here, there) = (try await device(), try await device())
    try await here.notes.save(Note(id: "a"))
    try await here.exchange()
    try await here.notes.delete("a")
    try await here.exchange()
    try await here.notes.save(Note(id: "a", text: "new"))
    for device in [here, there] { try await device.exchange() }
    #expect(try await here.sync.deletions.count() == 0)
    try await there.notes.delete("a")
    for device in [there, here] { try await device.exchange() }
    try await there.notes.save(Note(id: "a", text: "there"))
    for device in [there, here] { try await device.exchange() }
    #expect(here.notes.snapshot.loadAll() == [Note(id: "a", text: "there")])
    #expect(try await here.sync.conflicts.count() == 0)
  }

  @Test func deletionsAreForgottenByAgeAndNumber() async throws {
    let (here, there) = try await devices(["a"])
    clock.advance(by: .seconds(SyncDeletion.longest + 1))
    try await here.exchange()
    #expect(try await here.sync.deletions.count() == 0)
    for device in [there, here] { try await device.exchange() }
    #expect(here.notes.snapshot.loadAll() == [Note(id: "a", text: "there")])
    #expect(try await here.sync.conflicts.count() == 0)
    let ids = (0..<SyncDeletion.most + 30).map { String(format: "n%04d", $0) }
    try await here.notes.save(contentsOf: ids.map { Note(id: $0) })
    try await here.exchange()
    for id in ids {
      if id == "n0030" { clock.advance(by: .seconds(1)) }
      try await here.notes.delete(id)
      // The first 30 are accepted a second before the others.
      if id == "n0029" { try await here.exchange() }
    }
    try await here.exchange()
    let kept = try await here.sync.deletions.loadAll()
    #expect(kept.count == SyncDeletion.most && kept.allSatisfy { $0.id >= "notes/n0030" })
  }

  @Test func signingOutForgetsThem() async throws {
    let (here, _) = try await devices(["a", "b"])
    try await here.sync.signOut()
    #expect(try await here.sync.deletions.count() == 0)
  }
}
