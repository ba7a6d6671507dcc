// Outbox/ records which edits the server lacks, one entry a record, in the commit of the edit, and the sync state of each scope.
// Invariant: a record with unsent edits has their base: the server's revision and value that they were made to.
// Called by the engine of Larder, through the trigger, and Exchange.

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

  /// Milliseconds by which the stored time of an edit may be too early.
  ///
  /// An edit within this time of the previous one does not rewrite the entry. Clocks of devices differ by more.
  static var stampTolerance: SyncMilliseconds { 1_000 }

  var collections: [String] { [SyncCollections.records, SyncCollections.scopes] }

  func willChange(_ change: TriggeredChange, in pending: inout PendingState) throws(RepositoryError) {
    guard let records = pending.collection(named: SyncCollections.records) else { return }
    let key = SyncEntry.key(change.collection, change.key)
    let stored = pending.stored(key, in: records)
    var entry: SyncEntry
    if let stored {
      entry = try SyncEntry(stored)
    } else {
      guard let value = change.new ?? change.old else { return }
      do throws(RepositoryError) { entry = SyncEntry(scope: try scope.name(of: value, change)) } catch {
        // A record that never had a valid scope may be deleted. Any other write of it is refused.
        guard change.new == nil else { throw error }
        if let rejected = pending.collection(named: SyncCollections.rejected) { pending.deleteStored(key, in: rejected) }
        return
      }
    }
    // Two scopes have no common order, so that another device could not distinguish a move from two records with one id. The entry of a
    // deleted record keeps its scope until the server has accepted the deletion. An insertion into another scope is refused until then,
    // too.
    if let new = change.new, try scope.name(of: new, change) != entry.scope {
      throw RepositoryError(
        .unsupported, "expected the scope that the record is in; delete it, and insert another with a new id", keyHash: change.key.hash)
    }
    if change.new == nil, entry.revision == 0, let scopes = pending.collection(named: SyncCollections.scopes),
      !pending.hasRecord(RecordKey(entry.scope), in: scopes)
    {
      // Nothing of the scope was ever sent. No engine may ever sync it, and the entry would be kept for ever.
      if let rejected = pending.collection(named: SyncCollections.rejected) { pending.deleteStored(key, in: rejected) }
      return pending.deleteStored(key, in: records)
    }
    // The user has edited the record after a failed merge, and has thereby decided for the local value.
    if entry.edits?.isParked == true { entry.decideFailedMerge() }
    var edits = entry.edits ?? SyncEntry.Edits()
    // Before the first unsent edit, the stored value is that of the server: the base of a later merge.
    if entry.edits == nil, entry.revision > 0 { edits.base = change.old }
    // This is another edit than the refused one, and the server may accept it. A record that had no scope may have one now.
    if edits.isParked || (stored == nil && change.old != nil), let rejected = pending.collection(named: SyncCollections.rejected) {
      pending.deleteStored(key, in: rejected)
    }
    edits.isParked = false
    let now = clock.now.milliseconds
    // With revision 0 the server has no record that was deleted.
    if entry.revision > 0 { noteInsertion(change, &edits, now, isClean: entry.edits == nil, in: pending) }
    join(&edits, to: &pending)
    // Edits in quick succession would rewrite an equal entry each time.
    if edits == entry.edits, now < edits.stamp + Self.stampTolerance { return }
    // A clock that was set back must not make the newer edit look older.
    edits.stamp = max(edits.stamp, now, edits.insertedAt ?? 0)
    entry.edits = edits
    try pending.storeUnread(entry.stored, for: key, in: records)
  }

  /// Records a deletion, or an insertion after a deletion unless it restores the deleted value.
  ///
  /// - Parameter isClean: Whether the record had no unsent edits. Its value is then the base, and the hash, which costs a decode, is not
  ///   needed.
  private func noteInsertion(
    _ change: TriggeredChange, _ edits: inout SyncEntry.Edits, _ now: SyncMilliseconds, isClean: Bool, in pending: PendingState
  ) {
    guard let new = change.new else { return edits.deletedHash = isClean ? nil : change.old.map { hash(of: $0, change) } }
    // A record over a limit of the store exists although its bytes were not loaded. Writing it is an edit and no insertion.
    guard change.old == nil, pending.collection(named: change.collection).map({ pending.hasRecord(change.key, in: $0) }) == false else {
      return
    }
    let deletedHash = edits.deletedHash ?? edits.base.map { hash(of: $0, change) }
    // Later than any edit that was sent, so that the outcome of a push shows whether it contained the insertion. The deleted value itself
    // undoes the deletion and is no insertion.
    if deletedHash != hash(of: new, change) { edits.insertedAt = max(now, edits.stamp + 1) }
    edits.deletedHash = nil
  }

  /// Returns the upper 48 bits of the FNV-1a hash of a value, in the form that its type encodes.
  ///
  /// JSON numbers hold 48 bits exactly in every language.
  private func hash(of value: StoredValue, _ change: TriggeredChange) -> Int64 {
    var form = value.json
    do throws(RepositoryError) { form = try change.coder.canonicalForm(of: value, key: change.key) } catch {}  // else as it is stored
    let hash = form.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    return Int64(hash >> 16)
  }

  /// Adds the edit to the group of its write.
  ///
  /// All records of a write share a group, and the server accepts a group whole or not at all.
  private func join(_ edits: inout SyncEntry.Edits, to pending: inout PendingState) {
    // An edit of a record that is unsent already stays in its first group, so that repeated edits do not grow the list.
    let group = pending.groupOfWrite ?? edits.groups.first ?? pending.revision.number
    if pending.groupOfWrite == nil { pending.groupOfWrite = group }
    if !edits.groups.contains(group), edits.groups.count < SyncEntry.groupLimit { edits.groups.append(group) }
  }
}

/// A synced collection without its generic type.
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

/// Rule for the scope of a record: one for all, or a function of the value.
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
  /// Entries are written without escaping the name, and read without unescaping it.
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

  /// Milliseconds since 1970, from 0 to ``latestMilliseconds``.
  var milliseconds: SyncMilliseconds { SyncMilliseconds(max(0, min(timeIntervalSince1970 * 1_000, Double(Self.latestMilliseconds)))) }
}
