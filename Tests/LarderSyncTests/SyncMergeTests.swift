import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderSync

private struct Trip: Codable, Identifiable, Sendable, Equatable {
  struct Stats: Codable, Sendable, Equatable {
    var visits = 0
    var tags: [String] = []
    var place = ""
  }
  var id: String
  var name = ""
  var visits = 0
  var stats = Stats()
}

/// A number that is stored as a text.
private struct Worded: Codable, Hashable, Sendable {
  var number = 0

  init(_ number: Int) { self.number = number }
  init(from decoder: any Decoder) throws { number = Int(try decoder.singleValueContainer().decode(String.self)) ?? 0 }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode("\(number)")
  }
}

private struct Tally: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var count = Worded(0)
}

/// Merges as the policy of a collection says, on two devices.
@Suite struct SyncMergeTests {
  private let server = SimulatedSyncServer()

  private func device<Item: Codable & Identifiable & Sendable>(
    _ schema: RepositorySchema<Item>
  ) async throws -> (items: LocalRepository<Item>, sync: SyncEngine) where Item.ID: Hashable & Codable & Sendable {
    let store = try await Store.open(InMemoryBackend())
    let items = try await store.repository(schema)
    return (items, try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"]))
  }

  @Test func countersAndSetsMayBeWithinAnObject() async throws {
    let schema = RepositorySchema<Trip>("trips").synced(
      in: "user/1", merge: .fields(counters: [\.visits, \.stats.visits], sets: [\.stats.tags]))
    let (here, there) = (try await device(schema), try await device(schema))
    try await here.items.save(Trip(id: "a", stats: .init(visits: 1, tags: ["x"])))
    for sync in [here.sync, there.sync] { try await sync.exchange() }
    try await here.items.update("a") { ($0.visits, $0.stats) = (1, .init(visits: 3, tags: ["x", "y"], place: "here")) }
    try await there.items.update("a") { ($0.visits, $0.stats) = (1, .init(visits: 3, tags: ["z"])) }
    for sync in [here.sync, there.sync, here.sync] { try await sync.exchange() }
    let expected = Trip(id: "a", visits: 2, stats: .init(visits: 5, tags: ["y", "z"], place: "here"))
    #expect(try await here.items.find(by: "a") == expected)
    #expect(try await there.items.find(by: "a") == expected)
  }

  @Test func aCounterThatIsStoredAsNoNumberIsSetAside() async throws {
    let schema = RepositorySchema<Tally>("tallies").synced(in: "user/1", merge: .fields(counters: [\.count]))
    let (here, there) = (try await device(schema), try await device(schema))
    try await here.items.save(Tally(id: "a"))
    for sync in [here.sync, there.sync] { try await sync.exchange() }
    for device in [here, there] { try await device.items.update("a") { $0.count = Worded($0.count.number + 2) } }
    for _ in 0..<2 { for sync in [here.sync, there.sync] { try await sync.exchange() } }
    #expect(try await there.sync.rejected.loadAll().map(\.code) == ["mergeFailed"])
  }

  @Test func aCollectionThatIsNotOpenIsMergedOnceItIs() async throws {
    let schema = RepositorySchema<Trip>("trips").synced(in: "user/1", merge: .fields(counters: [\.visits]))
    let (backend, there) = (InMemoryBackend(), try await device(schema))
    let first = try await Store.open(backend)
    let trips = try await first.repository(schema)
    let sync = try await SyncEngine(first, transport: GatedTransport(server), scopes: ["user/1"])
    try await trips.save(Trip(id: "a"))
    for sync in [sync, there.sync] { try await sync.exchange() }
    for items in [trips, there.items] { try await items.update("a") { $0.visits += 1 } }
    try await there.sync.exchange()
    try await first.close()
    let store = try await Store.open(backend)
    let engine = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"])
    try await engine.exchange()
    #expect(try await engine.rejected.loadAll().map(\.code) == ["notOpen"])
    let opened = try await store.repository(schema)
    #expect(try await opened.find(by: "a")?.visits == 1)
    for sync in [engine, there.sync] { try await sync.exchange() }
    for items in [opened, there.items] { #expect(try await items.find(by: "a")?.visits == 2) }
    #expect(try await engine.rejected.count() == 0)
    #expect(try await engine.pending == 0)
  }

  /// Whatever the policy says, which is not known, and whatever the versions: nothing is lost then.
  @Test(arguments: [1, 2], [true, false])
  func anEditWinsOverADeletionInACollectionThatIsNotOpen(version: Int, deletesHere: Bool) async throws {
    func schema(_ version: Int) -> RepositorySchema<Trip> {
      RepositorySchema("trips", version: version, migrations: version == 1 ? [] : [.init(from: 1) { _ in }]).synced(
        in: "user/1", merge: .fields(deletion: .deleteWins))
    }
    let (backend, there) = (InMemoryBackend(), try await device(schema(deletesHere ? version : 1)))
    for step in 0..<2 {
      let store = try await Store.open(backend)
      let trips = try await store.repository(schema(step == 0 || deletesHere ? 1 : version))
      let sync = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"])
      if step == 0 {
        try await trips.save(Trip(id: "a"))
        for sync in [sync, there.sync] { try await sync.exchange() }
      } else if deletesHere {
        try await trips.delete("a")
      } else {
        try await trips.update("a") { $0.name = "kept" }
      }
      try await store.close()
    }
    if deletesHere { try await there.items.update("a") { $0.name = "kept" } } else { try await there.items.delete("a") }
    try await there.sync.exchange()
    let store = try await Store.open(backend)
    let engine = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"])
    try await engine.exchange()
    #expect(try await engine.rejected.count() == 0)
    #expect(server.records(of: "user/1").compactMap(\.value).count == 1)
    #expect(try await store.repository(schema(version)).find(by: "a")?.name == "kept")
  }

  /// What was held for a merge that then fails is older than what the merge was told: a revert must not bring it back.
  @Test func aFailedMergeForgetsWhatWasHeld() async throws {
    struct Refusal: Error {}
    let schema = RepositorySchema<Trip>("trips").synced(in: "user/1", merge: .custom { _, _, _ in throw Refusal() })
    let (backend, there) = (InMemoryBackend(), try await device(RepositorySchema<Trip>("trips").synced(in: "user/1")))
    let first = try await Store.open(backend)
    let trips = try await first.repository(schema)
    let sync = try await SyncEngine(first, transport: GatedTransport(server), scopes: ["user/1"])
    try await trips.save(Trip(id: "a"))
    for sync in [sync, there.sync] { try await sync.exchange() }
    try await trips.update("a") { $0.visits = 1 }
    try await first.close()
    let store = try await Store.open(backend)
    let engine = try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"])
    for name in ["held", "newest"] {
      try await there.items.update("a") { $0.name = name }
      try await there.sync.exchange()
      if name == "newest" { _ = try await store.repository(schema) }
      try await engine.exchange()
      #expect(try await engine.rejected.loadAll().map(\.code) == [name == "held" ? "notOpen" : "mergeFailed"])
    }
    for rejection in try await engine.rejected.loadAll() { try await engine.revert(rejection) }
    #expect(try await store.repository(schema).find(by: "a") == Trip(id: "a", name: "newest"))
  }

  /// The phone is ten years ahead: its older edit would win by the clocks of the devices.
  @Test func theLaterEditHoldsWhateverTheClocksOfDevicesSay() async throws {
    let (real, phone, laptop) = (ManualClock(), ManualClock(), ManualClock())
    phone.setWall(by: 10 * 365 * 86_400)
    laptop.setWall(by: -10 * 365 * 86_400)
    let server = SimulatedSyncServer { real.now.milliseconds }
    var devices: [(trips: LocalRepository<Trip>, sync: SyncEngine)] = []
    for clock in [phone, laptop] {
      let store = try await Store.open(InMemoryBackend())
      let trips = try await store.repository(RepositorySchema<Trip>("trips").synced(in: "user/1", clock: clock))
      devices.append((trips, try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"], clock: clock)))
    }
    try await devices[0].trips.save(Trip(id: "a"))
    for device in devices { try await device.sync.exchange() }
    for (earlier, later) in [(0, 1), (1, 0)] {
      let name = "of \(later)"
      try await devices[earlier].trips.update("a") { $0.name = "of \(earlier), before" }
      for clock in [real, phone, laptop] { clock.setWall(by: 3_600) }
      try await devices[later].trips.update("a") { $0.name = name }
      for clock in [real, phone, laptop] { clock.setWall(by: 3_600) }
      // Whoever comes first, and whoever merges.
      for device in [devices[later], devices[earlier], devices[later]] { try await device.sync.exchange() }
      for device in devices { #expect(try await device.trips.find(by: "a")?.name == name) }
    }
  }
}
