internal import Foundation
internal import Larder

/// The names of the collections in which sync keeps what it knows.
enum SyncCollections {
  static let records = "larder.sync.records"
  static let scopes = "larder.sync.scopes"
  static let conflicts = "larder.sync.conflicts"
  static let rejected = "larder.sync.rejected"
  static let deletions = "larder.sync.deletions"
}

/// The outbox of a synced collection: notes beside each change, in the same commit, what the server does not have yet.
///
/// It is state and no log: however often a record is edited, there is one entry for it.
struct OutboxTrigger<Item: Codable & Identifiable & Sendable>: SyncedCollection {
  let scope: ScopeRule<Item>
  let policy: MergePolicy<Item>
  let clock: any WallClock

  /// The milliseconds by which the time of an edit may be too early: clocks are no better than that.
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
        // One that never had a scope may go.
        guard change.new == nil else { throw error }
        if let rejected = pending.collection(named: SyncCollections.rejected) { pending.erase(key, in: rejected) }
        return
      }
    }
    // A record that is inserted again in another scope is not the one that was deleted: it waits until that is known to the server.
    if let new = change.new, try scope.name(of: new, change) != entry.scope {
      throw RepositoryError(
        .unsupported, "expected the scope that the record is in; delete it, and insert another with a new id", keyHash: change.key.hash)
    }
    if change.new == nil, entry.revision == 0, let scopes = pending.collection(named: SyncCollections.scopes),
      !pending.hasRecord(RecordKey(entry.scope), in: scopes)
    {
      // Nothing of the scope was ever sent. It may be one that no engine syncs, and the entry would wait for ever.
      if let rejected = pending.collection(named: SyncCollections.rejected) { pending.erase(key, in: rejected) }
      return pending.erase(key, in: records)
    }
    if entry.edits?.isParked == true { entry.decideFailedMerge() }
    var edits = entry.edits ?? SyncEntry.Edits()
    if entry.edits == nil, entry.revision > 0 { edits.base = change.old }
    // Another edit than the one that was refused: it may be accepted. So may a record that had no scope before.
    if edits.isParked || (stored == nil && change.old != nil), let rejected = pending.collection(named: SyncCollections.rejected) {
      pending.erase(key, in: rejected)
    }
    edits.isParked = false
    let now = clock.now.milliseconds
    if entry.revision > 0 { noteInsertion(change, &edits, now, isClean: entry.edits == nil, in: pending) }
    join(&edits, to: &pending)
    // An entry that says this already is not written again, unless its stamp is a second old.
    if edits == entry.edits, now < edits.stamp + Self.stampTolerance { return }
    edits.stamp = max(edits.stamp, now, edits.insertedAt ?? 0)
    entry.edits = edits
    try pending.keep(entry.stored, for: key, in: records)
  }

  /// Notes a deletion, and an insertion in the place of the deleted record unless that undoes the deletion.
  ///
  /// - Parameter isClean: Whether the record had no unsent edits. Its deletion needs no hash, which costs a decode: the value is the base.
  private func noteInsertion(
    _ change: TriggeredChange, _ edits: inout SyncEntry.Edits, _ now: SyncMilliseconds, isClean: Bool, in pending: PendingState
  ) {
    guard let new = change.new else { return edits.deletedHash = isClean ? nil : change.old.map { hash(of: $0, change) } }
    // The bytes of a record over a limit are not here, and the record is.
    guard change.old == nil, pending.collection(named: change.collection).map({ pending.hasRecord(change.key, in: $0) }) == false else {
      return
    }
    // Later than any edit that was sent, so that the outcome of a push tells whether it had the insertion.
    let deletedHash = edits.deletedHash ?? edits.base.map { hash(of: $0, change) }
    if deletedHash != hash(of: new, change) { edits.insertedAt = max(now, edits.stamp + 1) }
    edits.deletedHash = nil
  }

  /// Returns a hash of a value as its type has it: 48 bits of FNV-1a, which every language's JSON holds exactly.
  private func hash(of value: StoredValue, _ change: TriggeredChange) -> Int64 {
    var form = value.json
    do throws(RepositoryError) { form = try change.coder.canonicalForm(of: value, key: change.key) } catch {}  // as it is stored, then
    let hash = form.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    return Int64(hash >> 16)
  }

  /// Puts an edit into the group of the write that it is part of.
  private func join(_ edits: inout SyncEntry.Edits, to pending: inout PendingState) {
    let group = pending.groupOfWrite ?? edits.groups.first ?? pending.revision.number
    if pending.groupOfWrite == nil { pending.groupOfWrite = group }
    if !edits.groups.contains(group), edits.groups.count < SyncEntry.groupLimit { edits.groups.append(group) }
  }
}

/// A synced collection as an engine sees it, whatever its type.
protocol SyncedCollection: RecordTrigger {
  var merger: any RecordMerger { get }
  /// Returns the scope of a value, for records that were there before they were synced.
  func scopeName(of value: StoredValue, key: RecordKey, coder: any TrackedCoder) throws(RepositoryError) -> String
}

extension OutboxTrigger {
  var merger: any RecordMerger { PolicyMerger(policy: policy) }

  func scopeName(of value: StoredValue, key: RecordKey, coder: any TrackedCoder) throws(RepositoryError) -> String {
    try scope.name(of: value, key: key, coder: coder)
  }
}

/// The rule that says in which scope a record is.
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

/// The rule for the names of scopes.
enum ScopeName {
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

  /// The milliseconds since 1970.
  var milliseconds: SyncMilliseconds { SyncMilliseconds(max(0, min(timeIntervalSince1970 * 1_000, Double(Self.latestMilliseconds)))) }
}
