import Foundation
import LarderTesting
import Testing

@testable import Larder
@testable import LarderSync

private struct Spot: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var n = 0
  var name = ""
}

/// A record that is inserted in the place of one that was deleted is another record: what it counts begins at zero.
@Suite struct ReinsertionTests {
  private typealias Device = (spots: LocalRepository<Spot>, sync: SyncEngine, transport: GatedTransport)
  private let server = SimulatedSyncServer()
  private let clock = ManualClock()

  private func device(_ backend: InMemoryBackend = InMemoryBackend()) async throws -> Device {
    let store = try await Store.open(backend)
    let spots = try await store.repository(
      RepositorySchema<Spot>("spots").synced(in: "user/1", merge: .fields(counters: [\.n]), clock: clock))
    let transport = GatedTransport(server)
    return (spots, try await SyncEngine(store, transport: transport, scopes: ["user/1"], clock: clock), transport)
  }

  /// Two devices that have the record with n = 100.
  private func devices() async throws -> (here: Device, there: Device) {
    let (here, there) = (try await device(), try await device())
    try await here.spots.save(Spot(id: "a", n: 100))
    for sync in [here.sync, there.sync] { try await sync.exchange() }
    return (here, there)
  }

  private func expectEqual(_ here: Device, _ there: Device, _ expected: Spot?, _ source: SourceLocation = #_sourceLocation) async throws {
    for sync in [here.sync, there.sync, here.sync, there.sync] { try await sync.exchange() }
    for device in [here, there] {
      #expect(try await device.spots.find(by: "a") == expected, sourceLocation: source)
      #expect(try await device.sync.pending == 0, sourceLocation: source)
    }
  }

  @Test func twoDevicesThatInsertARecordAnewAddWhatTheyCount() async throws {
    let (here, there) = try await devices()
    for device in [here, there] {
      try await device.spots.delete("a")
      try await device.spots.save(Spot(id: "a", n: 1))
    }
    try await expectEqual(here, there, Spot(id: "a", n: 2))
    for device in [here, there] { try await device.spots.update("a") { $0.n += 1 } }
    try await expectEqual(here, there, Spot(id: "a", n: 4))
  }

  @Test func aRecordThatIsInsertedAnewAloneHoldsAsItIs() async throws {
    let (here, there) = try await devices()
    try await here.spots.delete("a")
    try await here.spots.save(Spot(id: "a", n: 1))
    try await here.spots.update("a") { $0.n += 1 }
    try await expectEqual(here, there, Spot(id: "a", n: 2))
  }

  /// An undo brings the deleted record back, and not another one: also while another push keeps the device from sending it.
  @Test(arguments: [false, true]) func aDeletionThatIsUndoneCountsNothingTwice(whilePushing: Bool) async throws {
    let (here, there) = try await devices()
    if whilePushing {
      here.transport.set { $0.pushProblem = .unreachable("cut off") }
      try await here.spots.save(Spot(id: "b"))
      await #expect(throws: SyncProblem.self) { try await here.sync.exchange() }
    }
    try await here.spots.delete("a")
    try await here.spots.save(Spot(id: "a", n: 100))
    try await there.spots.update("a") { $0.n += 1 }
    try await there.sync.exchange()
    if whilePushing { await #expect(throws: SyncProblem.self) { try await here.sync.exchange() } }
    here.transport.set { $0.pushProblem = nil }
    try await expectEqual(here, there, Spot(id: "a", n: 101))
  }

  /// An undo is one whatever was edited before the deletion, and whatever is edited after it.
  @Test(arguments: [false, true]) func anUndoIsFollowedByEdits(isEditedBefore: Bool) async throws {
    let (here, there) = try await devices()
    if isEditedBefore { try await here.spots.update("a") { $0.n += 1 } }
    let deleted = try #require(try await here.spots.find(by: "a"))
    try await here.spots.delete("a")
    try await here.spots.save(deleted)
    try await here.spots.update("a") { $0.n += 2 }
    try await there.spots.update("a") { ($0.n, $0.name) = ($0.n + 5, "there") }
    try await there.sync.exchange()
    try await expectEqual(here, there, Spot(id: "a", n: isEditedBefore ? 108 : 107, name: "there"))
  }

  /// The push had the insertion: edits after it count from what was sent.
  @Test func editsAfterAnInsertionThatWasSentCountFromIt() async throws {
    let (here, there) = try await devices()
    try await here.spots.delete("a")
    try await here.spots.save(Spot(id: "a", n: 1))
    here.transport.set { rules in
      rules.reply = { _ in throw SyncProblem.unreachable("lost") }
      rules.meanwhile = { try await here.spots.update("a") { $0.n += 1 } }
    }
    try await here.sync.exchange()
    here.transport.set { ($0.reply, $0.meanwhile) = (nil, nil) }
    try await there.sync.exchange()
    try await there.spots.update("a") { $0.n += 10 }
    let counted = try #require(try await here.spots.find(by: "a")?.n)
    try await expectEqual(there, here, Spot(id: "a", n: counted + 10))
  }

  /// The push had an edit of the record that was deleted, and not the insertion: both are told apart within one millisecond.
  @Test func anInsertionBehindAPushIsNoEditOfWhatWasSent() async throws {
    let (here, there) = try await devices()
    try await here.spots.update("a") { $0.n += 1 }
    here.transport.set { rules in
      rules.reply = { _ in throw SyncProblem.unreachable("lost") }
      // Before the page that tells the outcome of the push; the insertion is not sent.
      rules.meanwhile = {
        guard try await here.spots.find(by: "a")?.n == 101 else { return }
        try await here.spots.delete("a")
        try await here.spots.save(Spot(id: "a", n: 1))
        here.transport.set { $0.pushProblem = .unreachable("cut off") }
      }
    }
    await #expect(throws: SyncProblem.self) { try await here.sync.exchange() }
    try await there.sync.exchange()
    try await there.spots.update("a") { $0.n += 5 }
    try await there.sync.exchange()
    here.transport.set { ($0.reply, $0.meanwhile, $0.pushProblem) = (nil, nil, nil) }
    try await expectEqual(here, there, Spot(id: "a", n: 107))
  }

  @Test func anInsertionIsKnownAfterARestart() async throws {
    let (backend, there) = (InMemoryBackend(), try await device())
    for step in 0..<2 {
      let here = try await device(backend)
      if step == 0 {
        try await here.spots.save(Spot(id: "a", n: 100))
        for sync in [here.sync, there.sync] { try await sync.exchange() }
        for device in [here, there] {
          try await device.spots.delete("a")
          try await device.spots.save(Spot(id: "a", n: 1))
        }
        try await there.sync.exchange()
        try await here.sync.store.close()
      } else {
        try await expectEqual(here, there, Spot(id: "a", n: 2))
      }
    }
  }
}
