internal import Foundation
internal import Larder

extension Ledger {
  /// Takes a page that was asked for at some state of the scope.
  /// - Returns: The state afterwards; `nil` for a page that is too old, of which nothing was taken.
  func take(_ page: SyncChanges, askedAt asked: ScopeState, in pending: inout PendingState) throws(RepositoryError) -> ScopeState? {
    guard var state = try state(in: pending), state.turn == asked.turn, page.since == state.position else { return nil }
    if let flight = state.flight, let last = page.last, last.seq >= flight.seq {
      // Another push under the same number, or behind it: that of a store that was the same file.
      if let settled = try settle(last, state, in: &pending) { state = settled } else { state.becomeNewDevice() }
    } else if state.flight != nil, state.pass?.isNewHistory == true {
      // The server that came back has never had it: the edits are sent anew.
      state.becomeNewDevice()
    }
    if page.since == 0 { try forgetUnstored(in: &pending) }
    let (pass, ledger) = (state.pass.map { _ in state.passes }, corrected(by: state))
    let isNewHistory = state.pass?.isNewHistory == true
    let records = try admitted(
      page.changes, about: .collections(state.collections), pass: pass, isNewHistory: isNewHistory, in: &pending)
    for record in records {
      try ledger.take(record, pass: pass, isNewHistory: isNewHistory, in: &pending)
    }
    state.history = page.history
    state.turn += 1
    if var current = state.pass {
      current.position = max(page.until, current.position)
      state.pass = current
      if !page.more { try endPass(&state, at: page.until, in: &pending) }
    } else {
      state.checkpoint = max(page.until, state.checkpoint)
    }
    try store(state, in: &pending)
    try noteDuplicates(in: &pending)
    // A page has the newest state of a record, beside others of which a later page tells.
    if !page.more, !records.isEmpty || pass != nil { try judgeDuplicates(in: &pending) }
    return state
  }

  /// Takes one record as the server has it.
  func take(_ remote: SyncRecord, pass: Int?, isNewHistory: Bool, in pending: inout PendingState) throws(RepositoryError) {
    guard let collection = pending.collection(named: remote.collection) else { return }
    let key = RecordKey(remote.id)
    let entryKey = SyncEntry.key(remote.collection, key)
    try readmit(entryKey, in: &pending)
    let value = remote.value.map { StoredValue(schemaVersion: remote.version, json: $0) }
    if value == nil { try noteTombstone(remote, entryKey, in: &pending) }
    guard var entry = try entry(entryKey, in: pending) else {
      // One that was here before the collection was synced, and is not noted yet, is as one that was inserted.
      if pending.hasRecord(key, in: collection) {
        guard isInScope(key, in: collection, of: pending) else { return }
        let entry = SyncEntry(scope: scope, edits: .init(stamp: clock.now.milliseconds))
        return try merge(entry, entryKey, with: remote, in: collection, pass: pass, of: &pending)
      }
      guard value != nil else { return }
      try noteReturn(remote, entryKey, in: &pending)
      try put(value, for: key, in: collection, of: &pending)
      try tellOfLimits(remote, entryKey, in: collection, of: &pending)
      return try store(
        SyncEntry(scope: scope, revision: remote.revision, pass: pass ?? 0), for: entryKey, hasRecord: true, in: &pending)
    }
    guard entry.scope == scope else { return }
    // Until the pass has come to it, the entry has the revision of a history that is gone.
    let isOfOldHistory = isNewHistory && entry.pass != pass
    if let pass { entry.pass = pass }
    if isOfOldHistory, entry.revision > remote.revision, entry.edits?.held == nil {
      // The server came back without what this device has: that is given back, on top of what the server has.
      entry.edits = entry.edits ?? .init(groups: [UInt64(remote.revision)], stamp: clock.now.milliseconds)
      entry.edits?.base = value
      entry.revision = value == nil ? 0 : remote.revision
      return try store(entry, for: entryKey, hasRecord: pending.hasRecord(key, in: collection), in: &pending)
    }
    let isKnown = isOfOldHistory ? false : remote.revision <= entry.revision
    if isKnown || (value == nil && entry.revision == 0 && entry.edits?.held == nil) {
      if !entry.isDirty { try tellOfLimits(remote, entryKey, in: collection, of: &pending) }
      if pass != nil {
        try store(entry, for: entryKey, hasRecord: value != nil || pending.hasRecord(key, in: collection), in: &pending)
      }
      return
    }
    if isOfOldHistory { entry.revision = 0 }
    if entry.isDirty { return try merge(entry, entryKey, with: remote, in: collection, pass: pass, of: &pending) }
    entry.revision = remote.revision
    try put(value, for: key, in: collection, of: &pending)
    try tellOfLimits(remote, entryKey, in: collection, of: &pending)
    try store(entry, for: entryKey, hasRecord: value != nil, in: &pending)
  }

  /// Tells the user of a record of another device that is over a limit of the store, and cannot be read here.
  func tellOfLimits(
    _ remote: SyncRecord, _ entryKey: RecordKey, in collection: Int, of pending: inout PendingState
  ) throws(RepositoryError) {
    let key = RecordKey(remote.id)
    guard isBeyondLimits(key, in: collection, of: pending) else { return }
    try reject(entryKey, of: key, in: remote.collection, code: Self.beyondLimits, detail: Self.beyondLimitsDetail, in: &pending)
  }

  /// Returns whether the schema puts a record, which has no entry, into this scope.
  ///
  /// A server must not get a record by naming it that belongs to another scope, or to none.
  func isInScope(_ key: RecordKey, in collection: Int, of pending: PendingState) -> Bool {
    guard let tracking = pending.tracking(of: collection), let synced = tracking.trigger as? any SyncedCollection,
      let stored = pending.stored(key, in: collection)
    else { return false }
    do throws(RepositoryError) { return try synced.scopeName(of: stored, key: key, coder: tracking.coder) == scope } catch { return false }
  }

  /// Ends a full pass: what it has not seen was deleted at the server, or the server has lost it.
  private func endPass(_ state: inout ScopeState, at head: Int, in pending: inout PendingState) throws(RepositoryError) {
    guard let pass = state.pass else { return }
    var unseen: [(RecordKey, SyncEntry)] = []
    try pending.visit(records) { (key, stored) throws(RepositoryError) in
      let entry = try SyncEntry(stored)
      if entry.scope == scope, entry.pass != state.passes, entry.revision > 0 || entry.edits?.held != nil { unseen.append((key, entry)) }
    }
    for (entryKey, found) in unseen {
      var entry = found
      guard let address = SyncEntry.address(entryKey), let collection = pending.collection(named: address.collection) else { continue }
      // Whatever the horizon: the server that came back may have purged under numbers that it had given before.
      if pass.isNewHistory, entry.revision > 0, entry.edits?.held == nil {
        entry.edits = entry.edits ?? .init(groups: [UInt64(entry.revision)], stamp: clock.now.milliseconds)
        entry.edits?.base = nil
        entry.revision = 0
        try store(entry, for: entryKey, hasRecord: pending.hasRecord(address.key, in: collection), in: &pending)
      } else if entry.isDirty {
        let tombstone = SyncRecord(collection: address.collection, id: address.key.text, revision: head)
        try merge(entry, entryKey, with: tombstone, in: collection, pass: state.passes, of: &pending)
      } else {
        try put(nil, for: address.key, in: collection, of: &pending)
        pending.erase(entryKey, in: records)
      }
    }
    if pass.isNewHistory, state.seq > 0 { state.becomeNewDevice() }
    state.pass = nil
    state.checkpoint = head
  }
}

extension ScopeState {
  /// The commit behind which the next page begins.
  var position: Int { pass?.position ?? checkpoint }
}
