internal import Foundation
internal import Larder
internal import LarderWire

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
    let newestFirst = known.loadAll().sorted { ($0.date, $0.id) > ($1.date, $1.id) }
    let old = newestFirst.enumerated().filter { $0.offset >= SyncDeletion.most || $0.element.date < oldest }.map(\.element.id)
    // Without this return, a write without changes would still wait in the queue of commits.
    if old.isEmpty { return }
    try await store.writeStored { [deletions] (pending) throws(RepositoryError) in
      for id in old { try pending.delete(id, in: deletions) }
    }
  }
}
