internal import Foundation
internal import Larder

/// A deletion of this device that the server has accepted.
///
/// It is kept for a time, so that the user learns when another device undoes it.
struct SyncDeletion: Codable, Identifiable, Sendable, Hashable {
  /// The collection and the key of the record, as of its entry.
  var id: String
  /// The scope of the record.
  var scope: String
  /// The commit of the deletion.
  var revision: Int
  /// The time at which the server's acceptance was noted, by this device's clock.
  var date: Date

  /// The most deletions that are kept, the newest ones.
  static let most = 1_000
  /// The seconds for which a deletion is kept.
  ///
  /// A record that comes back later is not reported.
  static let longest: TimeInterval = 30 * 86_400
}

extension Ledger {
  /// Notes a deletion that the server has accepted at a commit.
  func noteDeletion(_ entryKey: RecordKey, at revision: Int, in pending: inout PendingState) throws(RepositoryError) {
    try pending.save(SyncDeletion(id: entryKey.text, scope: scope, revision: revision, date: clock.now), in: deletions)
  }

  /// Forgets a deletion behind which another device has deleted the record again: what comes back then undoes that one's.
  func noteTombstone(_ remote: SyncRecord, _ entryKey: RecordKey, in pending: inout PendingState) throws(RepositoryError) {
    guard let deletion = try pending.find(by: entryKey.text, in: deletions), deletion.scope == scope else { return }
    if remote.revision > deletion.revision { try pending.delete(deletion.id, in: deletions) }
  }

  /// Reports a record in `conflicts` that comes back alive after the server has accepted its deletion by this device.
  func noteReturn(_ remote: SyncRecord, _ entryKey: RecordKey, in pending: inout PendingState) throws(RepositoryError) {
    guard let deletion = try pending.find(by: entryKey.text, in: deletions), deletion.scope == scope else { return }
    try pending.delete(deletion.id, in: deletions)
    try note(Merged(undidDeletion: true), of: RecordKey(remote.id), in: remote.collection, in: &pending)
  }
}

extension SyncEngine {
  /// Removes the oldest of the accepted deletions beyond the limit, and those that are too old.
  func forgetOldDeletions() async throws(RepositoryError) {
    let known = deletions.snapshot
    if known.count == 0 { return }
    let oldest = clock.now.addingTimeInterval(-SyncDeletion.longest)
    let newestFirst = known.loadAll().sorted { ($0.date, $0.id) > ($1.date, $1.id) }
    let old = newestFirst.enumerated().filter { $0.offset >= SyncDeletion.most || $0.element.date < oldest }.map(\.element.id)
    if old.isEmpty { return }
    try await store.writeStored { [deletions] (pending) throws(RepositoryError) in
      for id in old { try pending.delete(id, in: deletions) }
    }
  }
}
