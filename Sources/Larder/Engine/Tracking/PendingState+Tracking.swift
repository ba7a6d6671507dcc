internal import Foundation

/// Reads and writes of stored values within a write, for triggers and for the product that sets them.
extension PendingState {
  /// Returns the position of a collection, or `nil` if it does not exist.
  package func collection(named name: String) -> Int? { names.firstIndex(of: name) }

  /// Returns the stored value of a record, or `nil` if there is none or its bytes are not in memory.
  package func stored(_ key: RecordKey, in collection: Int) -> StoredValue? {
    collections[collection].records[key]?.stored(triggers[collection]?.coder.schemaVersion)
  }

  /// Returns whether a record exists, even if its bytes are not in memory.
  package func hasRecord(_ key: RecordKey, in collection: Int) -> Bool { collections[collection].records[key] != nil }

  /// Returns the trigger and the coder of a collection, or `nil` if it is not tracked (has no trigger).
  package func tracking(of collection: Int) -> (trigger: any RecordTrigger, coder: any TrackedCoder)? {
    triggers[collection].map { ($0.trigger, $0.coder) }
  }

  /// Visits the stored values of a collection in the order of their keys.
  package func visit(_ collection: Int, _ body: (RecordKey, StoredValue) throws(RepositoryError) -> Void) throws(RepositoryError) {
    for slot in collections[collection].records.ordered() {
      // The bytes of a record over a limit are not in memory, so it has nothing to visit.
      if let stored = slot.stored(triggers[collection]?.coder.schemaVersion) { try body(slot.key, stored) }
    }
  }

  /// Stores a value of another device without checks of versions and unique indexes, because it must arrive.
  ///
  /// A value over the store's limits is stored and cannot be read, as after the next opening. If it could be read and edited until then,
  /// that opening would lose the edit.
  /// - Throws: `.unsupported`, `.encodingFailed` for a value that a backend could not read back.
  package mutating func store(_ value: StoredValue, for key: RecordKey, in collection: Int) throws(RepositoryError) {
    let record = StoredRecord(
      collection: names[collection], key: key, revision: revision, schemaVersion: value.schemaVersion, value: value.json)
    // The same function as at opening, so that this record is refused now if the next opening will refuse it.
    try upsert(StoreLoader.slot(of: record, value.json, core.options.limits).0, as: value, in: collection)
  }

  /// Returns the error for a value that is over a limit of the store, or `nil`.
  ///
  /// A record with such a value could not be read after the next opening.
  package func limitViolation(of value: StoredValue, key: RecordKey) -> RepositoryError? {
    value.json.withUnsafeBytes { RecordLimit.violation(of: core.options.limits, key: key, value: $0) }
  }

  /// Stores a value of a collection that no repository reads.
  ///
  /// The record is marked as decoded. Tracking it as undecoded would take as long as storing it.
  ///
  /// - Throws: as ``store(_:for:in:)``.
  package mutating func storeUnread(_ value: StoredValue, for key: RecordKey, in collection: Int) throws(RepositoryError) {
    let slot = RecordSlot(
      key: key, revision: revision, schemaVersion: value.schemaVersion, value: value.json, decoded: UntypedValue.shared, keepsEncoded: true)
    try upsert(slot, as: value, in: collection)
  }

  /// Returns the pairs of records with equal values in a unique index that the present write has caused.
  ///
  /// Each pair is listed once, in the order of collections and keys.
  /// Cost: none if no written value met an equal one.
  package func newDuplicates() -> [StoredDuplicate] {
    // Nearly every write ends here, without a look at its changes.
    guard isContested else { return [] }
    var found: [StoredDuplicate] = []
    for (collection, new, old) in uniqueChanges(in: changes[endedCount...]) {
      guard let (index, other) = collections[collection].indexes.newDuplicate(of: new, replacing: old) else { continue }
      found.append(StoredDuplicate(collection: names[collection], index: index, key: new.key, other: other))
    }
    // If a write has stored both records of a pair, each is found from the other.
    var pairs: Set<Set<RecordAddress>> = []
    return found.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }.filter { duplicate in
      pairs.insert(Set([duplicate.key, duplicate.other].map { RecordAddress(collection: duplicate.collection, key: $0) })).inserted
    }
  }

  /// Returns a record that now has the same values as another one in a unique index.
  ///
  /// - Parameter other: The record to return if several have them.
  package func duplicate(
    of key: RecordKey, preferring other: RecordKey, in collection: String, index: String
  ) -> KnownDuplicate {
    guard let position = self.collection(named: collection) else { return .unknown }
    guard let slot = collections[position].records[key] else { return .none }
    return collections[position].indexes.duplicate(of: slot, preferring: other, index: index)
  }

  /// Deletes a record, leaving a tombstone.
  ///
  /// Does nothing if there is none.
  package mutating func deleteStored(_ key: RecordKey, in collection: Int) {
    remove(key, in: collection, schemaVersion: 1)
  }
}

/// Two records with the same values in a unique index.
package struct StoredDuplicate: Sendable, Hashable {
  /// Name of the collection of both records.
  package let collection: String
  /// Name of the unique index.
  package let index: String
  /// Key of the record that was written.
  package let key: RecordKey
  /// Key of the other record with the same values.
  package let other: RecordKey
}

/// A placeholder for the decoded value of a record that is only used as stored bytes.
private final class UntypedValue: Sendable {
  static let shared = UntypedValue()
}

extension RecordSlot {
  /// Returns the stored value of a record, or `nil` if only the backend has its bytes, as for a record over a limit.
  ///
  /// - Parameter newest: Schema version to which values of the collection are migrated.
  func stored(_ newest: Int?) -> StoredValue? {
    // A slot keeps the version of the stored record, also after its bytes were migrated in memory.
    encoded.map { StoredValue(schemaVersion: $0.isBroughtUp ? newest ?? schemaVersion : schemaVersion, json: $0.data) }
  }
}
