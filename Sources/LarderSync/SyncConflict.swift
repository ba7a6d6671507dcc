public import Foundation
public import Larder

/// A value that lost against another one when a record was merged, kept so that the user can have it back.
///
/// It is also the note of a record that a unique index finds equal to another one. Then ``duplicateOf`` names the other one, and nothing
/// has lost.
public struct SyncConflict: Codable, Identifiable, Sendable, Hashable {
  /// The identity of the entry.
  public var id: UUID
  /// The scope of the record.
  public var scope: String
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// The members that were not taken, as JSON, by their names.
  ///
  /// The whole value has an empty name where the record was deleted. There are no members where another device undid a deletion of this
  /// one, and where ``duplicateOf`` names a record. A device cannot tell an edit that undoes a deletion from an ordinary insertion of a
  /// record with the same id: both are listed.
  public var lost: [String: String]
  /// Whether the lost value is of this device.
  public var isLocal: Bool
  /// The time of the merge, by this device's clock.
  public var date: Date
  /// The text of the key of another record with the same values in the unique index ``index``; `nil` for a value that has lost.
  ///
  /// Both records are stored, and in `OpenReport.duplicates` when the store is opened, until the app deletes or changes one.
  public var duplicateOf: String?
  /// The name of the unique index that finds the record equal to ``duplicateOf``; `nil` without that.
  public var index: String?
}

/// An edit that the server has refused, or that could not be merged.
///
/// The record keeps the edit and is not sent until it is edited again, retried or reverted; what comes after it goes on.
public struct SyncRejection: Codable, Identifiable, Sendable, Hashable {
  /// The collection and the key of the record.
  public var id: String
  /// The scope of the record; `nil` where an app before this one has noted the rejection.
  public var scope: String?
  /// The collection of the record.
  public var collection: String
  /// The text of the record's key.
  public var recordID: String
  /// The reason as a code.
  ///
  /// Codes of the device:
  /// - `mergeFailed`: the merge threw, or made a record that the type does not read or a limit of the store does not take.
  /// - `newerSchema`: a newer app has written the record.
  /// - `notOpen`: the repository of the record was not open.
  /// - `noScope`: the record has no valid scope.
  /// - `forbidden`: the scope may only be read.
  /// - `conflict`: the server has another record, and the scope may only be written; or the server says twice that the record has changed,
  ///   and sends nothing newer.
  /// - `tooLarge`: the record is over a limit of the server or of the store. One of the server is stored and cannot be read.
  /// - `upgradeRequired`: the scope takes only records of a newer version of the app. The edit goes with the first such app.
  /// - `malformed`: a record of this device or of the server breaks a bound of the wire. Of the server's record nothing was stored.
  ///
  /// Any other code is one of the server, cut after 64 bytes.
  public var code: String
  /// The reason in words, cut after 1,024 bytes and without control characters.
  public var detail: String
  /// The time of the refusal, by this device's clock.
  public var date: Date
}

extension SyncEngine {
  /// Sends a rejected edit again with the next exchange.
  ///
  /// - Throws: the errors of storage.
  public func retry(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve([rejection]) { (ledger, key, entry, pending) throws(RepositoryError) in
      entry.decideFailedMerge()
      entry.edits?.isParked = false
      try pending.keep(entry.stored, for: key, in: ledger.records)
    }
    for alarm in alarms.values { alarm.raise() }
  }

  /// Gives a rejected edit up: the record becomes what the server has.
  ///
  /// - Throws: the errors of storage.
  public func revert(_ rejection: SyncRejection) async throws(RepositoryError) {
    try await resolve([rejection]) { (ledger, key, entry, pending) throws(RepositoryError) in
      guard let address = SyncEntry.address(key), let collection = pending.collection(named: address.collection) else { return }
      let held = entry.edits?.held
      let base = held?.value ?? entry.edits?.base
      if let held { entry.revision = held.revision }
      entry.edits = nil
      try ledger.put(base, for: address.key, in: collection, of: &pending)
      try ledger.store(entry, for: key, hasRecord: base != nil, in: &pending)
    }
    refreshStatus()
  }

  /// Removes refusals, and does something with the edits of each, in one write.
  func resolve(
    _ rejections: [SyncRejection],
    _ body: @escaping @Sendable (Ledger, RecordKey, inout SyncEntry, inout PendingState) throws(RepositoryError) -> Void
  ) async throws(RepositoryError) {
    let ledger = common
    try await store.writeStored { (pending) throws(RepositoryError) in
      for rejection in rejections {
        let key = RecordKey(rejection.id)
        try pending.delete(rejection.id, in: ledger.rejected)
        guard var entry = try ledger.entry(key, in: pending), entry.edits?.isParked == true else { continue }
        try body(ledger, key, &entry, &pending)
      }
      try ledger.noteDuplicates(in: &pending)
    }
  }
}
