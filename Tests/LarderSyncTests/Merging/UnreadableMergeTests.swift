import Foundation
import LarderTesting
import Testing

@testable import Larder
@testable import LarderSync

private struct Trip: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var visits = 0
  var length = 0.0
  var cost = Decimal()
  var steps: UInt64 = 0
  var tags: [String] = []
}

/// What a merge makes of values that no honest device has written, or that no number holds.
@Suite struct UnreadableMergeTests {
  private let server = SimulatedSyncServer()

  private func device(
    _ backend: InMemoryBackend = InMemoryBackend(), _ options: StoreOptions = .init()
  ) async throws -> (trips: LocalRepository<Trip>, sync: SyncEngine) {
    let store = try await Store.open(backend, options: options)
    let policy = MergePolicy<Trip>.fields(counters: [\.visits, \.length, \.cost, \.steps], sets: [\.tags])
    let trips = try await store.repository(RepositorySchema<Trip>("trips").synced(in: "user/1", merge: policy))
    return (trips, try await SyncEngine(store, transport: GatedTransport(server), scopes: ["user/1"]))
  }

  /// Pushes a value as a device of another program does.
  private func plant(_ value: String, id: String = "a") throws {
    let base = server.records(of: "user/1").first { $0.id == id }?.revision ?? 0
    let record = PushedRecord(collection: "trips", id: id, base: base, version: 1, stamp: 1, value: Data(value.utf8))
    let history = try server.changes(SyncChangesRequest(device: "x", history: nil, since: 0, limit: 1, collections: []), in: "user/1")
      .history
    let reply = try server.push(
      SyncPush(history: history, device: UUID().uuidString, seq: 1, token: UUID().uuidString, clock: 1, groups: [[record]]), to: "user/1")
    guard case .accepted = reply.receipt.outcomes.first else { throw Unexpected() }
  }

  private struct Unexpected: Error {}

  @Test(arguments: [
    #""visits":1.5"#, #""visits":"many""#, #""visits":99999999999999999999"#, #""tags":[1]"#, #""tags":{}"#, #""id":"q""#,
    #""length":1e400"#, #""steps":-7"#,
  ])
  func aMergeThatTheTypeDoesNotReadIsSetAside(_ member: String) async throws {
    let here = try await device()
    let base = Trip(id: "a", visits: 1)
    try await here.trips.save(base)
    try await here.sync.exchange()
    try await here.trips.update("a") { trip in
      trip.visits += 5
      trip.tags.append("mine")
    }
    let name = member.prefix { $0 != ":" }.dropFirst().dropLast()
    var members: [String: String] = ["id": #""a""#, "visits": "1", "length": "0", "cost": "0", "steps": "0", "tags": "[]"]
    members[String(name)] = String(member.drop { $0 != ":" }.dropFirst())
    try plant("{" + members.map { "\"\($0)\":\($1)" }.sorted().joined(separator: ",") + "}")
    try await here.sync.exchange()
    #expect(try await here.trips.find(by: "a") == Trip(id: "a", visits: 6, tags: ["mine"]))
    let rejections = try await here.sync.rejected.loadAll()
    #expect(rejections.map(\.code) == ["mergeFailed"] && rejections.map(\.recordID) == ["a"])
    #expect(!here.sync.status.current.isSaved)
    #expect(server.records(of: "user/1").map(\.writer).count == 1)
    // The user decides for what is here.
    try await here.trips.save(Trip(id: "a", visits: 7))
    try await here.sync.exchange()
    #expect(here.sync.status.current.isSaved)
    let there = try await device()
    try await there.sync.exchange()
    #expect(try await there.trips.find(by: "a")?.id == "a")
  }

  @Test func countersOfEveryNumberAreExact() async throws {
    let (here, there) = (try await device(), try await device())
    let cost = try #require(Decimal(string: "12345678901234567890.12"))
    try await here.trips.save(Trip(id: "a", cost: cost, steps: 9_223_372_036_854_775_809))
    try await here.sync.exchange()
    try await there.sync.exchange()
    for (device, added) in [(here, 1), (there, 2)] {
      try await device.trips.update("a") { trip in
        trip.cost += Decimal(added) / 10
        trip.steps += UInt64(added)
        trip.length += Double(added) / 10
      }
    }
    for device in [here, there, here] { try await device.sync.exchange() }
    for device in [here, there] {
      let trip = try #require(try await device.trips.find(by: "a"))
      #expect(trip.cost == Decimal(string: "12345678901234567890.42"))
      #expect(trip.steps == 9_223_372_036_854_775_812)
      #expect(abs(trip.length - 0.3) < 1e-12)
      #expect(try await device.sync.conflicts.count() == 0)
    }
  }

  /// A sum that no `Double` holds is none: one of the two counts, and the other one is kept as one that has lost.
  @Test func aSumThatIsNoNumberIsAConflict() async throws {
    let (here, there) = (try await device(), try await device())
    try await here.trips.save(Trip(id: "a", length: 1.5e308))
    try await there.trips.save(Trip(id: "a", length: 1.6e308))
    for device in [here, there, here] { try await device.sync.exchange() }
    let found = [try await here.trips.find(by: "a"), try await there.trips.find(by: "a")]
    #expect(found[0] == found[1] && found[0]?.length ?? 0 > 1e308)
    #expect(try await there.sync.conflicts.loadAll().map(\.lost.count) == [1])
    #expect(here.sync.status.current.isSaved && there.sync.status.current.isSaved)
  }

  /// What another device repairs is merged with the edits as they were made, and not as edits of what could not be read.
  @Test func aRepairedRecordIsMergedFromTheFirstBase() async throws {
    let here = try await device()
    try await here.trips.save(Trip(id: "a", visits: 1, tags: ["first"]))
    try await here.sync.exchange()
    try await here.trips.update("a") { trip in
      trip.visits += 5
      trip.tags.append("mine")
    }
    let value = { (cost: String) in
      #"{"id":"a","visits":100,"length":0,"cost":\#(cost),"steps":0,"tags":["first","theirs"]}"#
    }
    try plant(value("\"x\""))
    try await here.sync.exchange()
    #expect(try await here.sync.rejected.loadAll().map(\.code) == ["mergeFailed"])
    try plant(value("2"))
    try await here.sync.exchange()
    let trip = try await here.trips.find(by: "a")
    #expect(trip?.visits == 105 && trip?.cost == 2 && Set(trip?.tags ?? []) == ["first", "theirs", "mine"])
    #expect(try await here.sync.rejected.count() == 0)
    #expect(here.sync.status.current.isSaved)
  }

  @Test(arguments: [true, false])
  func theUserDecidesForWhatCouldNotBeMerged(_ retries: Bool) async throws {
    let (here, there) = (try await device(), try await device())
    try await here.trips.save(Trip(id: "a", visits: 1))
    try await here.sync.exchange()
    try await here.trips.update("a") { $0.visits = 6 }
    try plant(#"{"id":"a","visits":"many","length":0,"cost":0,"steps":0,"tags":[]}"#)
    try await here.sync.exchange()
    let rejection = try #require(try await here.sync.rejected.loadAll().first)
    if retries { try await here.sync.retry(rejection) } else { try await here.sync.revert(rejection) }
    try await here.sync.exchange()
    #expect(here.sync.status.current.isSaved)
    try await there.sync.exchange()
    if retries {
      #expect(try await there.trips.find(by: "a")?.visits == 6)
    } else {
      await #expect(throws: RepositoryError.self) { try await here.trips.find(by: "a") }
    }
  }

  // MARK: Limits

  private func deep(_ levels: Int) -> String {
    #"{"id":"a","visits":0,"length":0,"cost":0,"steps":0,"tags":[],"x":"#
      + String(repeating: "[", count: levels) + String(repeating: "]", count: levels) + "}"
  }

  /// An edit of a record over a limit would be lost with the next opening: it is refused at once.
  @Test func aRecordOverALimitCannotBeEditedAndIsTold() async throws {
    let backend = InMemoryBackend()
    let here = try await device(backend)
    try plant(deep(70))
    try await here.sync.exchange()
    await #expect(throws: RepositoryError.self) { try await here.trips.find(by: "a") }
    await #expect(throws: RepositoryError.self) { try await here.trips.update("a") { $0.visits += 1 } }
    #expect(try await here.sync.rejected.loadAll().map(\.code) == ["tooLarge"])
    // Also after everything was read again.
    server.purge("user/1")
    try await here.sync.exchange()
    #expect(try await here.sync.rejected.loadAll().map(\.code) == ["tooLarge"])
    try plant(deep(3))
    try await here.sync.exchange()
    #expect(try await here.sync.rejected.count() == 0)
    try await here.trips.update("a") { $0.visits += 1 }
    try await here.sync.exchange()
    #expect(here.sync.status.current.isSaved)
  }

  @Test func anEditThatMeetsARecordOverALimitIsSetAside() async throws {
    let here = try await device(InMemoryBackend(), .init(limits: .init(recordBytes: 400)))
    try await here.trips.save(Trip(id: "a"))
    try await here.sync.exchange()
    try await here.trips.update("a") { $0.tags = [String(repeating: "t", count: 200)] }
    try plant(deep(3).replacing("[[[]]]", with: "\"" + String(repeating: "y", count: 200) + "\""))
    try await here.sync.exchange()
    #expect(try await here.trips.find(by: "a")?.tags.count == 1)
    #expect(try await here.sync.rejected.loadAll().map(\.code) == ["mergeFailed"])
  }
}
