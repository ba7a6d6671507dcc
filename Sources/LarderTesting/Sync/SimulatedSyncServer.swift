internal import Foundation
internal import Larder
@_spi(Wire) public import LarderWire
internal import Synchronization

// Sync/ runs the real sync engine against a server in memory, which keeps the rules of the real server, and over a network that loses,
// repeats and delays messages.
// Invariant: equal seeds give equal runs.
// Tests call the types of Sync/.

/// Sync server in memory that keeps the rules of `larder-server`, for tests of an app's sync without a network.
///
/// A push is a compare-and-set of each record's revision. Each accepted transaction group of a push takes the next commit number of its
/// scope. The server stores the outcomes of each device's newest push, so that a repeated push gets the same outcomes.
public final class SimulatedSyncServer: Sendable {
  fileprivate struct Device: Sendable {
    /// Receipt (the outcomes) of the device's newest push.
    ///
    /// The conflicts in the receipt only name their records, and have no values.
    var last: SyncReceipt
    /// Latest time of an edit that the server has accepted from the device.
    var stamp: SyncMilliseconds = 0
  }

  fileprivate struct Scope: Sendable {
    var head = 0
    var horizon = 0
    /// Records by address, that is, collection and id.
    ///
    /// The addresses compare ids by their bytes, because Swift treats two Unicode spellings of one text as equal strings.
    var records: [RecordAddress: SyncRecord] = [:]
    var devices: [String: Device] = [:]

    /// Returns a record of the server, or one with revision 0 if the server has none.
    func record(_ collection: String, _ id: String) -> SyncRecord {
      records[RecordAddress(collection: collection, key: RecordKey(id))] ?? SyncRecord(collection: collection, id: id, revision: 0)
    }

    /// Returns the receipt of a push with the server's current records in its conflicts.
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
  /// Maximum number of value bytes in the conflicts of one answer.
  private let conflictBytes: Int

  /// Makes a server without records.
  ///
  /// - Parameter now: The clock of the server, in milliseconds since 1970: 1 January 2026 by default.
  public convenience init(now: @escaping @Sendable () -> SyncMilliseconds = { 1_767_225_600_000 }) {
    self.init(conflictBytes: 1 << 20, now: now)
  }

  init(conflictBytes: Int, now: @escaping @Sendable () -> SyncMilliseconds) { (self.conflictBytes, self.now) = (conflictBytes, now) }

  /// Number of records that were left out of conflicts, because their values exceeded the limit of an answer.
  var leftOut: Int { state.withLock { $0.leftOut } }

  /// Sets the validator of pushed records, which returns the code of a refusal, or `nil` to accept the record.
  public func refuse(_ validate: @escaping @Sendable (PushedRecord) -> String?) { state.withLock { $0.validate = validate } }

  /// Returns the records of a scope that are not deleted, sorted by collection and id.
  public func records(of scope: String) -> [SyncRecord] {
    state.withLock {
      $0.scopes[scope]?.records.values.filter { $0.value != nil }.sorted { ($0.collection, $0.id) < ($1.collection, $1.id) } ?? []
    }
  }

  /// Removes all tombstones of a scope, and raises the scope's horizon to the newest of them.
  ///
  /// A device that has not read up to the horizon must read all records of the scope again.
  ///
  /// - Returns: The number of removed tombstones.
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

  /// Copy of a server's whole state, which you can restore later.
  public struct Backup: Sendable {
    fileprivate let state: State
  }

  /// Returns a copy of the server's whole state.
  public func backup() -> Backup { state.withLock { Backup(state: $0) } }

  /// Restores a copy of the state, and begins a new history of commits, by whose identifier devices detect the restore.
  public func restore(_ backup: Backup) {
    state.withLock { state in
      // A restore replaces the data, but not the validator, which is configuration, and not `leftOut`, which is a count of the test.
      let (validate, leftOut) = (state.validate, state.leftOut)
      state = backup.state
      (state.validate, state.leftOut) = (validate, leftOut)
      state.history = UUID().uuidString
    }
  }

  /// Applies a push, and returns its answer.
  ///
  /// - Throws: `.history` if the server was restored since the device's last request, `.gap` if the push does not follow the device's
  ///   newest push.
  public func push(_ push: SyncPush, to scope: String) throws(SyncProblem) -> SyncPushReply {
    let now = now()
    let result: Result<SyncPushReply, SyncProblem> = state.withLock { state in
      if let history = push.history, history != state.history { return .failure(.history(state.history)) }
      var found = state.scopes[scope] ?? Scope()
      let device = found.devices[push.device]
      // A repeated push gets the stored receipt with its outcomes. If a repeated push were applied again, its records would already have
      // newer revisions from the first application, and the server would report conflicts.
      if let last = device?.last, push.seq <= last.seq {
        // Two copies of a store send pushes with the same number. The token distinguishes two pushes with the same number, so that only the
        // sender of the stored push gets its outcomes.
        guard push.seq == last.seq, push.token == last.token else { return .failure(.gap(last: last.seq)) }
        return .success(SyncPushReply(history: state.history, now: now, receipt: found.filled(last, bytes: conflictBytes)))
      }
      guard push.seq == (device?.last.seq ?? 0) + 1 else { return .failure(.gap(last: device?.last.seq ?? 0)) }
      var newest = device?.stamp ?? 0
      var outcomes: [SyncOutcome] = []
      for group in push.groups {
        // A group is one transaction of the device, so one refused record refuses the whole group.
        if let code = group.compactMap(state.validate).first {
          outcomes.append(.rejected(code: code, detail: ""))
          continue
        }
        let current = group.map { found.record($0.collection, $0.id) }
        // A tombstone counts as a missing record, so a push of a record that has a tombstone needs the base revision 0.
        guard zip(group, current).allSatisfy({ $0.base == ($1.value == nil ? 0 : $1.revision) }) else {
          outcomes.append(.conflict(group.map { SyncRecord(collection: $0.collection, id: $0.id, revision: 0) }))
          continue
        }
        found.head += 1
        for record in group {
          // The time of the edit is corrected by the difference between the device's clock and the server's clock. The corrected time is
          // never before the device's earlier edits, and never in the future.
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

  /// Returns a page of changes, which consists of whole commits in their order.
  ///
  /// - Throws: `.history` if the server was restored since the device's last request, `.resync` if the device has missed purged tombstones.
  public func changes(_ request: SyncChangesRequest, in scope: String) throws(SyncProblem) -> SyncChanges {
    let result: Result<SyncChanges, SyncProblem> = state.withLock { state in
      if let history = request.history, history != state.history { return .failure(.history(state.history)) }
      let found = state.scopes[scope] ?? Scope()
      // A full pass reads all records, and `from` is the horizon at its start. If the horizon has risen since the start of the pass,
      // tombstones that the pass needs may have been purged, and the pass must begin again.
      if request.since < found.horizon, request.from.map({ found.horizon > $0 }) ?? true {
        return .failure(.resync(horizon: found.horizon))
      }
      // The changed records are sorted by commit, so that the next page can begin after the last commit of this page.
      let behind = found.records.values.filter { record in
        record.revision > request.since && (request.collections.isEmpty || request.collections.contains(record.collection))
      }.sorted { $0.revision < $1.revision }
      var page = Array(behind.prefix(request.limit))
      // The page also holds the rest of its last commit, even over the limit, because a device applies a commit as a whole.
      if let last = page.last { page += behind.dropFirst(page.count).prefix { $0.revision == last.revision } }
      let more = page.count < behind.count
      // The returned `head` is never below the commit up to which the device has read, because the device's read position must not go back.
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
  /// Number of records in the conflicts of the receipt.
  fileprivate var conflictCount: Int {
    outcomes.reduce(0) { count, outcome in if case .conflict(let records) = outcome { count + records.count } else { count } }
  }
}
