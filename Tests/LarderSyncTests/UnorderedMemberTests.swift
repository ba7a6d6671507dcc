import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder
@testable import LarderSync

private enum Gear: String, Codable, CaseIterable, Sendable {
  case rod, reel, net, boat
}

private struct Part: Codable, Hashable, Sendable {
  var name: String
}

private struct Trip: Codable, Identifiable, Sendable, Equatable {
  struct Crew: Codable, Sendable, Equatable {
    var names: Set<String> = ["Kenji", "Anne", "Yann"]
    var boat = ""
  }
  var id: String
  var note = ""
  var tags: Set<String> = ["calm", "deep", "windy"]
  var gear: [Gear: Int] = [.rod: 1, .net: 2, .boat: 3]
  var crew = Crew()
  var parts: Set<Part> = [Part(name: "bow"), Part(name: "stern")]
}

/// A transport that hands over every value as an encoder of another launch writes it: with the elements of each array in another order.
private struct ReorderingTransport: SyncTransport {
  let gated: GatedTransport
  /// The revisions whose order is another one: the even ones with 0, the odd ones with 1.
  var parity = 0
  /// What a newer app has changed in each element of `parts` after the first revision.
  var part: (@Sendable (JSONValue) -> JSONValue)?

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    var reply = try await gated.push(push, to: scope)
    reply.receipt.outcomes = reply.receipt.outcomes.map { outcome in
      if case .conflict(let records) = outcome { .conflict(records.map(reordered)) } else { outcome }
    }
    return reply
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    var page = try await gated.changes(request, in: scope)
    page.changes = page.changes.map(reordered)
    return page
  }

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }

  private func reordered(_ record: SyncRecord) -> SyncRecord {
    var record = record
    guard let value = record.value, var object = (try? JSONValue(json: value))?.objectValue else { return record }
    if let part, record.revision > 1, let parts = object["parts"]?.arrayValue { object["parts"] = .array(parts.map(part)) }
    // Of two revisions in a row one is in another order than the other.
    guard record.revision % 2 == parity else {
      record.value = JSONValue.object(object).json
      return record
    }
    for name in ["tags", "parts"] { object[name] = object[name]?.arrayValue.map { .array($0.reversed()) } }
    if let pairs = object["gear"]?.arrayValue {
      object["gear"] = .array(stride(from: pairs.count - 2, through: 0, by: -2).flatMap { pairs[$0...$0 + 1] })
    }
    if var crew = object["crew"]?.objectValue {
      crew["names"] = crew["names"]?.arrayValue.map { .array($0.reversed()) }
      object["crew"] = .object(crew)
    }
    record.value = JSONValue.object(object).json
    return record
  }
}

/// Members that nobody has touched stay untouched when an encoder writes them in another order.
@Suite struct UnorderedMemberTests {
  private typealias Device = (trips: LocalRepository<Trip>, sync: SyncEngine)
  private let server = SimulatedSyncServer()

  private func device(
    _ policy: MergePolicy<Trip>, parity: Int = 0, part: (@Sendable (JSONValue) -> JSONValue)? = nil
  ) async throws -> Device {
    let store = try await Store.open(InMemoryBackend())
    let trips = try await store.repository(RepositorySchema<Trip>("trips").synced(in: "user/1", merge: policy))
    let transport = ReorderingTransport(gated: GatedTransport(server), parity: parity, part: part)
    return (trips, try await SyncEngine(store, transport: transport, scopes: ["user/1"]))
  }

  /// A policy by its name.
  enum Policy: CaseIterable, Sendable {
    case fields, sets, remoteWins, localWins, custom

    fileprivate var policy: MergePolicy<Trip> {
      switch self {
      case .fields: .fields()
      case .sets: .fields(sets: [\.tags, \.crew.names])
      case .remoteWins: .remoteWins
      case .localWins: .localWins
      case .custom: .custom { base, local, remote in throw RepositoryError(.unsupported, "both sides have changed") }
      }
    }
  }

  @Test(arguments: Policy.allCases, [0, 1])
  func aMemberInAnotherOrderCountsAsUntouched(_ policy: Policy, parity: Int) async throws {
    let (here, there) = (try await device(policy.policy, parity: parity), try await device(policy.policy, parity: parity))
    try await here.trips.save(Trip(id: "a"))
    for sync in [here.sync, there.sync] { try await sync.exchange() }
    try await here.trips.update("a") { trip in
      trip.tags = ["calm"]
      trip.gear[.net] = 20
      trip.crew.names.insert("Aiko")
      trip.parts.remove(Part(name: "bow"))
    }
    // The custom policy throws where both sides have changed: here one saves what it has read.
    try await there.trips.update("a") { if policy != .custom { $0.note = "windy" } }
    // One takes the other's edit on top of its own, then the other way round.
    for sync in [there.sync, here.sync, there.sync, here.sync] { try await sync.exchange() }
    var expected = Trip(id: "a")
    expected.note = policy == .custom ? "" : "windy"
    expected.tags = ["calm"]
    expected.gear[.net] = 20
    expected.crew.names.insert("Aiko")
    expected.parts = [Part(name: "stern")]
    for (trips, sync) in [here, there] {
      #expect(try await trips.find(by: "a") == expected)
      #expect(try await sync.conflicts.count() == 0)
      #expect(try await sync.rejected.count() == 0)
      #expect(try await sync.pending == 0)
    }
  }

  /// An element may have a member that only a newer app knows: the type takes it for the same, and it is another one.
  @Test func aChangeThatTheTypeDoesNotKnowIsAChange() async throws {
    let colored = { @Sendable (part: JSONValue) in
      var part = part
      part["color"] = "red"
      return part
    }
    let (here, there) = (try await device(.fields()), try await device(.fields(), part: colored))
    try await here.trips.save(Trip(id: "a"))
    for sync in [here.sync, there.sync] { try await sync.exchange() }
    try await here.trips.update("a") { $0.note = "one" }
    try await here.sync.exchange()
    // Both sides have changed the parts, so that what loses is kept.
    try await there.trips.update("a") { $0.parts.insert(Part(name: "mast")) }
    try await there.sync.exchange()
    let conflict = try #require(try await there.sync.conflicts.loadAll().first)
    #expect(Array(conflict.lost.keys) == ["parts"])
  }

  @Test func savingAnEqualValueSendsNothing() async throws {
    let store = try await Store.open(InMemoryBackend())
    let trips = try await store.repository(RepositorySchema<Trip>("trips").synced(in: "user/1", merge: .fields()))
    let transport = GatedTransport(server)
    let sync = try await SyncEngine(store, transport: transport, scopes: ["user/1"])
    try await trips.save(Trip(id: "a"))
    try await sync.exchange()
    let pushes = transport.pushes
    for capacity in [1, 100, 1_000] {
      var trip = Trip(id: "a")
      trip.tags = Set(minimumCapacity: capacity)
      for tag in ["windy", "calm", "deep"] { trip.tags.insert(tag) }
      trip.gear = Dictionary(minimumCapacity: capacity)
      for (gear, count) in [(Gear.boat, 3), (.rod, 1), (.net, 2)] { trip.gear[gear] = count }
      try await trips.save(trip)
      try await sync.exchange()
    }
    #expect(transport.pushes == pushes)
  }
}
