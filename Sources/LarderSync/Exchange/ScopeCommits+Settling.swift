internal import Foundation
internal import Larder
internal import LarderWire

extension ScopeCommits {
  /// Applies the outcomes of the push in flight.
  ///
  /// - Parameters:
  ///   - mayRead: Whether the scope may be read. If not, no page brings the records that a conflict leaves out.
  ///   - repeated: The records that were in conflict on the same base earlier in this exchange.
  /// - Returns: The new state, or `nil` if the outcomes are of another push, such as that of a copy of the store.
  func settlePush(
    _ receipt: SyncReceipt, _ state: ScopeState, mayRead: Bool = true, repeated: Set<RecordAddress> = [], in pending: inout PendingState
  ) throws(RepositoryError) -> ScopeState? {
    // The number alone is not enough: two copies of a store send the same numbers with different tokens.
    guard let flight = state.flight, receipt.seq == flight.seq, receipt.token == flight.token,
      receipt.outcomes.count == flight.groups.count
    else { return nil }
    let scopeCommits = corrected(by: state)
    for (group, outcome) in zip(flight.groups, receipt.outcomes) {
      switch outcome {
      case .accepted(let revision):
        for record in group { try accept(record, at: revision, in: &pending) }
      case .conflict(let found):
        let sent = Set(group.map(\.address))
        for record in try admitted(found, about: .records(sent), in: &pending) {
          // `pass: nil`, since the record is as of the push and may have been deleted since. Counting it as found by a full pass makes a
          // livelock in the Promela model.
          try scopeCommits.storeRemote(record, pass: nil, isNewHistory: false, in: &pending)
        }
        let told = Set(found.map { RecordAddress(collection: $0.collection, key: RecordKey($0.id)) })
        for record in group where !told.contains(record.address) {
          if mayRead {
            try scopeCommits.takeHeld(record, in: &pending)
          } else {
            try park(record, code: Self.conflict, detail: Self.conflictDetail, in: &pending)
          }
        }
        // While one record of the group has received something new to merge, the whole group may still be accepted.
        var isStuck = true
        for record in group {
          let entry = try entry(SyncEntry.key(record.collection, RecordKey(record.id)), in: pending)
          let isSame = entry?.revision == record.base && entry?.edits?.isParked == false
          if !repeated.contains(record.address) || !isSame { isStuck = false }
        }
        if isStuck { for record in group { try park(record, code: Self.conflict, detail: Self.repeatedDetail, in: &pending) } }
      case .rejected(let code, let detail):
        for record in group { try park(record, code: code, detail: detail, in: &pending) }
      }
    }
    var state = state
    state.flight = nil
    // Only an outcome frees the number. After a lost answer, the same push is sent again.
    state.seq = receipt.seq
    // The limit doubles with each settled push, so that one refusal does not make all later pushes small.
    state.recordLimit = state.recordLimit.flatMap { $0 < Self.recordLimit / 2 ? $0 * 2 : nil }
    state.settleCut(by: flight)
    state.turn += 1
    return state
  }

  /// Adopts another history of the server, for a scope that may be written and not read.
  ///
  /// A server that was restored from a backup has a new history. The revisions of this device do not belong to it.
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
      // The server that came back may not have the base.
      entry.edits?.base = nil
      try pending.storeUnread(entry.stored, for: key, in: records)
    }
    (state.history, state.pass) = (history, nil)
    state.becomeNewDevice()
    state.turn += 1
    try store(state, in: &pending)
  }

  /// Code of edits in conflict with a record that the device may not read, or in a conflict that repeats.
  static let conflict = "conflict"
  static let conflictDetail = "The server has another record of this id, which may not be read with this token."

  /// Message for edits in a repeated conflict, although nothing new has come to merge them with.
  static let repeatedDetail =
    "The server says that the record has changed, and sends nothing newer than this device has: its data may be older. Retry later."

  /// Records that the server has accepted a record as it was sent.
  ///
  /// Later edits are now based on that value.
  private func accept(_ sent: PushedRecord, at revision: Int, in pending: inout PendingState) throws(RepositoryError) {
    let key = RecordKey(sent.id)
    let entryKey = SyncEntry.key(sent.collection, key)
    guard var entry = try entry(entryKey, in: pending), let collection = pending.collection(named: sent.collection) else { return }
    let value = sent.value.map { StoredValue(schemaVersion: sent.version, json: $0) }
    // A page has brought an equal record before the push arrived, and a newer one since. The accepted push is the newest of the three.
    if entry.edits == nil, revision > entry.revision { try put(value, for: key, in: collection, of: &pending) }
    entry.revision = value == nil ? 0 : revision
    if var edits = entry.edits {
      try release(&edits, entryKey, in: &pending)
      edits.base = value
      // The push contained the insertion, so the new base is the inserted record.
      if let insertedAt = edits.insertedAt, insertedAt <= sent.stamp { edits.insertedAt = nil }
      entry.edits = isStored(value, key, in: collection, of: pending) ? nil : edits
    }
    let hasRecord = pending.hasRecord(key, in: collection)
    try store(entry, for: entryKey, hasRecord: hasRecord, in: &pending)
    // A record that exists again on this device has undone the deletion here, which is then no news to the user.
    if value != nil || hasRecord {
      try pending.delete(entryKey.text, in: deletions)
    } else {
      try noteDeletion(entryKey, at: revision, in: &pending)
    }
  }

  /// Merges the held value of a record that a conflict has left out, since later pages do not bring it again.
  private func takeHeld(_ sent: PushedRecord, in pending: inout PendingState) throws(RepositoryError) {
    guard let held = try entry(SyncEntry.key(sent.collection, RecordKey(sent.id)), in: pending)?.edits?.held else { return }
    let remote = SyncRecord(
      collection: sent.collection, id: sent.id, revision: held.revision, version: held.value.schemaVersion, value: held.value.json)
    try storeRemote(remote, pass: nil, isNewHistory: false, in: &pending)
  }

  /// Returns true if a record, or its deletion, is unchanged since it was sent.
  ///
  /// A record that was only migrated since then counts as unchanged. As an edit, it would win over a deletion elsewhere.
  private func isStored(_ value: StoredValue?, _ key: RecordKey, in collection: Int, of pending: PendingState) -> Bool {
    let stored = pending.stored(key, in: collection)
    guard let value else { return stored == nil && !pending.hasRecord(key, in: collection) }
    guard let stored, stored.schemaVersion > value.schemaVersion, let coder = pending.tracking(of: collection)?.coder else {
      return stored == value
    }
    // A value that cannot be migrated is sent again, which is always safe.
    do throws(RepositoryError) { return try coder.broughtUp(value, key: key) == stored } catch { return false }
  }

  /// Parks the edits that the server refuses: they stay on the device and are not sent again by themselves.
  func park(_ sent: PushedRecord, code: String, detail: String, in pending: inout PendingState) throws(RepositoryError) {
    let key = RecordKey(sent.id)
    let entryKey = SyncEntry.key(sent.collection, key)
    guard var entry = try entry(entryKey, in: pending), let collection = pending.collection(named: sent.collection) else { return }
    let value = sent.value.map { StoredValue(schemaVersion: sent.version, json: $0) }
    // A record edited since then is not parked: the server may accept the new edit.
    guard isStored(value, key, in: collection, of: pending) || isBeyondLimits(key, in: collection, of: pending) else { return }
    entry.edits?.isParked = true
    try store(entry, for: entryKey, hasRecord: pending.hasRecord(key, in: collection), in: &pending)
    try reject(entryKey, of: key, in: sent.collection, code: code, detail: detail, in: &pending)
  }
}

extension ScopeCommits {
  /// Withdraws a push that the server has refused, unless it was settled meanwhile.
  func takeBack(_ push: SyncPush, in pending: inout PendingState) throws(RepositoryError) {
    guard var state = try state(in: pending), state.flight?.token == push.token else { return }
    state.flight = nil
    state.turn += 1
    try store(state, in: &pending)
  }

  /// Code of edits in a scope that may be read and not written.
  static let forbidden = "forbidden"
  /// Message with that code, which distinguishes a missing right from a server's own rule with the same code.
  static let forbiddenDetail = SyncProblem.forbidden.description
  /// Code of edits that wait for a newer app, because the scope accepts no records of their version.
  static let upgradeRequired = "upgradeRequired"

  /// Withdraws a push, and sets its records below a required schema version aside.
  ///
  /// - Returns: Whether there were any, or the push was settled meanwhile.
  func parkOutdated(
    _ push: SyncPush, below minimum: Int, _ detail: String, in pending: inout PendingState
  ) throws(RepositoryError) -> Bool {
    guard let state = try state(in: pending), state.flight?.token == push.token else { return true }
    let outdated = push.groups.joined().filter { $0.version < minimum }
    // Current servers accept deletions of any version. Earlier ones compare the version of deletions, too.
    let edits = outdated.filter { $0.value != nil }
    let refused = edits.isEmpty ? outdated : edits
    for record in refused {
      try park(
        record, code: Self.upgradeRequired, detail: "\(detail) Expected schema version \(minimum), found \(record.version).", in: &pending)
    }
    if !refused.isEmpty { try takeBack(push, in: &pending) }
    return !refused.isEmpty
  }

  /// Withdraws a push that the server refuses as a whole, so that the next one has half of its records.
  ///
  /// A single record is parked. So are all records if the scope may not be written. Does nothing if the push was settled meanwhile.
  func divide(_ push: SyncPush, _ code: String, _ detail: String, in pending: inout PendingState) throws(RepositoryError) {
    guard var state = try state(in: pending), state.flight?.token == push.token else { return }
    let count = push.groups.joined().count
    if code == Self.forbidden || count == 1 {
      for record in push.groups.joined() { try park(record, code: code, detail: detail, in: &pending) }
      state.settleCut(by: push)
    } else if push.groups.count > 1 {
      // With several groups, the next push has fewer groups. No transaction is cut before it was refused alone.
      state.recordLimit = max(1, count / 2)
    } else {
      state.cut(push.groups[0])
    }
    state.flight = nil
    state.turn += 1
    try store(state, in: &pending)
  }
}
