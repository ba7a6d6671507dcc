// Exchange/ holds the store writes of an exchange: building a push, applying its outcome, applying a page, and ending a full pass.
// Invariant: a push, a push outcome or a page is stored in one commit, together with the read position that results from it.
// Called by SyncEngine.

internal import Foundation
internal import Larder
@_spi(Wire) internal import LarderWire

/// The store writes of one scope's exchange: each push outcome and each page is applied in one commit.
///
/// A scope is a named part of the synced data. An entry is the outbox record beside each synced record.
struct ScopeCommits: Sendable {
  let scope: String
  let records: Int
  let scopes: Int
  let conflicts: LocalRepository<SyncConflict>
  let rejected: LocalRepository<SyncRejection>
  let deletions: LocalRepository<SyncDeletion>
  let clock: any WallClock
  /// Milliseconds by which the server's clock is ahead of this device's.
  private var skew: SyncMilliseconds = 0
  /// Cache of the newest decoded state of the scope.
  ///
  /// Without the cache, each use would decode the state again, whose JSON is long while it holds a push in flight.
  let newest = NewestState()

  init(
    scope: String, records: Int, scopes: Int, conflicts: LocalRepository<SyncConflict>, rejected: LocalRepository<SyncRejection>,
    deletions: LocalRepository<SyncDeletion>, clock: any WallClock
  ) {
    (self.scope, self.records, self.scopes) = (scope, records, scopes)
    (self.conflicts, self.rejected, self.deletions, self.clock) = (conflicts, rejected, deletions, clock)
  }

  // MARK: Clocks

  /// Returns a copy of these `ScopeCommits` that corrects times by the clock difference stored in a state.
  func corrected(by state: ScopeState) -> ScopeCommits {
    var scopeCommits = self
    scopeCommits.skew = state.skew ?? 0
    return scopeCommits
  }

  /// Converts the time of a local edit to the server's clock, and limits it to the present.
  ///
  /// The server converts the times of pushed edits to its own clock in the same way.
  func corrected(_ stamp: SyncMilliseconds) -> SyncMilliseconds { min(stamp, clock.now.milliseconds) &+ skew }

  // MARK: The state of the scope

  /// Key of the scope's state in the collection of states.
  var key: RecordKey { RecordKey(scope) }

  /// Returns the state of the scope within a write, or `nil` if no state is stored.
  func state(in pending: PendingState) throws(RepositoryError) -> ScopeState? {
    guard let stored = try pending.stored(key, in: scopes) else { return nil }
    return try newest.state(of: stored)
  }

  /// Returns the state of the scope in a snapshot, or `nil` if no state is stored.
  func state(in snapshot: StoredSnapshot) throws(RepositoryError) -> ScopeState? {
    guard let stored = try snapshot.stored(key, in: scopes) else { return nil }
    return try newest.state(of: stored)
  }

  /// Writes the state of the scope.
  func store(_ state: ScopeState, in pending: inout PendingState) throws(RepositoryError) {
    try pending.storeUnread(newest.stored(state), for: key, in: scopes)
  }

  // MARK: Entries

  /// Returns the outbox entry with a key, or `nil` if no such entry is stored.
  func entry(_ key: RecordKey, in pending: PendingState) throws(RepositoryError) -> SyncEntry? {
    guard let stored = try pending.stored(key, in: records) else { return nil }
    return try SyncEntry(stored)
  }

  /// Writes an outbox entry, or removes it if neither the device nor the server has the record.
  func store(_ entry: SyncEntry, for key: RecordKey, hasRecord: Bool, in pending: inout PendingState) throws(RepositoryError) {
    if !hasRecord, !entry.isDirty {
      try pending.deleteStored(key, in: records)
    } else {
      try pending.storeUnread(entry.stored, for: key, in: records)
    }
  }

  /// Returns true for a record that exists but was not loaded, because it is over a limit of the store.
  ///
  /// A record over a limit must not count as deleted, or its deletion would be sent to the server.
  func isBeyondLimits(_ key: RecordKey, in collection: Int, of pending: PendingState) throws(RepositoryError) -> Bool {
    try pending.hasRecord(key, in: collection) ? try pending.stored(key, in: collection) == nil : false
  }

  /// Rejection code of edits that wait until the store is opened with higher limits.
  static let beyondLimits = "tooLarge"
  static let beyondLimitsDetail =
    "expected a record within the limits of the store, found a larger one; open the store with higher limits, and retry"

  /// Rejection code of records that existed before their collection was synced, and whose scope cannot be determined.
  static let hasNoScope = "noScope"

  /// Writes the value of a record, or deletes the record if the value is `nil`, unless the store already holds that value.
  func put(
    _ value: StoredValue?, for key: RecordKey, in collection: Int, of pending: inout PendingState
  ) throws(RepositoryError) {
    // A value that equals the stored one is not written again. A record over a limit of the store reads as `nil`, and must still be
    // deleted.
    let isEqual = try pending.stored(key, in: collection) == value
    if isEqual, value != nil { return }
    if isEqual, try !pending.hasRecord(key, in: collection) { return }
    if let value { try pending.store(value.onOneLine, for: key, in: collection) } else { try pending.deleteStored(key, in: collection) }
  }

  // MARK: What the user is told

  /// Stores a conflict for the user if a merge has lost values or has undone a deletion.
  func note(_ merged: Merged, of key: RecordKey, in collection: String, in pending: inout PendingState) throws(RepositoryError) {
    guard !merged.lost.isEmpty || merged.undidDeletion else { return }
    let conflict = SyncConflict(
      id: UUID(), scope: scope, collection: collection, recordID: key.text,
      lost: merged.lost.mapValues { String(decoding: $0.json, as: UTF8.self) },
      isLocal: merged.lostLocal || merged.undidDeletion, date: clock.now)
    try pending.save(conflict, in: conflicts)
  }

  /// Two records that a conflict lists as equal in a unique index.
  struct DuplicatePair: Hashable {
    let collection: String
    let index: String?
    let record: String
    let other: String?

    /// The same records, as a conflict of the other one would list them.
    var reversed: DuplicatePair? { other.map { DuplicatePair(collection: collection, index: index, record: $0, other: record) } }
  }

  /// Stores a conflict for each record that this write has made a duplicate in a unique index.
  ///
  /// - Returns: The pairs of records that the stored conflicts list.
  @discardableResult func noteDuplicates(in pending: inout PendingState) throws(RepositoryError) -> [DuplicatePair] {
    var pairs: [DuplicatePair] = []
    // The engine keeps at most `conflictLimit` conflicts, so further conflicts would be written only to be removed again.
    for duplicate in try pending.newDuplicates().prefix(SyncEngine.conflictLimit) {
      // The scope comes from the record's entry, since `SyncEngine.resolve` writes records of all scopes through `common`, whose scope is
      // empty.
      let scope = try entry(SyncEntry.key(duplicate.collection, duplicate.key), in: pending)?.scope ?? scope
      let conflict = SyncConflict(
        id: UUID(), scope: scope, collection: duplicate.collection, recordID: duplicate.key.text, lost: [:], isLocal: false,
        date: clock.now, duplicateOf: duplicate.other.text, index: duplicate.index)
      try pending.save(conflict, in: conflicts)
      pairs.append(DuplicatePair(conflict))
    }
    return pairs
  }

  /// Removes each duplicate conflict whose two records no longer have equal values in the unique index.
  ///
  /// If a third record has the same values, the conflict is changed to name the third record, unless another conflict of this index lists
  /// the two records.
  /// - Parameter added: Pairs of the conflicts that the present write has stored, which the snapshot of the conflicts lacks.
  func judgeDuplicates(besides added: [DuplicatePair], in pending: inout PendingState) throws(RepositoryError) {
    let noted = try conflicts.snapshot.loadAll(strict: false).filter { $0.scope == scope && $0.duplicateOf != nil }
    var pairs = Set(noted.map { DuplicatePair($0) } + added)
    for conflict in noted.sorted(by: { ($0.date, $0.id.uuidString) < ($1.date, $1.id.uuidString) }) {
      // The list of conflicts is from a snapshot before this write, so this write may already have removed a listed conflict.
      guard let index = conflict.index, let other = conflict.duplicateOf.map({ RecordKey($0) }),
        try pending.find(by: conflict.id, in: conflicts) != nil
      else { continue }
      switch try pending.duplicate(of: RecordKey(conflict.recordID), preferring: other, in: conflict.collection, index: index) {
      case .unknown, .of(other): continue
      case .of(let third):
        var changed = conflict
        changed.duplicateOf = third.text
        let pair = DuplicatePair(changed)
        if pairs.contains(pair) || pair.reversed.map(pairs.contains) == true {
          try pending.delete(conflict.id, in: conflicts)
        } else {
          pairs.insert(pair)
          try pending.save(changed, in: conflicts)
        }
      case .none: try pending.delete(conflict.id, in: conflicts)
      }
    }
  }

  /// Stores a rejection, which the user finds in `SyncEngine.rejected`.
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

extension ScopeCommits {
  /// Lets edits that waited for a newer app be sent again, if this app has the schema version that the edits need.
  ///
  /// - Returns: Whether the app's schema versions differ from those of the app that last prepared the scope.
  func upgrade(_ names: [String], _ state: inout ScopeState, in pending: inout PendingState) throws(RepositoryError) -> Bool {
    var versions: [String: Int] = [:]
    for name in names { versions[name] = pending.collection(named: name).flatMap { pending.tracking(of: $0) }?.coder.schemaVersion }
    // If the schema versions are unchanged, the function returns without the scan below, which decodes every outbox entry.
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
      // A held server value stays in the entry until a later conflict merges it with the edits. If the edited value equals its base when
      // the next push is built, the held value is stored as the record.
      edits.isParked = false
      try pending.delete(key.text, in: rejected)
      entry.edits = edits
      try pending.storeUnread(entry.stored, for: key, in: records)
    }
    return true
  }

  /// Adds outbox entries for the records that existed before their collection was synced, as if they were inserted now.
  func adopt(_ name: String, in pending: inout PendingState) throws(RepositoryError) {
    guard let collection = pending.collection(named: name), let tracking = pending.tracking(of: collection),
      let synced = tracking.trigger as? any SyncedCollection
    else { return }
    // The records are collected first, since `pending` cannot be changed while it is being visited.
    var found: [(RecordKey, StoredValue)] = []
    try pending.visit(collection) { (key, stored) throws(RepositoryError) in found.append((key, stored)) }
    for (key, stored) in found {
      let entryKey = SyncEntry.key(name, key)
      guard try !pending.hasRecord(entryKey, in: records), stored.schemaVersion <= tracking.coder.schemaVersion else { continue }
      let scope: String
      do throws(RepositoryError) { scope = try synced.scopeName(of: stored, key: key, coder: tracking.coder) } catch {
        // One record without a valid scope must not keep the whole collection from being synced. A later edit that gives the record a valid
        // scope removes the rejection.
        try reject(entryKey, of: key, in: name, code: Self.hasNoScope, detail: error.message, in: &pending)
        continue
      }
      // Records of scopes without an engine get outbox entries, too, so that `SyncStatus.otherScopes` counts these records.
      let entry = SyncEntry(scope: scope, edits: .init(stamp: clock.now.milliseconds))
      try pending.storeUnread(entry.stored, for: entryKey, in: records)
    }
  }
}

extension ScopeCommits.DuplicatePair {
  init(_ conflict: SyncConflict) {
    self.init(collection: conflict.collection, index: conflict.index, record: conflict.recordID, other: conflict.duplicateOf)
  }
}
