internal import Foundation
internal import Larder
internal import LarderSync

/// A device of the simulation: a store in memory that outlives its process, and the engine over it.
final class SimulatedDevice {
  let clock: ManualClock
  let network: SimulatedNetwork
  let edits: SimulatedEdits
  let pageSize: Int
  private(set) var app: SimulatedApp
  private var backend: FaultInjectingBackend
  private var memory: InMemoryBackend
  private(set) var store: Store
  private(set) var records: any SimulatedRecords
  private(set) var engine: SyncEngine

  static let scopes = ["user/0", "team/1", "team/2"]

  init(
    clock: ManualClock, network: SimulatedNetwork, edits: SimulatedEdits, pageSize: Int, app: SimulatedApp,
    memory: InMemoryBackend = InMemoryBackend()
  ) async throws {
    (self.clock, self.network, self.edits, self.pageSize, self.app, self.memory) = (clock, network, edits, pageSize, app, memory)
    backend = FaultInjectingBackend(memory)
    (store, records, engine) = try await Self.open(backend, clock, network, pageSize, app)
  }

  private static func open(
    _ backend: FaultInjectingBackend, _ clock: ManualClock, _ network: SimulatedNetwork, _ pageSize: Int, _ app: SimulatedApp
  ) async throws -> (Store, any SimulatedRecords, SyncEngine) {
    // Nothing runs by itself: a rewrite in the background would have its commits at times that no seed gives.
    let store = try await Store.open(backend, options: StoreOptions(migration: .init(mode: .manual, backup: .declined)))
    let records = try await app.open(store, clock: clock)
    let engine = try await SyncEngine(store, transport: network, scopes: scopes, clock: clock, pageSize: pageSize)
    return (store, records, engine)
  }

  /// Lets the process die at one of its next commits, before or after it.
  func crash(atCommit call: Int, _ moment: FaultInjectingBackend.Moment) {
    backend.fail(.commit, call: call, with: RepositoryError(.outcomeUnknown, "the process dies here"), moment)
  }

  /// Starts the process again, over what it had made durable; a newer app if one is given.
  func restart(as newer: SimulatedApp? = nil) async throws {
    memory.abandon()
    backend = FaultInjectingBackend(memory)
    app = newer ?? app
    (store, records, engine) = try await Self.open(backend, clock, network, pageSize, app)
  }

  /// Returns another device whose store is a copy of this one's.
  func copy(clock: ManualClock, network: SimulatedNetwork, edits: SimulatedEdits) async throws -> SimulatedDevice {
    let memory = InMemoryBackend()
    try await store.copy(to: memory)
    return try await SimulatedDevice(clock: clock, network: network, edits: edits, pageSize: pageSize, app: app, memory: memory)
  }

  /// Returns a record as it is stored.
  func stored(_ id: String) -> StoredValue? {
    let snapshot = store.stored
    return snapshot.collection(named: "items").flatMap { snapshot.stored(RecordKey(id), in: $0) }
  }
}
