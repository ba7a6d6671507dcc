internal import Foundation
internal import Larder
internal import LarderWire

extension ScopeCommits {
  /// Merges the server's value into a record with unsent edits, and makes that value the base of the edits.
  ///
  /// If the merge fails, the edits are parked: they stay on the device and are not sent. If the merge fails and the server has not deleted
  /// the record, the outbox entry also holds the server's value.
  func merge(
    _ entry: SyncEntry, _ entryKey: RecordKey, with remote: SyncRecord, in collection: Int, pass: Int?, of pending: inout PendingState
  ) throws(RepositoryError) {
    guard var edits = entry.edits else { return }
    let key = RecordKey(remote.id)
    let local = try pending.stored(key, in: collection)
    let isBeyondLimits = try isBeyondLimits(key, in: collection, of: pending)
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
      // The merge policy is part of the schema, and a merge without it would treat a counter as a plain member and lose increments.
      if isClosed { throw RepositoryError(.unsupported, Self.isClosedDetail, keyHash: key.hash) }
      // A record that was inserted after a deletion does not descend from the deleted base. A merge with the deleted base would subtract
      // the base's counters from the counters of the inserted record.
      let base = edits.insertedAt == nil || local == nil ? edits.base : nil
      let forms = try aligned(base, local: local, theirs: theirs, key: key, coder: tracking?.coder)
      // `aligned` returns the app's schema version if it has migrated the base, the local and the server's value to that version.
      version = forms.version ?? version
      let (baseValue, localValue) = respelled(forms.values, of: key, by: tracking?.coder)
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
        // The base and the revision of parked edits stay unchanged. An app that can read the local and the server's value pushes the edits
        // on the old base, receives a conflict, and merges base, local and held value.
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
      // After a successful merge, a server value that an earlier failed merge has held is not needed any more.
      try release(&edits, entryKey, in: &pending)
      var value = merged.value.map { StoredValue(schemaVersion: version, json: $0.json) }
      // If the merged value equals the server's, the server's own bytes are stored. An equal value in other bytes would be pushed as an
      // edit.
      if let theirs, merged.value == (try JSONValue(json: theirs.json)), theirs.schemaVersion == version { value = theirs }
      next.edits = value == theirs ? nil : edits
      // Without unsent edits, the rejection of earlier edits of the record no longer applies.
      if next.edits == nil, edits.isParked { try pending.delete(entryKey.text, in: rejected) }
      try put(value, for: key, in: collection, of: &pending)
      if next.edits == nil { try tellOfLimits(remote, entryKey, in: collection, of: &pending) }
      return try store(next, for: entryKey, hasRecord: value != nil, in: &pending)
    }
    try store(next, for: entryKey, hasRecord: pending.hasRecord(key, in: collection), in: &pending)
  }

  /// Rejection code of edits whose merge with the server's value has failed.
  static let mergeFailed = "mergeFailed"
  /// Rejection code of edits that wait for a newer app, since this app cannot read the server's value.
  static let waitsForNewerApp = "newerSchema"
  /// Rejection code of edits that wait until the app opens the repository of their collection, whose schema has the merge policy.
  static let isClosedCode = "notOpen"
  static let isClosedDetail = "expected an open repository of the collection, to merge as it says; open it before the engine"

  /// Throws if the record's type can decode the local value and cannot decode the merged value.
  ///
  /// Storing a merged value that the record's type cannot decode would make a readable record unreadable for the app.
  ///
  /// - Throws: `.decodingFailed`, or another error from reading the merged value.
  private func checkReadable(
    _ merged: StoredValue, like local: StoredValue, _ key: RecordKey, _ coder: (any TrackedCoder)?
  ) throws(RepositoryError) {
    guard let coder else { return }
    do throws(RepositoryError) { _ = try coder.canonicalForm(of: merged, key: key) } catch {
      // If the local value does not decode either, the merged value is accepted, since the app could not read the record before the merge.
      do throws(RepositoryError) { _ = try coder.canonicalForm(of: local, key: key) } catch { return }
      throw error
    }
  }

  /// Drops the server value that an entry holds beside parked edits, so that the edits are sent again, and removes their rejection.
  func release(_ edits: inout SyncEntry.Edits, _ entryKey: RecordKey, in pending: inout PendingState) throws(RepositoryError) {
    guard edits.held != nil else { return }
    edits.held = nil
    edits.isParked = false
    try pending.delete(entryKey.text, in: rejected)
  }

  /// Returns a stored value as one side of a merge, with the time and the device of its edit.
  private func side(_ value: StoredValue?, stamp: SyncMilliseconds, writer: String) throws(RepositoryError) -> MergeSide {
    MergeSide(value: try value.map { (value) throws(RepositoryError) in try JSONValue(json: value.json) }, stamp: stamp, writer: writer)
  }

  /// Returns the base and the local value with array elements in the server's order, where only the order differs.
  ///
  /// ``Spelling`` explains how equal values can differ in the order of their elements.
  private func respelled(
    _ values: [StoredValue?], of key: RecordKey, by coder: (any TrackedCoder)?
  ) -> (base: StoredValue?, local: StoredValue?) {
    var (base, local) = (values[0], values[1])
    guard let coder else { return (base, local) }
    let spelling = Spelling(key: key, coder: coder)
    if let value = base, let theirs = values[2] { base = spelling.respelled(value, like: theirs) }
    // The local value is respelled like the base and like the server's value, since the merge compares it with both.
    if let value = local, let base { local = spelling.respelled(value, like: base) }
    if let value = local, let theirs = values[2] { local = spelling.respelled(value, like: theirs) }
    return (base, local)
  }

  /// Returns the base, the local value and the server's value, migrated to the schema version of the app.
  ///
  /// The values are not migrated if no repository of the collection is open, or if one side is deleted and any value has a newer schema
  /// version than the app.
  /// - Throws: `.newerSchema` for a value that this app cannot read.
  private func aligned(
    _ base: StoredValue?, local: StoredValue?, theirs: StoredValue?, key: RecordKey, coder: (any TrackedCoder)?
  ) throws(RepositoryError) -> (values: [StoredValue?], version: Int?) {
    var values = [base, local, theirs]
    let isDeletion = local == nil || theirs == nil
    guard let newest = values.compactMap({ $0?.schemaVersion }).max() else { return (values, 1) }
    // A merge with a deletion keeps or removes the whole record, so a value of a newer schema version does not have to be read.
    guard let coder, !isDeletion || newest <= coder.schemaVersion else { return (values, nil) }
    // An app cannot edit a base that it cannot read. If the base has a newer schema version than the app, the local value is a new
    // insertion and is merged without a base.
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

/// A comparison of stored values by their type, for members that are equal although their JSON arrays differ in order.
///
/// Some encoders write a `Set<String>`, or a dictionary with keys other than strings, in another order at each launch. A merge compares
/// JSON. Without ``Spelling``, the merge would count a reordered member as changed and lose the change of the other side.
struct Spelling {
  let key: RecordKey
  let coder: any TrackedCoder

  /// Returns the value, in which a member of `other` replaces each member that differs from it only in the order of elements.
  ///
  /// Two members count as equal if the record's type encodes both to the same bytes *and* both have the same elements. The comparison of
  /// the elements covers JSON members unknown to the type, such as a member that a newer app has added to an element.
  ///
  /// The function parses both values as JSON. The record is decoded and encoded twice only if the order of a member's elements differs.
  func respelled(_ value: StoredValue, like other: StoredValue) -> StoredValue {
    // Only JSON arrays have an order that may differ, so a value without an array is returned unchanged.
    guard value.json != other.json, value.json.contains(UInt8(ascii: "[")) else { return value }
    do throws(RepositoryError) {
      let (spelled, model) = (try JSONValue(json: value.json), try JSONValue(json: other.json))
      // The JSON values are compared before the two decodes, which most merges do not need.
      guard Self.hasReordered(spelled, model) else { return value }
      let (form, modelForm) = (
        try JSONValue(json: coder.canonicalForm(of: value, key: key)), try JSONValue(json: coder.canonicalForm(of: other, key: key))
      )
      let result = Self.respelled(spelled, like: model, form, modelForm)
      return result == spelled ? value : StoredValue(schemaVersion: value.schemaVersion, json: result.json)
    } catch {
      return value  // a value that does not decode is left as it is
    }
  }

  private static func respelled(_ value: JSONValue, like model: JSONValue, _ form: JSONValue?, _ modelForm: JSONValue?) -> JSONValue {
    guard value != model else { return value }
    if var object = value.objectValue, let other = model.objectValue {
      for name in object.names {
        guard let member = object[name], let otherMember = other[name] else { continue }
        object[name] = respelled(member, like: otherMember, form?.objectValue?[name], modelForm?.objectValue?[name])
      }
      return .object(object)
    }
    // An array whose order matters, such as a list of steps, is encoded by its type in the new order, so the change remains an edit.
    guard let form, form == modelForm, sorted(value) == sorted(model) else { return value }
    return model
  }

  /// True if both values have a member with the same elements in another order.
  private static func hasReordered(_ value: JSONValue, _ model: JSONValue) -> Bool {
    guard value != model else { return false }
    if let object = value.objectValue, let other = model.objectValue {
      return object.names.contains { name in
        guard let member = object[name], let otherMember = other[name] else { return false }
        return hasReordered(member, otherMember)
      }
    }
    return value.arrayValue?.count == model.arrayValue?.count && sorted(value) == sorted(model)
  }

  /// Returns the value with every array in it sorted.
  private static func sorted(_ value: JSONValue) -> JSONValue {
    if let elements = value.arrayValue {
      return .array(elements.map { sorted($0) }.map { ($0, $0.json) }.sorted { $0.1.lexicographicallyPrecedes($1.1) }.map(\.0))
    }
    guard var object = value.objectValue else { return value }
    for name in object.names { object[name] = object[name].map { sorted($0) } }
    return .object(object)
  }
}
