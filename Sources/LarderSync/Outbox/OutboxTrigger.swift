// Outbox/ stores the edits that the server lacks, as one entry for each record, in the commit of the edit. Outbox/ also stores the sync
// state of each scope.
// Invariant: the outbox entry of a record with unsent edits has their base: the server's revision and value from before the edits.
// Called by Larder's engine, through the trigger, and by Exchange.

internal import Foundation
internal import Larder
internal import LarderWire

/// Names of the collections in which sync keeps its own data.
enum SyncCollections {
  static let records = "larder.sync.records"
  static let scopes = "larder.sync.scopes"
  static let conflicts = "larder.sync.conflicts"
  static let rejected = "larder.sync.rejected"
  static let deletions = "larder.sync.deletions"
}

/// Trigger of a synced collection, which writes an outbox entry in the commit of each change.
///
/// The outbox is state and not a log: each record has one entry, however often it is edited.
struct OutboxTrigger<Item: Codable & Identifiable & Sendable>: SyncedCollection {
  let scope: ScopeRule<Item>
  let policy: MergePolicy<Item>
  let clock: any WallClock

  /// Milliseconds by which the stored time of a record's last edit may be too early.
  ///
  /// An edit within this time of the record's previous edit does not rewrite the outbox entry. The tolerance matters little, because the
  /// clocks of two devices usually differ by more than a second.
  static var stampTolerance: SyncMilliseconds { 1_000 }

  var collections: [String] { [SyncCollections.records, SyncCollections.scopes] }

  func willChange(_ change: TriggeredChange, in pending: inout PendingState) throws(RepositoryError) {
    guard let records = pending.collection(named: SyncCollections.records) else { return }
    let key = SyncEntry.key(change.collection, change.key)
    let stored = try pending.stored(key, in: records)
    var entry: SyncEntry
    if let stored {
      entry = try SyncEntry(stored)
    } else {
      guard let value = change.new ?? change.old else { return }
      do throws(RepositoryError) { entry = SyncEntry(scope: try scope.name(of: value, change)) } catch {
        // A record that never had a valid scope may be deleted. Any other write of a record without a valid scope is refused.
        guard change.new == nil else { throw error }
        if let rejected = pending.collection(named: SyncCollections.rejected) { try pending.deleteStored(key, in: rejected) }
        return
      }
    }
    // A record cannot move to another scope. The commits of two scopes have no common order, so another device could not distinguish the
    // move from two records with one id. The entry of a deleted record keeps its scope until the server has accepted the deletion. Until
    // then, an insertion of the record into another scope is refused, too.
    if let new = change.new, try scope.name(of: new, change) != entry.scope {
      throw RepositoryError(
        .unsupported, "expected the scope that the record is in; delete it, and insert another with a new id", keyHash: change.key.hash)
    }
    if change.new == nil, entry.revision == 0, let scopes = pending.collection(named: SyncCollections.scopes),
      try !pending.hasRecord(RecordKey(entry.scope), in: scopes)
    {
      // A scope without a stored state was never exchanged, so the server has none of its records. The entry of a deleted record is
      // removed, because it would be kept for ever if no engine ever syncs the scope.
      if let rejected = pending.collection(named: SyncCollections.rejected) { try pending.deleteStored(key, in: rejected) }
      return try pending.deleteStored(key, in: records)
    }
    // An edit of the record after a failed merge decides for the local value, so the server's value that the entry holds becomes the base.
    if entry.edits?.isParked == true { entry.decideFailedMerge() }
    var edits = entry.edits ?? SyncEntry.Edits()
    // Before the first unsent edit, the stored value equals the server's value, which is the base of a later merge.
    if entry.edits == nil, entry.revision > 0 { edits.base = change.old }
    // The server may accept the new edit although it has refused an earlier edit, so the rejection is removed. The rejection of a record
    // that had no valid scope is removed as well.
    if edits.isParked || (stored == nil && change.old != nil), let rejected = pending.collection(named: SyncCollections.rejected) {
      try pending.deleteStored(key, in: rejected)
    }
    edits.isParked = false
    let now = clock.now.milliseconds
    // Revision 0 means that the server has no record that this device could have deleted before an insertion.
    if entry.revision > 0 { try noteInsertion(change, to: &edits, at: now, isClean: entry.edits == nil, in: pending) }
    join(&edits, to: &pending)
    // Without this check, edits in quick succession would rewrite an entry each time although only the time in the entry differs.
    if edits == entry.edits, now < edits.stamp + Self.stampTolerance { return }
    // If the device's clock was set back, the newer edit must not get an older time.
    edits.stamp = max(edits.stamp, now, edits.insertedAt ?? 0)
    entry.edits = edits
    try pending.storeUnread(entry.stored, for: key, in: records)
  }

  /// Marks the edits with a deletion, or with an insertion after a deletion unless the insertion restores the deleted value.
  ///
  /// - Parameter isClean: Whether the record had no unsent edits. If the record had no unsent edits, the deleted value is the base. No hash
  ///   of the base is stored, which saves a decode.
  private func noteInsertion(
    _ change: TriggeredChange, to edits: inout SyncEntry.Edits, at now: SyncMilliseconds, isClean: Bool, in pending: PendingState
  ) throws(RepositoryError) {
    guard let new = change.new else { return edits.deletedHash = isClean ? nil : change.old.map { hash(of: $0, change) } }
    // A record over a limit of the store exists although its bytes were not loaded. Writing such a record is an edit and no insertion.
    guard change.old == nil, let collection = pending.collection(named: change.collection),
      try !pending.hasRecord(change.key, in: collection)
    else { return }
    let deletedHash = edits.deletedHash ?? edits.base.map { hash(of: $0, change) }
    // The insertion is later than any edit that was sent, so that the time of a pushed edit shows whether the push contained the insertion.
    // An insertion of the deleted value undoes the deletion and is not marked.
    if deletedHash != hash(of: new, change) { edits.insertedAt = max(now, edits.stamp + 1) }
    edits.deletedHash = nil
  }

  /// Returns the upper 48 bits of the FNV-1a hash of a value, as the record's type encodes the value.
  ///
  /// The hash is stored as a JSON number, which holds 48 bits exactly in every language.
  private func hash(of value: StoredValue, _ change: TriggeredChange) -> Int64 {
    var form = value.json
    do throws(RepositoryError) { form = try change.coder.canonicalForm(of: value, key: change.key) } catch {}  // on failure, hash as stored
    let hash = form.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    return Int64(hash >> 16)
  }

  /// Adds the edit to the transaction group of its write.
  ///
  /// All records of a write share a group. The server accepts a group whole or not at all, unless the group is too large for one push.
  private func join(_ edits: inout SyncEntry.Edits, to pending: inout PendingState) {
    // If the first record of a write has unsent edits, the write joins the first group of these edits. Otherwise repeated edits of a record
    // would grow the record's list of groups.
    let group = pending.groupOfWrite ?? edits.groups.first ?? pending.revision.number
    if pending.groupOfWrite == nil { pending.groupOfWrite = group }
    if !edits.groups.contains(group), edits.groups.count < SyncEntry.groupLimit { edits.groups.append(group) }
  }
}

/// The trigger of a synced collection, without the generic type of its records.
protocol SyncedCollection: RecordTrigger {
  var merger: any RecordMerger { get }
  /// Returns the scope of a record that existed before its collection was synced.
  func scopeName(of value: StoredValue, key: RecordKey, coder: any TrackedCoder) throws(RepositoryError) -> String
}

extension OutboxTrigger {
  var merger: any RecordMerger { PolicyMerger(policy: policy) }

  func scopeName(of value: StoredValue, key: RecordKey, coder: any TrackedCoder) throws(RepositoryError) -> String {
    try scope.name(of: value, key: key, coder: coder)
  }
}

/// Rule for the scope of a record: one scope for all records, or a function of the record's value.
enum ScopeRule<Item: Sendable>: Sendable {
  case one(String)
  case function(@Sendable (Item) -> String)

  fileprivate func name(of value: StoredValue, _ change: TriggeredChange) throws(RepositoryError) -> String {
    try name(of: value, key: change.key, coder: change.coder)
  }

  func name(of value: StoredValue, key: RecordKey, coder: any TrackedCoder) throws(RepositoryError) -> String {
    switch self {
    case .one(let name): return name
    case .function(let function):
      let name = function(try coder.item(Item.self, of: value, key: key))
      guard ScopeName.isValid(name) else { throw ScopeName.refusal }
      return name
    }
  }
}

/// Validation of scope names.
enum ScopeName {
  /// Returns true for 1 to 256 printable ASCII characters without blanks, quotes and backslashes.
  ///
  /// An outbox entry contains the scope's name without escapes, so the name must have no character that JSON escapes.
  static func isValid(_ name: String) -> Bool {
    (1...256).contains(name.utf8.count)
      && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
  }

  static var refusal: RepositoryError {
    RepositoryError(.unsupported, "expected a scope of 1 to 256 printable ASCII characters without blanks, quotes and backslashes")
  }
}

extension Date {
  /// 2⁵³ − 1, the largest integer that JSON numbers hold exactly.
  static let latestMilliseconds: SyncMilliseconds = 9_007_199_254_740_991

  /// The date in milliseconds since 1970, limited to the range from 0 to ``latestMilliseconds``.
  var milliseconds: SyncMilliseconds { SyncMilliseconds(max(0, min(timeIntervalSince1970 * 1_000, Double(Self.latestMilliseconds)))) }
}
