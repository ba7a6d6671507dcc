internal import Foundation
internal import Larder
internal import LarderSync
internal import Synchronization

/// Device of a sync simulation: a backend that outlives the simulated process, and the store, records and engine of the running process.
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
    (store, records, engine) = try await Self.open(faults, clock: clock, network: network, pageSize: pageSize, app: app)
  }

  private static func open(
    _ backend: FaultInjectingBackend, clock: ManualClock, network: SimulatedNetwork, pageSize: Int, app: SimulatedApp
  ) async throws -> (Store, any SimulatedRecords, SyncEngine) {
    // The store runs no migration in the background, because its commits would come at times that the seed does not decide.
    let store = try await Store.open(backend, options: StoreOptions(migration: .init(mode: .manual, backup: .declined)))
    let records = try await app.open(store, clock: clock)
    let engine = try await SyncEngine(store, transport: network, scopes: scopes, clock: clock, pageSize: pageSize)
    return (store, records, engine)
  }

  /// Plans the death of the simulated process before or after one of its next commits.
  func crash(atCommit call: Int, _ moment: FaultInjectingBackend.Moment) {
    faults.fail(.commit, call: call, with: RepositoryError(.outcomeUnknown, "the process dies here"), moment)
  }

  /// Restarts the simulated process over its durable data, with a newer app if one is given.
  func restart(as newer: SimulatedApp? = nil) async throws {
    // The backend is abandoned, because `close()` could still write, and a process that has died writes nothing.
    backend.abandon()
    faults = FaultInjectingBackend(backend)
    app = newer ?? app
    (store, records, engine) = try await Self.open(faults, clock: clock, network: network, pageSize: pageSize, app: app)
  }

  /// Returns another device with a copy of this device's store, as after a restore from a backup of the device.
  func copy(
    to backend: any StorageBackend, clock: ManualClock, network: SimulatedNetwork, edits: SimulatedEdits
  ) async throws -> SimulatedDevice {
    try await store.copy(to: backend)
    return try await SimulatedDevice(backend, clock: clock, network: network, edits: edits, pageSize: pageSize, app: app)
  }

  /// Returns the stored bytes of a record, or `nil` if there is none.
  func stored(_ id: String) throws(RepositoryError) -> StoredValue? {
    let snapshot = store.stored
    guard let items = snapshot.collection(named: "items") else { return nil }
    return try snapshot.stored(RecordKey(id), in: items)
  }
}

/// Number of committed increments of each counter of a history, to compare with the server's counters at the end.
final class SimulatedCounts: Sendable {
  private let counts = Mutex<[String: Int]>([:])
  var all: [String: Int] { counts.withLock { $0 } }
  func add(_ id: String) { counts.withLock { $0[id, default: 0] += 1 } }
}

/// Increments of shared counters by one device, some of them while its engine waits for the network.
final class SimulatedEdits {
  private let counted: SimulatedCounts
  private var number = 0
  /// First increment whose result is unknown, because the process died in its commit.
  private var unknown: (id: String, before: Int)?

  init(_ counted: SimulatedCounts) { self.counted = counted }

  /// Adds one to a counter that all devices share, and creates the counter if it is missing.
  func increment(_ records: any SimulatedRecords) async {
    number += 1
    let id = "c\(number % 3)"
    let before = records.fields(of: id)?.count ?? 0
    do {
      try await records.increment(id, in: SimulatedDevice.scopes[0])
      counted.add(id)
    } catch {
      // If a newer app has written the counter, this older app may not change it, and the increment was not stored.
      if (error as? RepositoryError)?.code == .newerSchema { return }
      // The process died before the commit of the increment or after it, and `resolve` reads the counter after the restart. After the
      // failed commit, the store refuses all writes until the restart, so only the increment in whose commit the process died can be in the
      // store.
      unknown = unknown ?? (id, before)
    }
  }

  /// Counts the increment in whose commit the process died, if its commit is durable.
  func resolve(_ records: any SimulatedRecords) {
    guard let (id, before) = unknown else { return }
    unknown = nil
    if records.fields(of: id)?.count == before + 1 { counted.add(id) }
  }
}
