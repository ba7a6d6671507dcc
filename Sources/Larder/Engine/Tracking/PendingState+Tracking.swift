internal import Foundation

/// Reads and writes of values as they are stored, for triggers and the product that has set them.
extension PendingState {
  /// Returns the position of a collection; `nil` for one that does not exist.
  package func collection(named name: String) -> Int? { names.firstIndex(of: name) }

  /// Returns a record of a collection as it is stored; `nil` when there is none.
  package func stored(_ key: RecordKey, in collection: Int) -> StoredValue? {
    collections[collection].records[key]?.stored(triggers[collection]?.coder.schemaVersion)
  }

  /// Returns whether there is a record.
  package func hasRecord(_ key: RecordKey, in collection: Int) -> Bool { collections[collection].records[key] != nil }

  /// Returns what is done beside each change of a collection, and its coder; `nil` for one that is not tracked.
  package func tracking(of collection: Int) -> (trigger: any RecordTrigger, coder: any TrackedCoder)? {
    triggers[collection].map { ($0.trigger, $0.coder) }
  }

  /// Visits the records of a collection as they are stored, in the order of their keys.
  package func visit(_ collection: Int, _ body: (RecordKey, StoredValue) throws(RepositoryError) -> Void) throws(RepositoryError) {
    for slot in collections[collection].records.ordered() {
      if let stored = slot.stored(triggers[collection]?.coder.schemaVersion) { try body(slot.key, stored) }
    }
  }

  /// Stores a value as it is, whatever versions and unique indexes say: what another device has written must arrive.
  ///
  /// A value over the store's limits is stored and cannot be read, as it could not after the next opening: an edit would be lost then.
  /// - Throws: `.unsupported`, `.encodingFailed` for a value that a backend could not read back.
  package mutating func store(_ value: StoredValue, for key: RecordKey, in collection: Int) throws(RepositoryError) {
    let record = StoredRecord(
      collection: names[collection], key: key, revision: revision, schemaVersion: value.schemaVersion, value: value.json)
    try upsert(StoreLoader.slot(of: record, value.json, core.options.limits).0, as: value, in: collection)
  }

  /// Returns what is over a limit of the store in a value: with it, the record could not be read after the next opening.
  package func limitViolation(of value: StoredValue, key: RecordKey) -> RepositoryError? {
    value.json.withUnsafeBytes { RecordLimit.violation(of: core.options.limits, key: key, value: $0) }
  }

  /// Stores a value of a collection that no repository reads.
  ///
  /// It counts as read: whether it decodes is no question that anybody asks, and to note that it is open would take as long as storing it.
  ///
  /// - Throws: as ``store(_:for:in:)``.
  package mutating func keep(_ value: StoredValue, for key: RecordKey, in collection: Int) throws(RepositoryError) {
    let slot = RecordSlot(
      key: key, revision: revision, schemaVersion: value.schemaVersion, value: value.json, decoded: UntypedValue.shared, keepsEncoded: true)
    try upsert(slot, as: value, in: collection)
  }

  /// Returns the records that the write being staged has put where a unique index holds another one with the same values.
  ///
  /// Each pair is listed once, in the order of collections and keys.
  /// Cost: none where no value met its like.
  package func newDuplicates() -> [StoredDuplicate] {
    guard isContested else { return [] }
    var found: [StoredDuplicate] = []
    for (collection, new, old) in uniqueChanges(in: changes[endedCount...]) {
      guard let (index, other) = collections[collection].indexes.newDuplicate(of: new, replacing: old) else { continue }
      found.append(StoredDuplicate(collection: names[collection], index: index, key: new.key, other: other))
    }
    var pairs: Set<Set<RecordAddress>> = []
    return found.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }.filter { duplicate in
      pairs.insert(Set([duplicate.key, duplicate.other].map { RecordAddress(collection: duplicate.collection, key: $0) })).inserted
    }
  }

  /// Returns the record that has the same values as another one in a unique index now.
  ///
  /// - Parameter other: The record that is returned where several have them.
  package func duplicate(
    of key: RecordKey, preferring other: RecordKey, in collection: String, index: String
  ) -> KnownDuplicate {
    guard let position = self.collection(named: collection) else { return .unknown }
    guard let slot = collections[position].records[key] else { return .none }
    return collections[position].indexes.duplicate(of: slot, preferring: other, index: index)
  }

  /// Deletes a record, leaving a tombstone; does nothing where there is none.
  package mutating func erase(_ key: RecordKey, in collection: Int) {
    remove(key, in: collection, schemaVersion: 1)
  }
}

/// Two records with the same values in a unique index.
package struct StoredDuplicate: Sendable, Hashable {
  /// The name of the collection.
  package let collection: String
  /// The name of the index.
  package let index: String
  /// The record that was written.
  package let key: RecordKey
  /// The record that has the values, too.
  package let other: RecordKey
}

/// A mark in the place of the value of a record that is used as it is stored.
private final class UntypedValue: Sendable {
  static let shared = UntypedValue()
}

extension RecordSlot {
  /// Returns the record as it is stored; `nil` where the bytes are with the backend alone, as those of a record over a limit are.
  ///
  /// - Parameter newest: The version that values of the collection are brought up to.
  func stored(_ newest: Int?) -> StoredValue? {
    encoded.map { StoredValue(schemaVersion: $0.isBroughtUp ? newest ?? schemaVersion : schemaVersion, json: $0.data) }
  }
}
