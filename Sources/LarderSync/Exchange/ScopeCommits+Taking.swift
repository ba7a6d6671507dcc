internal import Foundation
internal import Larder
@_spi(Wire) internal import LarderWire

extension ScopeCommits {
  /// Applies a page of changes that was requested when the scope had the state `asked`.
  ///
  /// - Returns: The scope's new state, or `nil` for an outdated page, of which nothing was applied.
  func storePage(_ page: SyncChanges, askedAt asked: ScopeState, in pending: inout PendingState) throws(RepositoryError) -> ScopeState? {
    // A page is dropped if another page or push outcome was applied after its request, since its records could be older than the stored
    // ones.
    guard var state = try state(in: pending), state.turn == asked.turn, page.since == state.position else { return nil }
    if let flight = state.flight, let last = page.last, last.seq >= flight.seq {
      // If the page's receipt belongs to another push with the same or a later number, a copy of this store uses the same device
      // identifier. This store then takes a new identifier.
      if let settled = try settlePush(last, state, in: &pending) { state = settled } else { state.becomeNewDevice() }
    } else if state.flight != nil, state.pass?.isNewHistory == true {
      // A server with a new history has no outcome of the push in flight, so a new push is built from the same edits.
      state.becomeNewDevice()
    }
    // The pages from commit 0 on bring every record again, including records that were set aside. Rejections of records that were set aside
    // are removed first, and stored again for each record that still breaks a bound of the wire format.
    if page.since == 0 { try forgetUnstored(in: &pending) }
    let (pass, scopeCommits) = (state.pass.map { _ in state.passes }, corrected(by: state))
    let isNewHistory = state.pass?.isNewHistory == true
    let records = try admitted(
      page.changes, about: .collections(state.collections), pass: pass, isNewHistory: isNewHistory, in: &pending)
    for record in records {
      try scopeCommits.storeRemote(record, pass: pass, isNewHistory: isNewHistory, in: &pending)
    }
    state.history = page.history
    state.turn += 1
    if var current = state.pass {
      current.position = max(page.until, current.position)
      state.pass = current
      if !page.more { try endPass(&state, at: page.until, in: &pending) }
    } else {
      // The checkpoint, the server commit up to which the scope was read, is stored in the same commit as the page's records. After a crash
      // the device therefore has both the checkpoint and the records, or neither of them.
      state.checkpoint = max(page.until, state.checkpoint)
    }
    try store(state, in: &pending)
    let duplicates = try noteDuplicates(in: &pending)
    // Two records may be equal in a unique index after one page and differ after the next, so duplicates are judged only after the last
    // page.
    if !page.more, !records.isEmpty || pass != nil { try judgeDuplicates(besides: duplicates, in: &pending) }
    return state
  }

  /// Applies one record or tombstone that the server has sent: stores it, deletes the local record, or merges it with unsent edits.
  func storeRemote(_ remote: SyncRecord, pass: Int?, isNewHistory: Bool, in pending: inout PendingState) throws(RepositoryError) {
    guard let collection = pending.collection(named: remote.collection) else { return }
    let key = RecordKey(remote.id)
    let entryKey = SyncEntry.key(remote.collection, key)
    try readmit(entryKey, in: &pending)
    let value = remote.value.map { StoredValue(schemaVersion: remote.version, json: $0) }
    if value == nil { try noteTombstone(remote, entryKey, in: &pending) }
    guard var entry = try entry(entryKey, in: pending) else {
      // A record that existed before its collection was synced is merged as if both sides had inserted it.
      if try pending.hasRecord(key, in: collection) {
        guard try isInScope(key, in: collection, of: pending) else { return }
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
    // After a restore of the server, the commits have a new history. Until the full pass for the new history has reached a record, the
    // record's entry has a revision of the lost history.
    let isOfOldHistory = isNewHistory && entry.pass != pass
    if let pass { entry.pass = pass }
    if isOfOldHistory, entry.revision > remote.revision, entry.edits?.held == nil {
      // A restored server may have an older revision of a record than this device. If the device has the newer revision, the device's value
      // is sent again, as an edit of the server's value.
      entry.edits = entry.edits ?? .init(groups: [UInt64(remote.revision)], stamp: clock.now.milliseconds)
      entry.edits?.base = value
      entry.revision = value == nil ? 0 : remote.revision
      return try store(entry, for: entryKey, hasRecord: try pending.hasRecord(key, in: collection), in: &pending)
    }
    let isKnown = isOfOldHistory ? false : remote.revision <= entry.revision
    // Nothing is applied for a revision that the device already has, or for the deletion of a record that only this device has inserted.
    if isKnown || (value == nil && entry.revision == 0 && entry.edits?.held == nil) {
      if !entry.isDirty { try tellOfLimits(remote, entryKey, in: collection, of: &pending) }
      if pass != nil {
        try store(entry, for: entryKey, hasRecord: value != nil ? true : try pending.hasRecord(key, in: collection), in: &pending)
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

  /// Stores a rejection for a received record that is over a limit of the store, and so cannot be read on this device.
  func tellOfLimits(
    _ remote: SyncRecord, _ entryKey: RecordKey, in collection: Int, of pending: inout PendingState
  ) throws(RepositoryError) {
    let key = RecordKey(remote.id)
    guard try isBeyondLimits(key, in: collection, of: pending) else { return }
    try reject(entryKey, of: key, in: remote.collection, code: Self.beyondLimits, detail: Self.beyondLimitsDetail, in: &pending)
  }

  /// Returns true if the schema puts a local record without an outbox entry into this scope.
  ///
  /// Without this check of the scope, a server could obtain a local record of another scope by sending a record with the same id.
  func isInScope(_ key: RecordKey, in collection: Int, of pending: PendingState) throws(RepositoryError) -> Bool {
    guard let tracking = pending.tracking(of: collection), let synced = tracking.trigger as? any SyncedCollection,
      let stored = try pending.stored(key, in: collection)
    else { return false }
    do throws(RepositoryError) { return try synced.scopeName(of: stored, key: key, coder: tracking.coder) == scope } catch { return false }
  }

  /// Ends a full pass and treats records that it has not found as deleted or lost at the server.
  ///
  /// A full pass reads the whole scope from its first commit.
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
      // After a restore of the server, a record that the pass has not found is always sent again and never deleted. The server may have
      // purged tombstones under commit numbers that the lost history used, so the purge horizon does not prove a deletion.
      if pass.isNewHistory, entry.revision > 0, entry.edits?.held == nil {
        entry.edits = entry.edits ?? .init(groups: [UInt64(entry.revision)], stamp: clock.now.milliseconds)
        entry.edits?.base = nil
        entry.revision = 0
        try store(entry, for: entryKey, hasRecord: try pending.hasRecord(address.key, in: collection), in: &pending)
      } else if entry.isDirty {
        // A record with unsent edits is merged with a deletion, so that the merge policy decides which of them wins.
        let tombstone = SyncRecord(collection: address.collection, id: address.key.text, revision: head)
        try merge(entry, entryKey, with: tombstone, in: collection, pass: state.passes, of: &pending)
      } else {
        try put(nil, for: address.key, in: collection, of: &pending)
        try pending.deleteStored(entryKey, in: records)
      }
    }
    // The new history may have receipts of other pushes under this device's push numbers, so the device takes a new identifier.
    if pass.isNewHistory, state.seq > 0 { state.becomeNewDevice() }
    state.pass = nil
    state.checkpoint = head
  }
}

extension ScopeState {
  /// Server commit after which the next page of changes begins.
  var position: Int { pass?.position ?? checkpoint }
}

/// The records that a server's answer may contain, which are the records that the device has requested or pushed.
enum AnswerSubject {
  /// For a page: the records of the requested collections.
  case collections([String])
  /// For a push outcome: the records of that push.
  case records(Set<RecordAddress>)

  fileprivate func covers(_ record: SyncRecord) -> Bool {
    switch self {
    case .collections(let names): names.contains(record.collection)
    case .records(let sent): sent.contains(RecordAddress(collection: record.collection, key: RecordKey(record.id)))
    }
  }
}

extension ScopeCommits {
  /// Returns those records of a server's answer that the device has requested and can store.
  ///
  /// `admitted` filters the records of all pages and push outcomes. A record that was not requested is dropped, since it could belong to a
  /// collection that is not synced. A record that breaks a bound of the wire format is set aside (not stored, and reported to the user),
  /// and the other records of the answer are applied.
  func admitted(
    _ records: [SyncRecord], about subject: AnswerSubject, pass: Int? = nil, isNewHistory: Bool = false, in pending: inout PendingState
  ) throws(RepositoryError) -> [SyncRecord] {
    var admitted: [SyncRecord] = []
    for record in records where subject.covers(record) {
      var record = record
      // A line feed between tokens would break the one-line form of stored JSON.
      record.value = record.value.map { StoredValue(schemaVersion: 1, json: $0).onOneLine.json }
      do throws(SyncProblem) { try record.check() } catch {
        try setAsideRemote(record, detail: error.description, about: subject, pass: pass, isNewHistory: isNewHistory, in: &pending)
        continue
      }
      admitted.append(record)
    }
    return admitted
  }

  /// Rejection code of a record, received or to be sent, that breaks a bound of the wire format.
  static let malformed = "malformed"

  /// Sets a received record aside: its value is not stored, and a rejection reports the record to the user.
  private func setAsideRemote(
    _ remote: SyncRecord, detail: String, about subject: AnswerSubject, pass: Int?, isNewHistory: Bool, in pending: inout PendingState
  ) throws(RepositoryError) {
    guard let collection = pending.collection(named: remote.collection) else { return }
    var key = RecordKey(remote.id)
    do throws(SyncProblem) { try WireField.id.check(remote.id) } catch {
      // An id that breaks a bound may have any length, so the rejection contains only the beginning of the id and its hash.
      key = RecordKey("\(WireField.code.cut(remote.id))#\(key.hash)")
    }
    let entryKey = SyncEntry.key(remote.collection, key)
    let hasRecord = try pending.hasRecord(key, in: collection)
    if var entry = try entry(entryKey, in: pending) {
      guard entry.scope == scope else { return }
      // The record counts as found by the full pass, so that the end of the pass does not delete it. In a new history, the stored revision
      // belongs to the lost history, so it is reset to 0.
      if let pass { entry.pass = pass }
      if isNewHistory { entry.revision = 0 }
      // Edits in conflict with a record that breaks a bound are parked, since they would meet the same conflict if they were sent again.
      if case .records = subject { entry.edits?.isParked = true }
      try store(entry, for: entryKey, hasRecord: hasRecord, in: &pending)
    } else if hasRecord, try !isInScope(key, in: collection, of: pending) {
      return
    }
    try reject(entryKey, of: key, in: remote.collection, code: Self.malformed, detail: detail, in: &pending)
  }

  /// Removes rejections of records that were set aside and never stored.
  ///
  /// The pages from commit 0 on bring every record again, and a record that still breaks a bound of the wire format gets a new rejection.
  func forgetUnstored(in pending: inout PendingState) throws(RepositoryError) {
    for rejection in try rejected.snapshot.loadAll(strict: false) where rejection.scope == scope && rejection.code == Self.malformed {
      guard try !pending.hasRecord(RecordKey(rejection.id), in: records) else { continue }
      try pending.delete(rejection.id, in: rejected)
    }
  }

  /// True if a rejection reports a record over a limit of this store.
  ///
  /// A refusal by the server may have the same code, so the detail is compared too.
  private func isOfLimits(_ rejection: SyncRejection) -> Bool {
    rejection.code == Self.beyondLimits && rejection.detail == WireField.detail.cut(Self.beyondLimitsDetail)
  }

  /// Removes rejections of records that were over a limit of the store, if the records can be read now or no longer exist.
  func forgetLimits(in pending: inout PendingState) throws(RepositoryError) {
    for rejection in try rejected.snapshot.loadAll(strict: false) where rejection.scope == scope && isOfLimits(rejection) {
      guard try entry(RecordKey(rejection.id), in: pending)?.isDirty != true,
        let collection = pending.collection(named: rejection.collection),
        try !isBeyondLimits(RecordKey(rejection.recordID), in: collection, of: pending)
      else { continue }
      try pending.delete(rejection.id, in: rejected)
    }
  }

  /// Removes the rejection of a record that was set aside, since the server has sent another version of it.
  ///
  /// If the record has parked edits, they are sent again.
  func readmit(_ entryKey: RecordKey, in pending: inout PendingState) throws(RepositoryError) {
    guard let rejection = try pending.find(by: entryKey.text, in: rejected) else { return }
    let found = try entry(entryKey, in: pending)
    guard rejection.code == Self.malformed || isOfLimits(rejection) && found?.isDirty != true else { return }
    guard found.map({ $0.scope == scope }) != false else { return }
    try pending.delete(entryKey.text, in: rejected)
    guard var entry = found, entry.edits?.isParked == true else { return }
    entry.edits?.isParked = false
    try pending.storeUnread(entry.stored, for: entryKey, in: records)
  }
}
