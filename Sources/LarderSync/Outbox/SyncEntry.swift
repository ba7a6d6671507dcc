internal import Foundation
internal import Larder
internal import LarderWire

/// The outbox entry of a synced record: the server's revision and, while there are unsent edits, their base.
///
/// The base is the server's value to which the edits were made. A three-way merge needs the base.
struct SyncEntry: Sendable, Hashable {
  /// Scope of the record.
  var scope: String
  /// Server's revision of the base or, without unsent edits, of the record itself.
  ///
  /// The revision is 0 if the server has no such record.
  var revision = 0
  /// Edits that the server has not accepted, or `nil` for none.
  var edits: Edits?
  /// Number of the last full pass, a reading of the whole scope, that has found the record.
  var pass = 0

  /// Edits of one record that the server has not accepted.
  struct Edits: Sendable, Hashable {
    /// Server's value to which the edits were made, or `nil` if the server has no such record.
    var base: StoredValue?
    /// Numbers of the transaction groups that the edits belong to.
    ///
    /// Records that share a group are sent in one push, and the server accepts all or none of them, unless the group is too large for one
    /// push or some of its edits are parked.
    var groups: [UInt64] = []
    /// Time of the last edit, in milliseconds since 1970.
    var stamp: SyncMilliseconds = 0
    /// Time, in milliseconds since 1970, of an insertion after a deletion on this device, or `nil` for none.
    ///
    /// The inserted record replaces the deleted one and did not develop from ``base``, so it is merged without a base.
    var insertedAt: SyncMilliseconds?
    /// Hash of the value that this device has deleted, or `nil` if that value was ``base``.
    ///
    /// An insertion of the deleted value undoes the deletion.
    var deletedHash: Int64?
    /// True if the edits are parked, such as after a refusal by the server or a failed merge.
    ///
    /// Parked edits are not sent until, for example, another edit of the record or a retry releases them.
    var isParked = false
    /// Server's value that could not be merged with the edits yet.
    ///
    /// While `held` has a value, the base and the revision stay unchanged, so that a later merge has all three values: the base, the local
    /// value and the server's value.
    var held: Held?
  }

  /// Rebases edits whose merge has failed onto the server's value, so that the local value wins.
  ///
  /// `decideFailedMerge()` is called when the user edits or retries the record, because such an action is a decision for the local value.
  mutating func decideFailedMerge() {
    guard let held = edits?.held, held.hasFailedMerge else { return }
    revision = held.revision
    edits?.base = held.value
    edits?.held = nil
  }

  /// A value of the server that could not be merged with local edits.
  struct Held: Sendable, Hashable {
    var revision: Int
    var value: StoredValue
    /// True if the merge has failed and would fail again.
    ///
    /// `hasFailedMerge` is false if the merge can succeed later, with a newer app, higher limits or an open repository.
    var hasFailedMerge = false
  }

  /// Largest number of transaction groups of one entry.
  ///
  /// If a record with 64 groups is edited in a further transaction, its entry gets no further group. The other records of that transaction
  /// may then be pushed without this record.
  static let groupLimit = 64

  var isDirty: Bool { edits != nil }

  /// Returns the key of a record's outbox entry: `collection/id`.
  static func key(_ collection: String, _ id: RecordKey) -> RecordKey {
    let id = id.text
    // A key is built with each save of a synced record, and appending to reserved memory is faster than interpolation.
    var text = ""
    text.reserveCapacity(collection.utf8.count + 1 + id.utf8.count)
    text += collection
    text += "/"
    text += id
    return RecordKey(text)
  }

  /// Returns the collection and the record key that an entry's key consists of, or `nil` if the entry's key has no slash.
  static func address(_ key: RecordKey) -> RecordAddress? {
    let text = key.text
    // The slash is searched as a byte, since an id that begins with a combining mark forms one character with the slash before it.
    guard let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    return RecordAddress(collection: String(text[..<slash]), key: RecordKey(String(text[text.utf8.index(after: slash)...])))
  }
}

/// A deletion by this device that the server has accepted.
///
/// The deletion is kept for up to 30 days, so that the user learns if another device undoes it.
struct SyncDeletion: Codable, Identifiable, Sendable, Hashable {
  /// Collection and key of the record, in the form of an outbox entry's key.
  var id: String
  /// Scope of the deleted record.
  var scope: String
  /// Commit of the deletion at the server.
  var revision: Int
  /// Time at which the device has received the acceptance, by this device's clock.
  var date: Date

  /// Largest number of deletions that are kept.
  ///
  /// The oldest deletions over this limit are removed.
  static let most = 1_000
  /// Seconds for which a deletion is kept: 30 days.
  ///
  /// If another device brings the record back after this time, the return is not reported.
  static let longest: TimeInterval = 30 * 86_400
}

extension ScopeCommits {
  /// Stores a deletion that the server has accepted at a commit.
  func noteDeletion(_ entryKey: RecordKey, at revision: Int, in pending: inout PendingState) throws(RepositoryError) {
    try pending.save(SyncDeletion(id: entryKey.text, scope: scope, revision: revision, date: clock.now), in: deletions)
  }

  /// Removes the stored deletion of a record if another device has deleted the record again later.
  ///
  /// If a record comes back after both deletions, the other device's deletion was undone, and not this device's deletion.
  func noteTombstone(_ remote: SyncRecord, _ entryKey: RecordKey, in pending: inout PendingState) throws(RepositoryError) {
    guard let deletion = try pending.find(by: entryKey.text, in: deletions), deletion.scope == scope else { return }
    if remote.revision > deletion.revision { try pending.delete(deletion.id, in: deletions) }
  }

  /// Reports in `conflicts` that a record has come back after the server had accepted its deletion by this device.
  func noteReturn(_ remote: SyncRecord, _ entryKey: RecordKey, in pending: inout PendingState) throws(RepositoryError) {
    guard let deletion = try pending.find(by: entryKey.text, in: deletions), deletion.scope == scope else { return }
    // The return is reported once, so the deletion is not kept. A later edit of the record by another device does not undo the deletion
    // again.
    try pending.delete(deletion.id, in: deletions)
    try note(Merged(undidDeletion: true), of: RecordKey(remote.id), in: remote.collection, in: &pending)
  }
}

extension SyncEngine {
  /// Removes stored deletions that are older than `SyncDeletion.longest`, and the oldest deletions over `SyncDeletion.most`.
  func forgetOldDeletions() async throws(RepositoryError) {
    let known = deletions.snapshot
    // Each exchange calls this function, and most devices have no stored deletions.
    if known.count == 0 { return }
    let oldest = clock.now.addingTimeInterval(-SyncDeletion.longest)
    let newestFirst = try known.loadAll(strict: false).sorted { ($0.date, $0.id) > ($1.date, $1.id) }
    let old = newestFirst.enumerated().filter { $0.offset >= SyncDeletion.most || $0.element.date < oldest }.map(\.element.id)
    // Without this return, a write without changes would still wait in the queue of commits.
    if old.isEmpty { return }
    try await store.writeStored { [deletions] (pending) throws(RepositoryError) in
      for id in old { try pending.delete(id, in: deletions) }
    }
  }
}
