internal import Foundation
internal import Larder
internal import LarderSync

/// A device of the simulation: a store that outlives its process, and the engine over it.
final class SimulatedDevice {
  let clock: ManualClock
  let network: SimulatedNetwork
  let edits: SimulatedEdits
  let pageSize: Int
  private(set) var app: SimulatedApp
  private let backend: any StorageBackend
  private var faults: FaultInjectingBackend
  private(set) var store: Store
  private(set) var records: any SimulatedRecords
  private(set) var engine: SyncEngine

  static let scopes = ["user/0", "team/1", "team/2"]

  init(
    _ backend: any StorageBackend, clock: ManualClock, network: SimulatedNetwork, edits: SimulatedEdits, pageSize: Int, app: SimulatedApp
  ) async throws {
    (self.backend, self.clock, self.network, self.edits, self.pageSize, self.app) = (backend, clock, network, edits, pageSize, app)
    faults = FaultInjectingBackend(backend)
    (store, records, engine) = try await Self.open(faults, clock, network, pageSize, app)
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
    faults.fail(.commit, call: call, with: RepositoryError(.outcomeUnknown, "the process dies here"), moment)
  }

  /// Starts the process again, over what it had made durable; a newer app if one is given.
  func restart(as newer: SimulatedApp? = nil) async throws {
    backend.abandon()
    faults = FaultInjectingBackend(backend)
    app = newer ?? app
    (store, records, engine) = try await Self.open(faults, clock, network, pageSize, app)
  }

  /// Returns another device whose store is a copy of this one's.
  func copy(
    to backend: any StorageBackend, clock: ManualClock, network: SimulatedNetwork, edits: SimulatedEdits
  ) async throws -> SimulatedDevice {
    try await store.copy(to: backend)
    return try await SimulatedDevice(backend, clock: clock, network: network, edits: edits, pageSize: pageSize, app: app)
  }

  /// Returns a record as it is stored.
  func stored(_ id: String) -> StoredValue? {
    let snapshot = store.stored
    return snapshot.collection(named: "items").flatMap { snapshot.stored(RecordKey(id), in: $0) }
  }
}
