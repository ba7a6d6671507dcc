internal import Foundation
internal import Larder
internal import LarderSync

/// A record of the simulation.
struct SimulatedRecord: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var scope: String
  var name = ""
  var count = 0
  var tags: [String] = []
}

/// A device of the simulation: a store in memory that outlives its process, and the engine over it.
final class SimulatedDevice {
  let clock: ManualClock
  let network: SimulatedNetwork
  let pageSize: Int
  /// The edits that are made while the engine waits.
  var edits: SimulatedEdits?
  private(set) var backend: FaultInjectingBackend
  private var memory: InMemoryBackend
  private(set) var store: Store
  private(set) var records: LocalRepository<SimulatedRecord>
  private(set) var engine: SyncEngine

  static let scopes = ["user/0", "team/1", "team/2"]

  init(clock: ManualClock, network: SimulatedNetwork, pageSize: Int, memory: InMemoryBackend = InMemoryBackend()) async throws {
    (self.clock, self.network, self.pageSize, self.memory) = (clock, network, pageSize, memory)
    backend = FaultInjectingBackend(memory)
    (store, records, engine) = try await Self.open(backend, clock, network, pageSize)
  }

  private static func open(
    _ backend: FaultInjectingBackend, _ clock: ManualClock, _ network: SimulatedNetwork, _ pageSize: Int
  ) async throws -> (Store, LocalRepository<SimulatedRecord>, SyncEngine) {
    let store = try await Store.open(backend)
    let schema = RepositorySchema<SimulatedRecord>("items").synced(
      in: { $0.scope }, merge: .fields(counters: [\.count], sets: [\.tags]), clock: clock)
    let records = try await store.repository(schema)
    let engine = try await SyncEngine(store, transport: network, scopes: scopes, clock: clock, pageSize: pageSize)
    return (store, records, engine)
  }

  /// Lets the process die at one of its next commits, before or after it.
  func crash(atCommit call: Int, _ moment: FaultInjectingBackend.Moment) {
    backend.fail(.commit, call: call, with: RepositoryError(.outcomeUnknown, "the process dies here"), moment)
  }

  /// Starts the process again, over what it had made durable.
  func restart() async throws {
    memory.abandon()
    backend = FaultInjectingBackend(memory)
    (store, records, engine) = try await Self.open(backend, clock, network, pageSize)
  }

  /// Returns another device whose store is a copy of this one's.
  func copy(clock: ManualClock, network: SimulatedNetwork) async throws -> SimulatedDevice {
    let memory = InMemoryBackend()
    try await store.copy(to: memory)
    return try await SimulatedDevice(clock: clock, network: network, pageSize: pageSize, memory: memory)
  }

  /// Returns the records of a scope, in the order of their ids.
  func contents(of scope: String) -> [SimulatedRecord] { records.snapshot.loadAll().filter { $0.scope == scope }.sorted { $0.id < $1.id } }
}
