internal import Foundation
internal import Larder

extension Ledger {
  /// Takes the outcomes of the push that is in flight.
  /// - Returns: The state afterwards; `nil` where the outcomes are of another push, as that of a store that was the same file.
  func settle(
    _ receipt: SyncReceipt, _ state: ScopeState, in pending: inout PendingState
  ) throws(RepositoryError) -> ScopeState? {
    guard let flight = state.flight, receipt.seq == flight.seq, receipt.token == flight.token,
      receipt.outcomes.count == flight.groups.count
    else { return nil }
    for (group, outcome) in zip(flight.groups, receipt.outcomes) {
      switch outcome {
      case .accepted(let revision):
        for record in group { try accept(record, at: revision, in: &pending) }
      case .conflict(let found):
        for record in found { try take(record, pass: nil, isNewHistory: false, in: &pending) }
      case .rejected(let code, let detail):
        for record in group { try park(record, code, detail, in: &pending) }
      }
    }
    var state = state
    state.flight = nil
    state.seq = receipt.seq
    state.recordLimit = state.recordLimit.flatMap { $0 < Self.recordLimit / 2 ? $0 * 2 : nil }
    state.turn += 1
    return state
  }

  /// Notes that the server has a record as it was sent; edits that were made meanwhile are now based on that.
  private func accept(_ sent: PushedRecord, at revision: Int, in pending: inout PendingState) throws(RepositoryError) {
    let key = RecordKey(sent.id)
    let entryKey = SyncEntry.key(sent.collection, key)
    guard var entry = try entry(entryKey, in: pending), let collection = pending.collection(named: sent.collection) else { return }
    let value = sent.value.map { StoredValue(schemaVersion: sent.version, json: $0) }
    let local = try self.value(of: key, in: collection, of: pending)
    entry.revision = value == nil ? 0 : revision
    if var edits = entry.edits {
      try release(&edits, entryKey, in: &pending)
      edits.base = value
      entry.edits = local == value ? nil : edits
    }
    store(entry, for: entryKey, value: local, in: &pending)
  }

  /// Sets a record aside whose edits the server refuses: they stay here, and are not sent again by themselves.
  func park(_ sent: PushedRecord, _ code: String, _ detail: String, in pending: inout PendingState) throws(RepositoryError) {
    let key = RecordKey(sent.id)
    let entryKey = SyncEntry.key(sent.collection, key)
    guard var entry = try entry(entryKey, in: pending), let collection = pending.collection(named: sent.collection) else { return }
    let local = try self.value(of: key, in: collection, of: pending)
    // An edit that was made since is another one: it may be accepted.
    guard local == sent.value.map({ StoredValue(schemaVersion: sent.version, json: $0) }) else { return }
    entry.edits?.isParked = true
    store(entry, for: entryKey, value: local, in: &pending)
    try reject(entryKey, of: key, in: sent.collection, code: code, detail: detail, in: &pending)
  }
}
