internal import Larder

extension Ledger {
  /// Returns the number of records of the scope with edits that the server has not taken, those that it has refused included.
  func unsentCount(in pending: PendingState) throws(RepositoryError) -> Int {
    var count = 0
    try pending.visit(records) { (_, stored) throws(RepositoryError) in
      let entry = try SyncEntry(stored)
      if entry.scope == scope, entry.isDirty { count += 1 }
    }
    return count
  }

  /// Removes the records of the scope, and everything that sync knows of them.
  func forget(in pending: inout PendingState) throws(RepositoryError) {
    var keys: [RecordKey] = []
    try pending.visit(records) { (key, stored) throws(RepositoryError) in
      if try SyncEntry(stored).scope == scope { keys.append(key) }
    }
    for key in keys {
      pending.erase(key, in: records)
      try pending.delete(key.text, in: rejected)
      guard let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection) else { continue }
      pending.erase(address.key, in: collection)
    }
    try forgetConflicts(in: &pending)
    // A record that was never stored has a rejection and no entry.
    for rejection in rejected.snapshot.loadAll() where rejection.scope == scope { try pending.delete(rejection.id, in: rejected) }
    for deletion in deletions.snapshot.loadAll() where deletion.scope == scope { try pending.delete(deletion.id, in: deletions) }
    pending.erase(key, in: scopes)
  }

  /// Removes the values that have lost: they are of the records.
  private func forgetConflicts(in pending: inout PendingState) throws(RepositoryError) {
    for conflict in conflicts.snapshot.loadAll() where conflict.scope == scope { try pending.delete(conflict.id, in: conflicts) }
  }

  /// Takes back a push that the server has refused, unless it was settled meanwhile.
  func takeBack(_ push: SyncPush, in pending: inout PendingState) throws(RepositoryError) {
    guard var state = try state(in: pending), state.flight?.token == push.token else { return }
    state.flight = nil
    state.turn += 1
    try store(state, in: &pending)
  }

  /// The code of edits in a scope that may be read and not written.
  static let forbidden = "forbidden"
  /// The words with that code, by which a refusal of this device differs from one of a server's own rule.
  static let forbiddenDetail = SyncProblem.forbidden.description
  /// The code of edits that wait for a newer app, because the scope takes no records of their version.
  static let upgradeRequired = "upgradeRequired"

  /// Takes back a push of which the server refuses every record below a schema version, and sets those aside.
  /// - Returns: Whether there were any.
  func parkOutdated(
    _ push: SyncPush, below minimum: Int, _ detail: String, in pending: inout PendingState
  ) throws(RepositoryError) -> Bool {
    guard let state = try state(in: pending), state.flight?.token == push.token else { return true }
    let outdated = push.groups.joined().filter { $0.version < minimum }
    // Servers of this version accept deletions of any version. Earlier servers compare the version of deletions, too.
    let edits = outdated.filter { $0.value != nil }
    let refused = edits.isEmpty ? outdated : edits
    for record in refused {
      try park(record, Self.upgradeRequired, "\(detail) Expected schema version \(minimum), found \(record.version).", in: &pending)
    }
    if !refused.isEmpty { try takeBack(push, in: &pending) }
    return !refused.isEmpty
  }

  /// Takes back a push that the server does not take as a whole, unless it was settled meanwhile: the next one has half of its records; a
  /// record that is alone is set aside, and so are all where the server takes nothing of the scope.
  func divide(_ push: SyncPush, _ code: String, _ detail: String, in pending: inout PendingState) throws(RepositoryError) {
    guard var state = try state(in: pending), state.flight?.token == push.token else { return }
    let count = push.groups.joined().count
    if code == Self.forbidden || count == 1 {
      for record in push.groups.joined() { try park(record, code, detail, in: &pending) }
      state.settleCut(by: push)
    } else if push.groups.count > 1 {
      state.recordLimit = max(1, count / 2)
    } else {
      state.cut(push.groups[0])
    }
    state.flight = nil
    state.turn += 1
    try store(state, in: &pending)
  }
}
