internal import Foundation
internal import Larder
@_spi(Wire) public import LarderSync
internal import Synchronization

// Sync/ runs the real engine against a server in memory that keeps the rules of the real one, on a network that loses, repeats and delays.
// Invariant: equal seeds give equal runs. Called by tests.

/// A server in memory that keeps the rules of `larder-server`: for tests of an app's sync without a network.
///
/// Push is compare-and-set by record on the revision; each accepted group takes the next commit number of its scope; the newest push of a
/// device is remembered with its outcomes.
public final class SimulatedSyncServer: Sendable {
  fileprivate struct Device: Sendable {
    /// The newest receipt, whose conflicts only name their records.
    var last: SyncReceipt
    var stamp: SyncMilliseconds = 0
  }

  fileprivate struct Scope: Sendable {
    var head = 0
    var horizon = 0
    /// By address, since ids are bytes: two that Swift takes for equal strings are two records.
    var records: [RecordAddress: SyncRecord] = [:]
    var devices: [String: Device] = [:]

    /// The record as the server has it; one that was never there has revision 0.
    func record(_ collection: String, _ id: String) -> SyncRecord {
      records[RecordAddress(collection: collection, key: RecordKey(id))] ?? SyncRecord(collection: collection, id: id, revision: 0)
    }

    /// Returns a receipt with the records of its conflicts as they are now.
    func filled(_ receipt: SyncReceipt, bytes: Int) -> SyncReceipt {
      receipt.filled(bytes: bytes) { record($0.collection, $0.id) }
    }
  }

  fileprivate struct State: Sendable {
    var history = UUID().uuidString
    var scopes: [String: Scope] = [:]
    var validate: @Sendable (PushedRecord) -> String? = { _ in nil }
    var leftOut = 0
  }

  private let state = Mutex(State())
  private let now: @Sendable () -> SyncMilliseconds
  /// The bytes of the values that the conflicts of one push tell.
  private let conflictBytes: Int

  /// Makes a server without records.
  ///
  /// - Parameter now: Its clock, in milliseconds since 1970.
  public convenience init(now: @escaping @Sendable () -> SyncMilliseconds = { 1_767_225_600_000 }) {
    self.init(conflictBytes: 1 << 20, now: now)
  }

  init(conflictBytes: Int, now: @escaping @Sendable () -> SyncMilliseconds) { (self.conflictBytes, self.now) = (conflictBytes, now) }

  /// The number of records that conflicts have left out.
  var leftOut: Int { state.withLock { $0.leftOut } }

  /// Sets which records are refused from now on: those for which the closure returns a code.
  public func refuse(_ validate: @escaping @Sendable (PushedRecord) -> String?) { state.withLock { $0.validate = validate } }

  /// Returns the records of a scope that are not deleted, in the order of their ids.
  public func records(of scope: String) -> [SyncRecord] {
    state.withLock {
      $0.scopes[scope]?.records.values.filter { $0.value != nil }.sorted { ($0.collection, $0.id) < ($1.collection, $1.id) } ?? []
    }
  }

  /// Forgets all tombstones of a scope, and remembers that it has.
  ///
  /// - Returns: How many there were.
  @discardableResult public func purge(_ scope: String) -> Int {
    state.withLock { state in
      guard var found = state.scopes[scope] else { return 0 }
      let tombstones = found.records.filter { $0.value.value == nil }
      for (key, record) in tombstones {
        found.records[key] = nil
        found.horizon = max(found.horizon, record.revision)
      }
      state.scopes[scope] = found
      return tombstones.count
    }
  }

  /// Everything that a server has, to be restored later.
  public struct Backup: Sendable {
    fileprivate let state: State
  }

  /// Returns a copy of everything.
  public func backup() -> Backup { state.withLock { Backup(state: $0) } }

  /// Goes back to a copy; the history is another one from now on.
  public func restore(_ backup: Backup) {
    state.withLock { state in
      let (validate, leftOut) = (state.validate, state.leftOut)
      state = backup.state
      (state.validate, state.leftOut) = (validate, leftOut)
      state.history = UUID().uuidString
    }
  }

  /// Takes a push, and returns its answer.
  ///
  /// - Throws: `.history`, `.gap`.
  public func push(_ push: SyncPush, to scope: String) throws(SyncProblem) -> SyncPushReply {
    let now = now()
    let result: Result<SyncPushReply, SyncProblem> = state.withLock { state in
      if let history = push.history, history != state.history { return .failure(.history(state.history)) }
      var found = state.scopes[scope] ?? Scope()
      let device = found.devices[push.device]
      if let last = device?.last, push.seq <= last.seq {
        guard push.seq == last.seq, push.token == last.token else { return .failure(.gap(last: last.seq)) }
        return .success(SyncPushReply(history: state.history, now: now, receipt: found.filled(last, bytes: conflictBytes)))
      }
      guard push.seq == (device?.last.seq ?? 0) + 1 else { return .failure(.gap(last: device?.last.seq ?? 0)) }
      var newest = device?.stamp ?? 0
      var outcomes: [SyncOutcome] = []
      for group in push.groups {
        if let code = group.compactMap(state.validate).first {
          outcomes.append(.rejected(code: code, detail: ""))
          continue
        }
        let current = group.map { found.record($0.collection, $0.id) }
        guard zip(group, current).allSatisfy({ $0.base == ($1.value == nil ? 0 : $1.revision) }) else {
          outcomes.append(.conflict(group.map { SyncRecord(collection: $0.collection, id: $0.id, revision: 0) }))
          continue
        }
        found.head += 1
        for record in group {
          let stamp = min(max(record.stamp + now - push.clock, device?.stamp ?? 0), now)
          newest = max(newest, stamp)
          found.records[RecordAddress(collection: record.collection, key: RecordKey(record.id))] = SyncRecord(
            collection: record.collection, id: record.id, revision: found.head, version: record.version, stamp: stamp, writer: push.device,
            value: record.value)
        }
        outcomes.append(.accepted(found.head))
      }
      let receipt = SyncReceipt(seq: push.seq, token: push.token, outcomes: outcomes)
      found.devices[push.device] = Device(last: receipt, stamp: newest)
      state.scopes[scope] = found
      let filled = found.filled(receipt, bytes: conflictBytes)
      state.leftOut += receipt.conflictCount - filled.conflictCount
      return .success(SyncPushReply(history: state.history, now: now, receipt: filled))
    }
    return try result.get()
  }

  /// Returns a page of changes: whole commits, in their order.
  ///
  /// - Throws: `.history`, `.resync`.
  public func changes(_ request: SyncChangesRequest, in scope: String) throws(SyncProblem) -> SyncChanges {
    let result: Result<SyncChanges, SyncProblem> = state.withLock { state in
      if let history = request.history, history != state.history { return .failure(.history(state.history)) }
      let found = state.scopes[scope] ?? Scope()
      if request.since < found.horizon, request.from.map({ found.horizon > $0 }) ?? true {
        return .failure(.resync(horizon: found.horizon))
      }
      let behind = found.records.values.filter { record in
        record.revision > request.since && (request.collections.isEmpty || request.collections.contains(record.collection))
      }.sorted { $0.revision < $1.revision }
      var page = Array(behind.prefix(request.limit))
      if let last = page.last { page += behind.dropFirst(page.count).prefix { $0.revision == last.revision } }
      let more = page.count < behind.count
      let head = max(found.head, request.since)
      return .success(
        SyncChanges(
          history: state.history, since: request.since, until: more ? page.last?.revision ?? head : head, head: head, more: more,
          horizon: found.horizon, last: found.devices[request.device].map { found.filled($0.last, bytes: conflictBytes) }, changes: page))
    }
    return try result.get()
  }
}

extension SyncReceipt {
  /// The number of records in its conflicts.
  fileprivate var conflictCount: Int {
    outcomes.reduce(0) { count, outcome in if case .conflict(let records) = outcome { count + records.count } else { count } }
  }
}
