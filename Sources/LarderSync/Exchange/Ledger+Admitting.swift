internal import Foundation
@_spi(Inspection) internal import Larder

/// The records that an answer of a server may be about, because the device has asked about them.
enum AnswerSubject {
  /// A page: the records of the collections that were asked for.
  case collections([String])
  /// An outcome: the records that were sent.
  case records(Set<RecordAddress>)

  fileprivate func covers(_ record: SyncRecord) -> Bool {
    switch self {
    case .collections(let names): names.contains(record.collection)
    case .records(let sent): sent.contains(RecordAddress(collection: record.collection, key: RecordKey(record.id)))
    }
  }
}

extension Ledger {
  /// Returns the records of an answer that the device has asked about and can store.
  ///
  /// Every record of a server passes here, of pages and of outcomes. A record that the device has not asked about is dropped: it could
  /// name a record of a collection that is not synced. A record out of bounds is set aside, so that it blocks no other.
  func admitted(
    _ records: [SyncRecord], about subject: AnswerSubject, pass: Int? = nil, isNewHistory: Bool = false, in pending: inout PendingState
  ) throws(RepositoryError) -> [SyncRecord] {
    var admitted: [SyncRecord] = []
    for record in records where subject.covers(record) {
      var record = record
      // A transport may leave line feeds between the tokens of a value.
      record.value = record.value.map { StoredValue(schemaVersion: 1, json: $0).onOneLine.json }
      do throws(SyncProblem) { try record.check() } catch {
        try setAsideRemote(record, error.description, subject, pass: pass, isNewHistory: isNewHistory, in: &pending)
        continue
      }
      admitted.append(record)
    }
    return admitted
  }

  /// The code of a record that the server has sent and that breaks a bound of the wire.
  static let malformed = "malformed"

  /// Sets a record of the server aside: nothing of it is stored, and the user finds it among the rejections.
  private func setAsideRemote(
    _ remote: SyncRecord, _ detail: String, _ subject: AnswerSubject, pass: Int?, isNewHistory: Bool, in pending: inout PendingState
  ) throws(RepositoryError) {
    guard let collection = pending.collection(named: remote.collection) else { return }
    var key = RecordKey(remote.id)
    do throws(SyncProblem) { try WireField.id.check(remote.id) } catch {
      // The id may be of any length: its beginning and its hash name it.
      key = RecordKey("\(WireField.code.cut(remote.id))#\(key.hash)")
    }
    let entryKey = SyncEntry.key(remote.collection, key)
    let hasRecord = pending.hasRecord(key, in: collection)
    if var entry = try entry(entryKey, in: pending) {
      guard entry.scope == scope else { return }
      // A full pass has seen the record, which is not deleted. The revision that is known of it is of the history that is gone.
      if let pass { entry.pass = pass }
      if isNewHistory { entry.revision = 0 }
      // The edits would meet the same conflict again.
      if case .records = subject { entry.edits?.isParked = true }
      try store(entry, for: entryKey, hasRecord: hasRecord, in: &pending)
    } else if hasRecord, !isInScope(key, in: collection, of: pending) {
      return
    }
    try reject(entryKey, of: key, in: remote.collection, code: Self.malformed, detail: detail, in: &pending)
  }

  /// Forgets the records of the server that were set aside and never stored: the pages from the first one on tell of those that are left.
  func forgetUnstored(in pending: inout PendingState) throws(RepositoryError) {
    for rejection in rejected.snapshot.loadAll() where rejection.scope == scope && rejection.code == Self.malformed {
      guard !pending.hasRecord(RecordKey(rejection.id), in: records) else { continue }
      try pending.delete(rejection.id, in: rejected)
    }
  }

  /// Whether a rejection is of a record over a limit of this store, and not of one that the server takes for too large.
  private func isOfLimits(_ rejection: SyncRejection) -> Bool {
    rejection.code == Self.beyondLimits && rejection.detail == WireField.detail.cut(Self.beyondLimitsDetail)
  }

  /// Forgets what was told of records over a limit of the store that can be read by now, or are gone.
  func forgetLimits(in pending: inout PendingState) throws(RepositoryError) {
    for rejection in rejected.snapshot.loadAll() where rejection.scope == scope && isOfLimits(rejection) {
      guard try entry(RecordKey(rejection.id), in: pending)?.isDirty != true,
        let collection = pending.collection(named: rejection.collection),
        !isBeyondLimits(RecordKey(rejection.recordID), in: collection, of: pending)
      else { continue }
      try pending.delete(rejection.id, in: rejected)
    }
  }

  /// Lets a record go on that was set aside, now that the server has another one.
  func readmit(_ entryKey: RecordKey, in pending: inout PendingState) throws(RepositoryError) {
    guard let rejection = try pending.find(by: entryKey.text, in: rejected) else { return }
    let found = try entry(entryKey, in: pending)
    guard rejection.code == Self.malformed || isOfLimits(rejection) && found?.isDirty != true else { return }
    guard found.map({ $0.scope == scope }) != false else { return }
    try pending.delete(entryKey.text, in: rejected)
    guard var entry = found, entry.edits?.isParked == true else { return }
    entry.edits?.isParked = false
    try pending.keep(entry.stored, for: entryKey, in: records)
  }
}
