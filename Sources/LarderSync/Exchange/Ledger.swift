internal import Foundation
@_spi(Inspection) internal import Larder

/// The writes of an exchange: what an outcome and a page change in the store, each within one commit.
struct Ledger: Sendable {
  let scope: String
  let records: Int
  let scopes: Int
  let conflicts: LocalRepository<SyncConflict>
  let rejected: LocalRepository<SyncRejection>
  let deletions: LocalRepository<SyncDeletion>
  let clock: any WallClock
  /// The milliseconds by which the server's clock is ahead of this device's.
  private var skew: SyncMilliseconds = 0
  /// The newest state of the scope that was read or stored: a push in flight makes it long.
  let newest = NewestState()

  init(
    scope: String, records: Int, scopes: Int, conflicts: LocalRepository<SyncConflict>, rejected: LocalRepository<SyncRejection>,
    deletions: LocalRepository<SyncDeletion>, clock: any WallClock
  ) {
    (self.scope, self.records, self.scopes) = (scope, records, scopes)
    (self.conflicts, self.rejected, self.deletions, self.clock) = (conflicts, rejected, deletions, clock)
  }

  // MARK: Clocks

  /// Returns the ledger for what is taken at some state of the scope, which knows how wrong the device's clock is.
  func corrected(by state: ScopeState) -> Ledger {
    var ledger = self
    ledger.skew = state.skew ?? 0
    return ledger
  }

  /// Returns the time of an edit of this device as the server would store it: by its clock, and not in the future.
  func corrected(_ stamp: SyncMilliseconds) -> SyncMilliseconds { min(stamp, clock.now.milliseconds) &+ skew }

  // MARK: The state of the scope

  var key: RecordKey { RecordKey(scope) }

  func state(in pending: PendingState) throws(RepositoryError) -> ScopeState? {
    guard let stored = pending.stored(key, in: scopes) else { return nil }
    return try newest.state(of: stored)
  }

  func state(in snapshot: StoredSnapshot) throws(RepositoryError) -> ScopeState? {
    guard let stored = snapshot.stored(key, in: scopes) else { return nil }
    return try newest.state(of: stored)
  }

  func store(_ state: ScopeState, in pending: inout PendingState) throws(RepositoryError) {
    try pending.keep(newest.stored(state), for: key, in: scopes)
  }

  // MARK: Entries

  func entry(_ key: RecordKey, in pending: PendingState) throws(RepositoryError) -> SyncEntry? {
    guard let stored = pending.stored(key, in: records) else { return nil }
    return try SyncEntry(stored)
  }

  /// Stores an entry; forgets it where neither the device nor the server has the record.
  func store(_ entry: SyncEntry, for key: RecordKey, hasRecord: Bool, in pending: inout PendingState) throws(RepositoryError) {
    if !hasRecord, !entry.isDirty { pending.erase(key, in: records) } else { try pending.keep(entry.stored, for: key, in: records) }
  }

  /// Returns whether there is a record whose bytes are not here, as of one over a limit: it must not pass for a deleted one.
  func isBeyondLimits(_ key: RecordKey, in collection: Int, of pending: PendingState) -> Bool {
    pending.hasRecord(key, in: collection) && pending.stored(key, in: collection) == nil
  }

  /// The code of edits that wait until the store is opened with higher limits.
  static let beyondLimits = "tooLarge"
  static let beyondLimitsDetail =
    "expected a record within the limits of the store, found a larger one; open the store with higher limits, and retry"

  /// The code of records that were there before they were synced, and of which no scope can be found.
  static let hasNoScope = "noScope"

  /// Stores the value of a record, unless it is there already.
  func put(
    _ value: StoredValue?, for key: RecordKey, in collection: Int, of pending: inout PendingState
  ) throws(RepositoryError) {
    guard pending.stored(key, in: collection) != value || (value == nil && pending.hasRecord(key, in: collection)) else { return }
    if let value { try pending.store(value.onOneLine, for: key, in: collection) } else { pending.erase(key, in: collection) }
  }

  // MARK: What the user is told

  func note(_ merged: Merged, of key: RecordKey, in collection: String, in pending: inout PendingState) throws(RepositoryError) {
    guard !merged.lost.isEmpty || merged.undidDeletion else { return }
    let conflict = SyncConflict(
      id: UUID(), scope: scope, collection: collection, recordID: key.text,
      lost: merged.lost.mapValues { String(decoding: $0.json, as: UTF8.self) },
      isLocal: merged.lostLocal || merged.undidDeletion, date: clock.now)
    try pending.save(conflict, in: conflicts)
  }

  /// Notes the records of other devices that this write has stored beside others with the same values in a unique index.
  func noteDuplicates(in pending: inout PendingState) throws(RepositoryError) {
    for duplicate in pending.newDuplicates().prefix(SyncEngine.conflictLimit) {
      // Reverted edits are of several scopes.
      let scope = try entry(SyncEntry.key(duplicate.collection, duplicate.key), in: pending)?.scope ?? scope
      let conflict = SyncConflict(
        id: UUID(), scope: scope, collection: duplicate.collection, recordID: duplicate.key.text, lost: [:], isLocal: false,
        date: clock.now, duplicateOf: duplicate.other.text, index: duplicate.index)
      try pending.save(conflict, in: conflicts)
    }
  }

  /// Withdraws what was noted of duplicates that are none any more; where a third record has the same values, the note tells of that.
  func judgeDuplicates(in pending: inout PendingState) throws(RepositoryError) {
    let noted = conflicts.snapshot.loadAll().filter { $0.scope == scope && $0.duplicateOf != nil }
    var pairs = Set(noted.map { [$0.collection, $0.recordID, $0.duplicateOf] })
    for conflict in noted.sorted(by: { ($0.date, $0.id.uuidString) < ($1.date, $1.id.uuidString) }) {
      guard let index = conflict.index, let other = conflict.duplicateOf.map({ RecordKey($0) }),
        try pending.find(by: conflict.id, in: conflicts) != nil
      else { continue }
      let key = RecordKey(conflict.recordID)
      switch pending.duplicate(of: key, preferring: other, in: conflict.collection, index: index) {
      case .unknown, .of(other): continue
      case .of(let third) where !pairs.contains([conflict.collection, third.text, key.text]):
        var conflict = conflict
        conflict.duplicateOf = third.text
        pairs.insert([conflict.collection, key.text, third.text])
        try pending.save(conflict, in: conflicts)
      case .of, .none: try pending.delete(conflict.id, in: conflicts)
      }
    }
  }

  func reject(
    _ entryKey: RecordKey, of key: RecordKey, in collection: String, code: String, detail: String, in pending: inout PendingState
  ) throws(RepositoryError) {
    let rejection = SyncRejection(
      id: entryKey.text, scope: scope, collection: collection, recordID: key.text, code: WireField.code.cut(code),
      detail: WireField.detail.cut(detail),
      date: clock.now)
    try pending.save(rejection, in: rejected)
  }
}

extension Ledger {
  /// Lets edits go on that have waited for an app as new as this one.
  /// - Returns: Whether the app is newer than the one that has last prepared the scope, or the first.
  func upgrade(_ names: [String], _ state: inout ScopeState, in pending: inout PendingState) throws(RepositoryError) -> Bool {
    var versions: [String: Int] = [:]
    for name in names { versions[name] = pending.collection(named: name).flatMap { pending.tracking(of: $0) }?.coder.schemaVersion }
    guard versions != state.versions else { return false }
    state.versions = versions
    var waiting: [(RecordKey, SyncEntry)] = []
    try pending.visit(records) { (key, stored) throws(RepositoryError) in
      let entry = try SyncEntry(stored)
      guard entry.scope == scope, entry.edits?.isParked == true, let address = SyncEntry.address(key) else { return }
      if let held = entry.edits?.held {
        if held.value.schemaVersion <= versions[address.collection] ?? 0 { waiting.append((key, entry)) }
      } else if try pending.find(by: key.text, in: rejected)?.code == Self.upgradeRequired {
        waiting.append((key, entry))
      }
    }
    for (key, found) in waiting {
      guard var edits = found.edits else { continue }
      var entry = found
      // What was held stays until the edits are merged with it, or have led back to their base and it is taken.
      edits.isParked = false
      try pending.delete(key.text, in: rejected)
      entry.edits = edits
      try pending.keep(entry.stored, for: key, in: records)
    }
    return true
  }

  /// Notes the records that were in a collection before it was synced, as records that were inserted.
  func adopt(_ name: String, in pending: inout PendingState) throws(RepositoryError) {
    guard let collection = pending.collection(named: name), let tracking = pending.tracking(of: collection),
      let synced = tracking.trigger as? any SyncedCollection
    else { return }
    var found: [(RecordKey, StoredValue)] = []
    try pending.visit(collection) { (key, stored) throws(RepositoryError) in found.append((key, stored)) }
    for (key, stored) in found {
      let entryKey = SyncEntry.key(name, key)
      guard !pending.hasRecord(entryKey, in: records), stored.schemaVersion <= tracking.coder.schemaVersion else { continue }
      let scope: String
      do throws(RepositoryError) { scope = try synced.scopeName(of: stored, key: key, coder: tracking.coder) } catch {
        // One that belongs nowhere holds nothing up; an edit that gives it a scope lets it go on.
        try reject(entryKey, of: key, in: name, code: Self.hasNoScope, detail: error.message, in: &pending)
        continue
      }
      // Also of a scope without an engine, so that the status names it.
      let entry = SyncEntry(scope: scope, edits: .init(stamp: clock.now.milliseconds))
      try pending.keep(entry.stored, for: entryKey, in: records)
    }
  }
}
