internal import Foundation
internal import Larder

extension Ledger {
  /// Takes the outcomes of the push that is in flight.
  /// - Parameters:
  ///   - mayRead: Whether the scope may be read. If not, no page brings the records that a conflict leaves out.
  ///   - repeated: The records that were in conflict before in this exchange, on the same base.
  /// - Returns: The state afterwards; `nil` where the outcomes are of another push, as that of a store that was the same file.
  func settle(
    _ receipt: SyncReceipt, _ state: ScopeState, mayRead: Bool = true, repeated: Set<RecordAddress> = [], in pending: inout PendingState
  ) throws(RepositoryError) -> ScopeState? {
    guard let flight = state.flight, receipt.seq == flight.seq, receipt.token == flight.token,
      receipt.outcomes.count == flight.groups.count
    else { return nil }
    let ledger = corrected(by: state)
    for (group, outcome) in zip(flight.groups, receipt.outcomes) {
      switch outcome {
      case .accepted(let revision):
        for record in group { try accept(record, at: revision, in: &pending) }
      case .conflict(let found):
        let sent = Set(group.map(\.address))
        for record in try admitted(found, about: .records(sent), in: &pending) {
          try ledger.take(record, pass: nil, isNewHistory: false, in: &pending)
        }
        let told = Set(found.map { RecordAddress(collection: $0.collection, key: RecordKey($0.id)) })
        for record in group where !told.contains(record.address) {
          if mayRead {
            try ledger.takeHeld(record, in: &pending)
          } else {
            try park(record, Self.conflict, Self.conflictDetail, in: &pending)
          }
        }
        // As long as one of them has something new to be merged with, the whole group may still be accepted.
        var isStuck = true
        for record in group {
          let entry = try entry(SyncEntry.key(record.collection, RecordKey(record.id)), in: pending)
          let isSame = entry?.revision == record.base && entry?.edits?.isParked == false
          if !repeated.contains(record.address) || !isSame { isStuck = false }
        }
        if isStuck { for record in group { try park(record, Self.conflict, Self.repeatedDetail, in: &pending) } }
      case .rejected(let code, let detail):
        for record in group { try park(record, code, detail, in: &pending) }
      }
    }
    var state = state
    state.flight = nil
    state.seq = receipt.seq
    state.recordLimit = state.recordLimit.flatMap { $0 < Self.recordLimit / 2 ? $0 * 2 : nil }
    state.settleCut(by: flight)
    state.turn += 1
    return state
  }

  /// Begins another history of a server that may be written and not read: no revision of a record is of that.
  func begin(_ history: String, in pending: inout PendingState) throws(RepositoryError) {
    guard var state = try state(in: pending) else { return }
    var known: [(RecordKey, SyncEntry)] = []
    try pending.visit(records) { (key, stored) throws(RepositoryError) in
      let entry = try SyncEntry(stored)
      if entry.scope == scope, entry.revision > 0 { known.append((key, entry)) }
    }
    for (key, found) in known {
      var entry = found
      entry.revision = 0
      entry.edits?.base = nil
      try pending.keep(entry.stored, for: key, in: records)
    }
    (state.history, state.pass) = (history, nil)
    state.becomeNewDevice()
    state.turn += 1
    try store(state, in: &pending)
  }

  /// The code of edits that are in conflict with a record that the device may not read.
  static let conflict = "conflict"
  static let conflictDetail = "The server has another record of this id, which may not be read with this token."

  /// The words for edits that meet the same conflict again, though nothing has come that they could be merged with.
  static let repeatedDetail =
    "The server says that the record has changed, and sends nothing newer than this device has: its data may be older. Retry later."

  /// Notes that the server has a record as it was sent; edits that were made meanwhile are now based on that.
  private func accept(_ sent: PushedRecord, at revision: Int, in pending: inout PendingState) throws(RepositoryError) {
    let key = RecordKey(sent.id)
    let entryKey = SyncEntry.key(sent.collection, key)
    guard var entry = try entry(entryKey, in: pending), let collection = pending.collection(named: sent.collection) else { return }
    let value = sent.value.map { StoredValue(schemaVersion: sent.version, json: $0) }
    // A page had the same before the push came to the server, and something else since: what was sent is the newer one after all.
    if entry.edits == nil, revision > entry.revision { try put(value, for: key, in: collection, of: &pending) }
    entry.revision = value == nil ? 0 : revision
    if var edits = entry.edits {
      try release(&edits, entryKey, in: &pending)
      edits.base = value
      if let insertedAt = edits.insertedAt, insertedAt <= sent.stamp { edits.insertedAt = nil }
      entry.edits = isStored(value, key, in: collection, of: pending) ? nil : edits
    }
    let hasRecord = pending.hasRecord(key, in: collection)
    try store(entry, for: entryKey, hasRecord: hasRecord, in: &pending)
    // A record that is here again has undone the deletion on this device.
    if value != nil || hasRecord {
      try pending.delete(entryKey.text, in: deletions)
    } else {
      try noteDeletion(entryKey, at: revision, in: &pending)
    }
  }

  /// Merges what was held back for a record that a conflict has left out: pages behind the checkpoint do not bring it again.
  private func takeHeld(_ sent: PushedRecord, in pending: inout PendingState) throws(RepositoryError) {
    guard let held = try entry(SyncEntry.key(sent.collection, RecordKey(sent.id)), in: pending)?.edits?.held else { return }
    let remote = SyncRecord(
      collection: sent.collection, id: sent.id, revision: held.revision, version: held.value.schemaVersion, value: held.value.json)
    try take(remote, pass: nil, isNewHistory: false, in: &pending)
  }

  /// Returns whether a record is as it was sent, or deleted as it was sent.
  ///
  /// One that was only brought up to a newer version since is: its migration is no edit, which would win over a deletion.
  private func isStored(_ value: StoredValue?, _ key: RecordKey, in collection: Int, of pending: PendingState) -> Bool {
    let stored = pending.stored(key, in: collection)
    guard let value else { return stored == nil && !pending.hasRecord(key, in: collection) }
    guard let stored, stored.schemaVersion > value.schemaVersion, let coder = pending.tracking(of: collection)?.coder else {
      return stored == value
    }
    // Where it cannot be brought up it is sent again, which is never wrong.
    do throws(RepositoryError) { return try coder.broughtUp(value, key: key) == stored } catch { return false }
  }

  /// Sets a record aside whose edits the server refuses: they stay here, and are not sent again by themselves.
  func park(_ sent: PushedRecord, _ code: String, _ detail: String, in pending: inout PendingState) throws(RepositoryError) {
    let key = RecordKey(sent.id)
    let entryKey = SyncEntry.key(sent.collection, key)
    guard var entry = try entry(entryKey, in: pending), let collection = pending.collection(named: sent.collection) else { return }
    let value = sent.value.map { StoredValue(schemaVersion: sent.version, json: $0) }
    // An edit that was made since is another one: it may be accepted.
    guard isStored(value, key, in: collection, of: pending) || isBeyondLimits(key, in: collection, of: pending) else { return }
    entry.edits?.isParked = true
    try store(entry, for: entryKey, hasRecord: pending.hasRecord(key, in: collection), in: &pending)
    try reject(entryKey, of: key, in: sent.collection, code: code, detail: detail, in: &pending)
  }
}

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
