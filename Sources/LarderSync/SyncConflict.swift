public import Foundation
public import Larder

/// A value that lost in a merge, kept so that the user can restore it.
///
/// Read conflicts from ``SyncEngine/conflicts``, and delete a conflict there when it is no longer needed. A conflict can also report that
/// two records have the same values in a unique index. In a conflict about a unique index, ``duplicateOf`` names the second record, and no
/// value was lost.
public struct SyncConflict: Codable, Identifiable, Sendable, Hashable {
  /// Identifier of the conflict.
  public var id: UUID
  /// The scope of the record.
  public var scope: String
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// Values that lost in the merge, as JSON, by the names of the record's members.
  ///
  /// If the record was deleted, or is no JSON object, `lost` holds the whole lost value under an empty name. `lost` is empty if another
  /// device undid a deletion by this device, or if ``duplicateOf`` names a record. A device cannot distinguish an edit that undoes a
  /// deletion from a new record with the same id, so both are listed as conflicts.
  public var lost: [String: String]
  /// Whether this device wrote the lost value, or made the deletion that another device undid.
  public var isLocal: Bool
  /// Time of the merge, by this device's clock.
  public var date: Date
  /// Key, as text, of another record with the same values in the unique index ``index``, or `nil` in all other conflicts.
  ///
  /// The two duplicate records stay stored until the app deletes or changes one. `OpenReport.duplicates` lists duplicate records when the
  /// store is opened.
  public var duplicateOf: String?
  /// Name of the unique index in which the record and ``duplicateOf`` have the same values, or `nil` if ``duplicateOf`` is `nil`.
  public var index: String?
}

/// An edit that the server has refused, or that could not be merged.
///
/// The local record keeps the edit. Most rejected edits are not sent until the user edits the record again, or until you call
/// ``SyncEngine/retry(_:)``. Call ``SyncEngine/revert(_:)`` to discard the edit. A rejected edit does not stop the edits of other records
/// from being sent.
public struct SyncRejection: Codable, Identifiable, Sendable, Hashable {
  /// Identifier of the rejection, which contains the collection and the key of the record.
  public var id: String
  /// Scope of the record, or `nil` if an earlier version of the app has stored the rejection.
  public var scope: String?
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// Reason of the rejection, as a code.
  ///
  /// The device itself sets one of these codes:
  /// - `mergeFailed`: The merge threw an error, the app's type cannot decode the merged value, or the merged value is over a limit of the
  ///   store.
  /// - `newerSchema`: A newer app has written the server's value of the record, and this app cannot read it.
  /// - `notOpen`: The repository of the record's collection was not open, so its merge policy was missing.
  /// - `noScope`: The record has no valid scope.
  /// - `forbidden`: The device's bearer token may read the scope and not write it.
  /// - `conflict`: The server has another record with this id and the token may not read the scope, or the server reports a conflict twice
  ///   and sends no newer record.
  /// - `tooLarge`: The record is over a limit of the server or of the store. A received record over a limit of the store is stored and
  ///   cannot be read.
  /// - `refused`: The server refuses the record with an HTTP status such as 400 or 422, even if the record is sent alone.
  /// - `upgradeRequired`: The scope accepts only records of a newer version of the app. The device sends the edit again after an update of
  ///   the app changes the app's schema versions.
  /// - `malformed`: A record of this device or of the server breaks a limit of the wire format. A record of the server that breaks a limit
  ///   is not stored.
  ///
  /// Any other code was sent by the server, and is cut after 64 bytes.
  public var code: String
  /// Reason of the rejection in words, cut after 1,024 bytes and without control characters.
  public var detail: String
  /// Time of the rejection, by this device's clock.
  public var date: Date
}

extension SyncEngine {
  /// Sends a rejected edit again with the next exchange.
  ///
  /// - Throws: The errors of reading and writing the store.
  public func retry(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve([rejection]) { (scopeCommits, key, entry, pending) throws(RepositoryError) in
      // A retry after a failed merge decides for the local value, since the same merge would fail again.
      entry.decideFailedMerge()
      entry.edits?.isParked = false
      try pending.storeUnread(entry.stored, for: key, in: scopeCommits.records)
    }
    // An exchange of every scope becomes due, since a rejection that an earlier version of the app has stored names no scope.
    for alarm in alarms.values { alarm.markDue() }
  }

  /// Discards a rejected edit, so that the record has the server's value again.
  ///
  /// - Throws: The errors of reading and writing the store.
  public func revert(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve([rejection]) { (scopeCommits, key, entry, pending) throws(RepositoryError) in
      guard let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection) else { return }
      let held = entry.edits?.held
      // If the outbox entry holds a received value of the server, the record becomes that value. The received value is newer than the base,
      // the server's value before the edit, and later pages of changes do not contain it.
      let base = held?.value ?? entry.edits?.base
      if let held { entry.revision = held.revision }
      entry.edits = nil
      try scopeCommits.put(base, for: address.key, in: collection, of: &pending)
      try scopeCommits.store(entry, for: key, hasRecord: base != nil, in: &pending)
    }
    refreshStatus()
  }

  /// Removes rejections in one write, and calls `body` with the outbox entry of each record whose edits are still parked (not sent).
  func resolve(
    _ rejections: [SyncRejection],
    _ body: @escaping @Sendable (ScopeCommits, RecordKey, inout SyncEntry, inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) {
    let scopeCommits = common
    try await store.writeStored { (pending) throws(RepositoryError) in
      for rejection in rejections {
        let key = RecordKey(rejection.id)
        try pending.delete(rejection.id, in: scopeCommits.rejected)
        // If the user has edited the record since the rejection was read, the edits are not parked any more, and `body` is not called.
        guard var entry = try scopeCommits.entry(key, in: pending), entry.edits?.isParked == true else { continue }
        try body(scopeCommits, key, &entry, &pending)
      }
      try scopeCommits.noteDuplicates(in: &pending)
    }
  }
}
