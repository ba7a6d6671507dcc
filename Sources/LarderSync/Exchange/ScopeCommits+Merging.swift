internal import Foundation
internal import Larder
internal import LarderWire

extension ScopeCommits {
  /// Merges a record with unsent edits with the server's value, and rebases the edits onto that.
  ///
  /// If the merge fails, the edits are parked: they stay on the device and are not sent. The server's value is held beside them.
  func merge(
    _ entry: SyncEntry, _ entryKey: RecordKey, with remote: SyncRecord, in collection: Int, pass: Int?, of pending: inout PendingState
  ) throws(RepositoryError) {
    guard var edits = entry.edits else { return }
    let key = RecordKey(remote.id)
    let (local, isBeyondLimits) = (pending.stored(key, in: collection), isBeyondLimits(key, in: collection, of: pending))
    let theirs = remote.value.map { StoredValue(schemaVersion: remote.version, json: $0) }
    var next = entry
    next.revision = theirs == nil ? 0 : remote.revision
    if let pass { next.pass = pass }
    let tracking = pending.tracking(of: collection)
    let policy = (tracking?.trigger as? any SyncedCollection)?.merger
    let isClosed = policy == nil && local != nil && theirs != nil
    let outcome: Result<Merged, any Error>
    var version = local?.schemaVersion ?? remote.version
    do {
      if isBeyondLimits { throw RepositoryError(.tooLarge, Self.beyondLimitsDetail, keyHash: key.hash) }
      // Without the schema, the counters and the deletion rule are missing.
      if isClosed { throw RepositoryError(.unsupported, Self.isClosedDetail, keyHash: key.hash) }
      // A record inserted after a deletion does not descend from the deleted base. With it, counters would be subtracted wrongly.
      let base = edits.insertedAt == nil || local == nil ? edits.base : nil
      let forms = try aligned(base, local: local, theirs: theirs, key: key, coder: tracking?.coder)
      // After alignment, all values have the version of the app.
      version = forms.version ?? version
      let (baseValue, localValue) = respelled(forms.values, key, tracking?.coder)
      let merged = try (policy ?? PlainMerger()).merge(
        key: key, base: baseValue, local: side(localValue, stamp: corrected(edits.stamp), writer: ""),
        remote: side(forms.values[2], stamp: remote.stamp, writer: remote.writer), coder: tracking?.coder)
      if let local = forms.values[1], let value = merged.value {
        let found = StoredValue(schemaVersion: version, json: value.json)
        // A merged value over a limit of the store could not be read after the next opening.
        if let error = pending.limitViolation(of: found, key: key) { throw error }
        try checkReadable(found, like: local, key, tracking?.coder)
      }
      outcome = .success(merged)
    } catch {
      outcome = .failure(error)
    }
    switch outcome {
    case .failure(let error):
      edits.isParked = true
      let isNewer = (error as? RepositoryError)?.code == .newerSchema
      if let theirs {
        // Base and revision stay unchanged. An app that can read both values sends the edits again, is refused, and merges all three.
        next.revision = entry.revision
        edits.held = SyncEntry.Held(
          revision: remote.revision, value: theirs, hasFailedMerge: !isNewer && !isBeyondLimits && !isClosed)
      } else {
        // The server has deleted the record, so there is no value to hold, and the edit becomes an insertion.
        (edits.base, edits.held) = (nil, nil)
      }
      let (code, detail) =
        if theirs != nil, isNewer {
          (Self.waitsForNewerApp, "a newer version of the app has changed the record")
        } else if theirs != nil, isBeyondLimits {
          (Self.beyondLimits, Self.beyondLimitsDetail)
        } else if isClosed {
          (Self.isClosedCode, Self.isClosedDetail)
        } else {
          (Self.mergeFailed, "the merge of the record has failed")
        }
      try reject(entryKey, of: key, in: remote.collection, code: code, detail: detail, in: &pending)
      next.edits = edits
    case .success(let merged):
      try note(merged, of: key, in: remote.collection, in: &pending)
      (edits.base, edits.insertedAt) = (theirs, nil)
      // The merge has used the held value, if there was one.
      try release(&edits, entryKey, in: &pending)
      var value = merged.value.map { StoredValue(schemaVersion: version, json: $0.json) }
      // The server's own bytes: a respelled copy of an equal value would be pushed as an edit.
      if let theirs, merged.value == (try JSONValue(json: theirs.json)), theirs.schemaVersion == version { value = theirs }
      next.edits = value == theirs ? nil : edits
      // Without edits there is nothing left that the server has refused.
      if next.edits == nil, edits.isParked { try pending.delete(entryKey.text, in: rejected) }
      try put(value, for: key, in: collection, of: &pending)
      if next.edits == nil { try tellOfLimits(remote, entryKey, in: collection, of: &pending) }
      return try store(next, for: entryKey, hasRecord: value != nil, in: &pending)
    }
    try store(next, for: entryKey, hasRecord: pending.hasRecord(key, in: collection), in: &pending)
  }

  /// Code of edits whose merge has failed.
  static let mergeFailed = "mergeFailed"
  /// Code of edits that only a newer app can merge.
  static let waitsForNewerApp = "newerSchema"
  /// Code of edits that wait until the repository of their collection is open, with its merge policy.
  static let isClosedCode = "notOpen"
  static let isClosedDetail = "expected an open repository of the collection, to merge as it says; open it before the engine"

  /// Throws if the type can decode the local value and not the merged one, which would take the record away from the app.
  ///
  /// - Throws: `.decodingFailed`, or another error of reading the merged value.
  private func checkReadable(
    _ merged: StoredValue, like local: StoredValue, _ key: RecordKey, _ coder: (any TrackedCoder)?
  ) throws(RepositoryError) {
    guard let coder else { return }
    do throws(RepositoryError) { _ = try coder.canonicalForm(of: merged, key: key) } catch {
      // A local value that does not decode either loses nothing by the merge.
      do throws(RepositoryError) { _ = try coder.canonicalForm(of: local, key: key) } catch { return }
      throw error
    }
  }

  /// Releases edits that waited with a held value, and removes their rejection.
  func release(_ edits: inout SyncEntry.Edits, _ entryKey: RecordKey, in pending: inout PendingState) throws(RepositoryError) {
    guard edits.held != nil else { return }
    edits.held = nil
    edits.isParked = false
    try pending.delete(entryKey.text, in: rejected)
  }

  /// Returns one side of a merge.
  private func side(_ value: StoredValue?, stamp: SyncMilliseconds, writer: String) throws(RepositoryError) -> MergeSide {
    MergeSide(value: try value.map { (value) throws(RepositoryError) in try JSONValue(json: value.json) }, stamp: stamp, writer: writer)
  }

  /// Returns base and local value with members reordered as the server has them.
  ///
  /// See ``Spelling``.
  private func respelled(
    _ values: [StoredValue?], _ key: RecordKey, _ coder: (any TrackedCoder)?
  ) -> (base: StoredValue?, local: StoredValue?) {
    var (base, local) = (values[0], values[1])
    guard let coder else { return (base, local) }
    let spelling = Spelling(key: key, coder: coder)
    if let value = base, let theirs = values[2] { base = spelling.respelled(value, like: theirs) }
    // The local value is compared with both, since a merge finds an edit by either difference.
    if let value = local, let base { local = spelling.respelled(value, like: base) }
    if let value = local, let theirs = values[2] { local = spelling.respelled(value, like: theirs) }
    return (base, local)
  }

  /// Returns the values migrated to the version of the app.
  ///
  /// They stay as they are if no repository is open, or if one side is deleted and the other is newer than the app.
  /// - Throws: `.newerSchema` for a value that this app cannot read.
  private func aligned(
    _ base: StoredValue?, local: StoredValue?, theirs: StoredValue?, key: RecordKey, coder: (any TrackedCoder)?
  ) throws(RepositoryError) -> (values: [StoredValue?], version: Int?) {
    var values = [base, local, theirs]
    let isDeletion = local == nil || theirs == nil
    guard let newest = values.compactMap({ $0?.schemaVersion }).max() else { return (values, 1) }
    // A deletion keeps or removes the whole record, so that nothing has to be read.
    guard let coder, !isDeletion || newest <= coder.schemaVersion else { return (values, nil) }
    // An app cannot have edited a base that it cannot read. The local value was inserted anew, and is merged without a base.
    if !isDeletion, let base, base.schemaVersion > coder.schemaVersion { values[0] = nil }
    var current: [StoredValue?] = []
    for value in values {
      guard let value else {
        current.append(nil)
        continue
      }
      current.append(try coder.broughtUp(value, key: key))
    }
    return (current, coder.schemaVersion)
  }
}
