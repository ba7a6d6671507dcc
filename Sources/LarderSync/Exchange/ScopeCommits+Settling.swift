internal import Foundation
internal import Larder
internal import LarderWire

extension ScopeCommits {
  /// Applies the server's outcomes of the push in flight to the pushed records.
  ///
  /// - Parameters:
  ///   - mayRead: Whether the token may read the scope. If the token may not read the scope, no later page brings a record that a conflict
  ///     outcome has left out.
  ///   - repeated: The records that were in conflict on the same base revision earlier in this exchange.
  /// - Returns: The new state, or `nil` if the outcomes belong to another push, such as a push of a copy of the store.
  func settlePush(
    _ receipt: SyncReceipt, _ state: ScopeState, mayRead: Bool = true, repeated: Set<RecordAddress> = [], in pending: inout PendingState
  ) throws(RepositoryError) -> ScopeState? {
    // The push number alone does not identify a push: two copies of a store send the same numbers with different tokens.
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
          // The record does not count as found by a full pass (`pass: nil`), since another device may have deleted it after the push.
          // Counting the record as found by the full pass under way causes a livelock in the Promela model of the protocol.
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
        // A group is stuck if each of its records repeats a conflict on an unchanged base. If one record of a group was merged with a newer
        // server value, the server may accept the group in the next push.
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
    // Only an outcome advances the push number, so that after a lost answer the same push is sent again under the same number.
    state.seq = receipt.seq
    // The record limit doubles with each settled push, so that one refusal does not make all later pushes small.
    state.recordLimit = state.recordLimit.flatMap { $0 < Self.recordLimit / 2 ? $0 * 2 : nil }
    state.settleCut(by: flight)
    state.turn += 1
    return state
  }

  /// Adopts another history of the server, for a scope that the token may write and not read.
  ///
  /// A server that was restored from a backup has a new history. The revisions that this device has stored belong to the old history, so
  /// they are reset to 0.
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
      // The restored server may lack the base value, so the edits are sent as insertions.
      entry.edits?.base = nil
      try pending.storeUnread(entry.stored, for: key, in: records)
    }
    (state.history, state.pass) = (history, nil)
    state.becomeNewDevice()
    state.turn += 1
    try store(state, in: &pending)
  }

  /// Rejection code of edits in conflict with a record that the device may not read, or in a conflict that repeats.
  static let conflict = "conflict"
  static let conflictDetail = "The server has another record of this id, which may not be read with this token."

  /// Rejection message for edits in a repeated conflict, for which the server has sent no newer record to merge.
  static let repeatedDetail =
    "The server says that the record has changed, and sends nothing newer than this device has: its data may be older. Retry later."

  /// Updates the outbox entry of a pushed record that the server has accepted.
  ///
  /// The pushed value becomes the base of edits that were made after the push was built.
  private func accept(_ sent: PushedRecord, at revision: Int, in pending: inout PendingState) throws(RepositoryError) {
    let key = RecordKey(sent.id)
    let entryKey = SyncEntry.key(sent.collection, key)
    guard var entry = try entry(entryKey, in: pending), let collection = pending.collection(named: sent.collection) else { return }
    let value = sent.value.map { StoredValue(schemaVersion: sent.version, json: $0) }
    // If the entry has no edits, a page has brought an equal record before the push reached the server, and a later page may have changed
    // the record. If the revision of the push is above the entry's revision, the push is newer than every value of the record that a page
    // has brought, so the pushed value is stored.
    if entry.edits == nil, revision > entry.revision { try put(value, for: key, in: collection, of: &pending) }
    entry.revision = value == nil ? 0 : revision
    if var edits = entry.edits {
      try release(&edits, entryKey, in: &pending)
      edits.base = value
      // If the push contained the insertion that followed a deletion, the new base already is the inserted record.
      if let insertedAt = edits.insertedAt, insertedAt <= sent.stamp { edits.insertedAt = nil }
      entry.edits = try isStored(value, key, in: collection, of: pending) ? nil : edits
    }
    let hasRecord = try pending.hasRecord(key, in: collection)
    try store(entry, for: entryKey, hasRecord: hasRecord, in: &pending)
    // If the record exists on this device although the push has deleted it, this device has inserted the record again. No deletion is
    // stored for such a record, since a stored deletion would later report the record's return to the user.
    if value != nil || hasRecord {
      try pending.delete(entryKey.text, in: deletions)
    } else {
      try noteDeletion(entryKey, at: revision, in: &pending)
    }
  }

  /// Merges the server value that an entry holds if a conflict outcome left the record out, since no later page brings that value.
  private func takeHeld(_ sent: PushedRecord, in pending: inout PendingState) throws(RepositoryError) {
    guard let held = try entry(SyncEntry.key(sent.collection, RecordKey(sent.id)), in: pending)?.edits?.held else { return }
    let remote = SyncRecord(
      collection: sent.collection, id: sent.id, revision: held.revision, version: held.value.schemaVersion, value: held.value.json)
    try storeRemote(remote, pass: nil, isNewHistory: false, in: &pending)
  }

  /// Returns true if a record, or its deletion, is unchanged since the push that contained it was built.
  ///
  /// A record that was only migrated since the push counts as unchanged. If the migration counted as an edit, it would win over another
  /// device's deletion.
  private func isStored(
    _ value: StoredValue?, _ key: RecordKey, in collection: Int, of pending: PendingState
  ) throws(RepositoryError) -> Bool {
    let stored = try pending.stored(key, in: collection)
    guard let value else { return stored == nil ? try !pending.hasRecord(key, in: collection) : false }
    guard let stored, stored.schemaVersion > value.schemaVersion, let coder = pending.tracking(of: collection)?.coder else {
      return stored == value
    }
    // If the sent value cannot be migrated, the record counts as edited. A record that counts as edited is sent again, which is always
    // safe.
    do throws(RepositoryError) { return try coder.broughtUp(value, key: key) == stored } catch { return false }
  }

  /// Parks the edits of a record that the server refuses: the edits stay on the device and are left out of pushes.
  func park(_ sent: PushedRecord, code: String, detail: String, in pending: inout PendingState) throws(RepositoryError) {
    let key = RecordKey(sent.id)
    let entryKey = SyncEntry.key(sent.collection, key)
    guard var entry = try entry(entryKey, in: pending), let collection = pending.collection(named: sent.collection) else { return }
    let value = sent.value.map { StoredValue(schemaVersion: sent.version, json: $0) }
    // A record that was edited after the push was built is not parked, since the server may accept the new edit.
    let isUnedited = try isStored(value, key, in: collection, of: pending)
    if !isUnedited, try !isBeyondLimits(key, in: collection, of: pending) { return }
    entry.edits?.isParked = true
    try store(entry, for: entryKey, hasRecord: try pending.hasRecord(key, in: collection), in: &pending)
    try reject(entryKey, of: key, in: sent.collection, code: code, detail: detail, in: &pending)
  }
}

extension ScopeCommits {
  /// Removes a push that the server has refused from the scope's state, unless the push is no longer in flight.
  ///
  /// After the removal, a new push is built from the unsent edits.
  func takeBack(_ push: SyncPush, in pending: inout PendingState) throws(RepositoryError) {
    guard var state = try state(in: pending), state.flight?.token == push.token else { return }
    state.flight = nil
    state.turn += 1
    try store(state, in: &pending)
  }

  /// Rejection code of edits in a scope that the token may read and not write.
  static let forbidden = "forbidden"
  /// Rejection message for edits in a scope that the token may not write.
  ///
  /// A server's own rule may use the code `forbidden` with another message.
  static let forbiddenDetail = SyncProblem.forbidden.description
  /// Rejection code of edits that wait for a newer app, because the scope accepts no records of their schema version.
  static let upgradeRequired = "upgradeRequired"

  /// Withdraws a push and parks its records below the schema version that the scope requires.
  ///
  /// - Returns: `true` if a record of the push was below the version `minimum`, or if the push is no longer in flight.
  func parkOutdated(
    _ push: SyncPush, below minimum: Int, _ detail: String, in pending: inout PendingState
  ) throws(RepositoryError) -> Bool {
    guard let state = try state(in: pending), state.flight?.token == push.token else { return true }
    let outdated = push.groups.joined().filter { $0.version < minimum }
    // Current servers accept deletions of any schema version. Servers of an earlier release also compare the version of a deletion. A
    // deletion is therefore parked only if no edit of the push is outdated.
    let edits = outdated.filter { $0.value != nil }
    let refused = edits.isEmpty ? outdated : edits
    for record in refused {
      try park(
        record, code: Self.upgradeRequired, detail: "\(detail) Expected schema version \(minimum), found \(record.version).", in: &pending)
    }
    if !refused.isEmpty { try takeBack(push, in: &pending) }
    return !refused.isEmpty
  }

  /// Withdraws a push that the server refuses as a whole, so that its records are sent in smaller pushes.
  ///
  /// If the push has a single record, or if the token may not write the scope, all records of the push are parked instead. If the push is
  /// no longer in flight, the function does nothing.
  func divide(_ push: SyncPush, code: String, detail: String, in pending: inout PendingState) throws(RepositoryError) {
    guard var state = try state(in: pending), state.flight?.token == push.token else { return }
    let count = push.groups.joined().count
    if code == Self.forbidden || count == 1 {
      for record in push.groups.joined() { try park(record, code: code, detail: detail, in: &pending) }
      state.settleCut(by: push)
    } else if push.groups.count > 1 {
      // After a refused push with several groups, the next push has fewer groups. A group (one transaction, or several that share a record)
      // is divided only after the server has refused a push that held no other group.
      state.recordLimit = max(1, count / 2)
    } else {
      state.cut(push.groups[0])
    }
    state.flight = nil
    state.turn += 1
    try store(state, in: &pending)
  }
}
