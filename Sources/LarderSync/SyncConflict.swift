public import Foundation
public import Larder

/// A value that lost in a merge, kept so that the user can restore it.
///
/// Read conflicts from ``SyncEngine/conflicts``, and delete a conflict there when it is no longer needed. A conflict also reports a record
/// that a unique index finds equal to another one. In such a conflict, ``duplicateOf`` names the other record, and no value was lost.
public struct SyncConflict: Codable, Identifiable, Sendable, Hashable {
  /// Identifier of the conflict.
  public var id: UUID
  /// The scope of the record.
  public var scope: String
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// Losing values, as JSON, by the names of their members.
  ///
  /// If the record was deleted, or is no JSON object, the dictionary holds the whole lost value under an empty name. The dictionary is
  /// empty if another device undid a deletion by this device, or if ``duplicateOf`` names a record. A device cannot distinguish an edit
  /// that undoes a deletion from a new record with the same id, so both are listed as conflicts.
  public var lost: [String: String]
  /// Whether the lost value was written on this device.
  public var isLocal: Bool
  /// Time of the merge, by this device's clock.
  public var date: Date
  /// Key, as text, of another record with the same values in the unique index ``index``, or `nil` for a lost value.
  ///
  /// The two duplicate records stay stored until the app deletes or changes one. `OpenReport.duplicates` lists them when the store is
  /// opened.
  public var duplicateOf: String?
  /// Name of the unique index that finds the record equal to ``duplicateOf``, or `nil` without one.
  public var index: String?
}

/// An edit that the server has refused, or that could not be merged.
///
/// The local record keeps the edit. Most rejected edits are not sent until the user edits the record again, or until you call
/// ``SyncEngine/retry(_:)``. Call ``SyncEngine/revert(_:)`` to discard the edit. A rejected edit does not stop the edits of other records
/// from being sent.
public struct SyncRejection: Codable, Identifiable, Sendable, Hashable {
  /// Collection and key of the record.
  public var id: String
  /// Scope of the record, or `nil` if an earlier version of the app has stored the rejection.
  public var scope: String?
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// Reason as a code.
  ///
  /// The device itself sets one of these codes:
  /// - `mergeFailed`: The merge threw an error, or its result cannot be read by the type or is over a limit of the store.
  /// - `newerSchema`: A newer app has written the record.
  /// - `notOpen`: The repository of the record was not open.
  /// - `noScope`: The record has no valid scope.
  /// - `forbidden`: The token may read the scope and not write it.
  /// - `conflict`: The server has another record and the token may only write the scope, or the server reports a conflict twice and sends
  ///   no newer record.
  /// - `tooLarge`: The record is over a limit of the server or of the store. A received record over a limit of the store is stored and
  ///   cannot be read.
  /// - `refused`: The server refuses the record with a status such as 400 or 422, also when it is sent alone.
  /// - `upgradeRequired`: The scope accepts only records of a newer version of the app. The first app of such a version on this device
  ///   sends the edit.
  /// - `malformed`: A record of this device or of the server breaks a limit of the wire format. The server's record was not stored.
  ///
  /// Any other code was sent by the server, and is cut after 64 bytes.
  public var code: String
  /// Reason in words, cut after 1,024 bytes and without control characters.
  public var detail: String
  /// Time of the refusal, by this device's clock.
  public var date: Date
}

extension SyncEngine {
  /// Sends a rejected edit again with the next exchange.
  ///
  /// - Throws: The errors of storage.
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
  /// - Throws: The errors of storage.
  public func revert(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve([rejection]) { (scopeCommits, key, entry, pending) throws(RepositoryError) in
      guard let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection) else { return }
      let held = entry.edits?.held
      // If the outbox entry holds a received value of the server, the record becomes that value, since it is newer than the base and later
      // pages do not bring it again.
      let base = held?.value ?? entry.edits?.base
      if let held { entry.revision = held.revision }
      entry.edits = nil
      try scopeCommits.put(base, for: address.key, in: collection, of: &pending)
      try scopeCommits.store(entry, for: key, hasRecord: base != nil, in: &pending)
    }
    refreshStatus()
  }

  /// Removes rejections in one write, and calls `body` with the outbox entry of each record with parked (set aside) edits.
  func resolve(
    _ rejections: [SyncRejection],
    _ body: @escaping @Sendable (ScopeCommits, RecordKey, inout SyncEntry, inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) {
    let scopeCommits = common
    try await store.writeStored { (pending) throws(RepositoryError) in
      for rejection in rejections {
        let key = RecordKey(rejection.id)
        try pending.delete(rejection.id, in: scopeCommits.rejected)
        // The user may have edited the record since the rejection was read, and an edit unparks the entry.
        guard var entry = try scopeCommits.entry(key, in: pending), entry.edits?.isParked == true else { continue }
        try body(scopeCommits, key, &entry, &pending)
      }
      try scopeCommits.noteDuplicates(in: &pending)
    }
  }
}
