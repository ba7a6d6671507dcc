public import Foundation
public import Larder

/// A value that lost in a merge, kept so that the user can restore it.
///
/// Read these records from ``SyncEngine/conflicts``, and delete a record there when it is no longer needed. A conflict also reports a
/// record that a unique index finds equal to another one. Then ``duplicateOf`` names the other record, and no value was lost.
public struct SyncConflict: Codable, Identifiable, Sendable, Hashable {
  /// Identifier of the conflict.
  public var id: UUID
  /// The scope of the record.
  public var scope: String
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// Losing members, as JSON, by their names.
  ///
  /// The whole value has an empty name if the record was deleted. There are no members if another device undid a deletion by this one, or
  /// if ``duplicateOf`` names a record. A device cannot distinguish an edit that undoes a deletion from a new record with the same id. Both
  /// are listed.
  public var lost: [String: String]
  /// Whether the lost value is of this device.
  public var isLocal: Bool
  /// Time of the merge, by this device's clock.
  public var date: Date
  /// Key, as text, of another record with the same values in the unique index ``index``, or `nil` for a lost value.
  ///
  /// Both records stay stored until the app deletes or changes one, and are in `OpenReport.duplicates` when the store is opened.
  public var duplicateOf: String?
  /// Name of the unique index that finds the record equal to ``duplicateOf``, or `nil` without one.
  public var index: String?
}

/// An edit that the server has refused, or that could not be merged.
///
/// The record keeps the edit. It is not sent until the user edits it again, or until you call ``SyncEngine/retry(_:)`` or
/// ``SyncEngine/revert(_:)``. Other edits are sent meanwhile.
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
  /// Codes of the device:
  /// - `mergeFailed`: The merge threw an error, or its result cannot be read by the type or is over a limit of the store.
  /// - `newerSchema`: A newer app has written the record.
  /// - `notOpen`: The repository of the record was not open.
  /// - `noScope`: The record has no valid scope.
  /// - `forbidden`: The scope may only be read.
  /// - `conflict`: The server has another record and the scope may only be written, or the server reports a conflict twice and sends no
  ///   newer record.
  /// - `tooLarge`: The record is over a limit of the server or of the store. If it is the server's record, it is stored and cannot be read.
  /// - `upgradeRequired`: The scope accepts only records of a newer version of the app. The first such app sends the edit.
  /// - `malformed`: A record of this device or of the server breaks a bound of the wire. The server's record was not stored.
  ///
  /// Any other code is one of the server, cut after 64 bytes.
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
      entry.decideFailedMerge()
      entry.edits?.isParked = false
      try pending.storeUnread(entry.stored, for: key, in: scopeCommits.records)
    }
    // Of all scopes: a rejection of an earlier version of the app names none.
    for alarm in alarms.values { alarm.markDue() }
  }

  /// Discards a rejected edit, so that the record becomes that of the server.
  ///
  /// - Throws: The errors of storage.
  public func revert(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve([rejection]) { (scopeCommits, key, entry, pending) throws(RepositoryError) in
      guard let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection) else { return }
      let held = entry.edits?.held
      // A held value is newer than the base, and pages do not bring it again.
      let base = held?.value ?? entry.edits?.base
      if let held { entry.revision = held.revision }
      entry.edits = nil
      try scopeCommits.put(base, for: address.key, in: collection, of: &pending)
      try scopeCommits.store(entry, for: key, hasRecord: base != nil, in: &pending)
    }
    refreshStatus()
  }

  /// Removes rejections and calls `body` with the entry of each that is still parked, in one write.
  func resolve(
    _ rejections: [SyncRejection],
    _ body: @escaping @Sendable (ScopeCommits, RecordKey, inout SyncEntry, inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) {
    let scopeCommits = common
    try await store.writeStored { (pending) throws(RepositoryError) in
      for rejection in rejections {
        let key = RecordKey(rejection.id)
        try pending.delete(rejection.id, in: scopeCommits.rejected)
        // The user may have edited the record since the rejection was read.
        guard var entry = try scopeCommits.entry(key, in: pending), entry.edits?.isParked == true else { continue }
        try body(scopeCommits, key, &entry, &pending)
      }
      try scopeCommits.noteDuplicates(in: &pending)
    }
  }
}
