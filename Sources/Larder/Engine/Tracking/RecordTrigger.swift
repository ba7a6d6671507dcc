package import Foundation

// Tracking/ lets another product of the package write records in the same commit as each change. LarderSync uses a trigger to write its
// outbox, which has an entry for each synced record and marks the edits that the server does not have yet.
// Invariant: a trigger throws before it writes, and runs for this process's changes except migrations, received values and its own writes.
// Called by PendingState.

/// A trigger of a collection, which writes records of its own in the same commit as each change of the collection.
package protocol RecordTrigger: Sendable {
  /// Names of the collections to which the trigger writes, apart from the collection whose changes it receives.
  var collections: [String] { get }
  /// Writes the trigger's own records for a change of a record, before the change is staged.
  ///
  /// - Throws: The error that forbids the change. A trigger must throw its error before it writes anything.
  func willChange(_ change: TriggeredChange, in pending: inout PendingState) throws(RepositoryError)
}

/// A change of one record that is passed to the trigger before it is staged.
package struct TriggeredChange: Sendable {
  /// Name of the record's collection.
  package let collection: String
  /// Key of the changed record.
  package let key: RecordKey
  /// Stored value before the change, or `nil` for a new record or one whose bytes are not in memory (over a size limit).
  package let old: StoredValue?
  /// Stored value after the change, or `nil` for a deletion.
  package let new: StoredValue?
  /// Coder of the record's collection.
  package let coder: any TrackedCoder
}

/// The coder of a tracked collection (one with a trigger), without its generic type.
package protocol TrackedCoder: Sendable {
  /// Schema version of the values that the coder writes.
  var schemaVersion: Int { get }
  /// Decodes a stored value as the collection's type, after migrating it to the coder's schema version.
  ///
  /// - Throws: `.decodingFailed`, `.migrationFailed` or `.newerSchema` if the value cannot be read. `.unsupported` if `type` is not the
  ///   collection's type.
  func item<Item>(_ type: Item.Type, of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Item
  /// Migrates a stored value to the coder's schema version.
  ///
  /// - Throws: `.migrationFailed`, or `.newerSchema` for a value of a newer schema version.
  func broughtUp(_ value: StoredValue, key: RecordKey) throws(RepositoryError) -> StoredValue
  /// Decodes a stored value and encodes it again, so that equal values give equal bytes.
  ///
  /// The resulting JSON lacks the members that the collection's type does not read.
  /// - Throws: as ``item(_:of:key:)``, or `.encodingFailed`.
  func canonicalForm(of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Data
  /// Returns the JSON of an item, or `nil` if the item is not of the collection's type.
  ///
  /// - Throws: `.encodingFailed` if the item does not encode, and the other errors of a save.
  func json<Item>(of item: Item) throws(RepositoryError) -> Data?
}

/// The trigger of a collection, with the collection's coder.
struct CollectionTrigger: Sendable {
  let trigger: any RecordTrigger
  let coder: any AnyRecordCoder & TrackedCoder
}

/// The calls of triggers, before the change that they receive is staged.
extension PendingState {
  /// Runs the trigger of a tracked collection (one with a trigger) for a write, and returns the record to store.
  ///
  /// In a tracked collection the stored record keeps the JSON members that the record's type does not read.
  mutating func tracked(_ record: EncodedRecord, in collection: Int) throws(RepositoryError) -> EncodedRecord {
    // A write that stores a value from another device does not run the trigger. LarderSync's trigger would queue a value from another
    // device to be sent back to the server.
    guard let trigger = triggers[collection], origin != .remote else { return record }
    let old = try collections[collection].records[record.key]
    // If the stored record has a newer schema version, an edit by this version of the app would lose the members that this version cannot
    // decode.
    if let old, old.schemaVersion > record.schemaVersion {
      throw .newerRecords(in: names[collection], found: old.schemaVersion, supported: record.schemaVersion, key: record.key)
    }
    var record = record
    if let stored = old?.stored(trigger.coder.schemaVersion) {
      let count = record.value.count
      record = trigger.coder.keepingUnknownMembers(record, of: stored)
      // The kept JSON members may take the record over a size limit, which the caller has checked without these members.
      if record.value.count > count, let error = limitViolation(of: record.stored, key: record.key) { throw error }
    }
    let new = record.stored
    try trigger.trigger.willChange(
      TriggeredChange(
        collection: names[collection], key: record.key, old: old?.stored(trigger.coder.schemaVersion), new: new, coder: trigger.coder),
      in: &self)
    return record
  }

  /// Runs the trigger of a tracked collection (one with a trigger) before a record is deleted.
  mutating func trackDeletion(of key: RecordKey, in collection: Int) throws(RepositoryError) {
    guard let trigger = triggers[collection], origin != .remote, let old = try collections[collection].records[key] else { return }
    try trigger.trigger.willChange(
      TriggeredChange(
        collection: names[collection], key: key, old: old.stored(trigger.coder.schemaVersion), new: nil, coder: trigger.coder), in: &self)
  }
}

/// Functions that read and write stored values within a write, for triggers and for LarderSync, which installs triggers.
extension PendingState {
  /// Returns the position of a collection, or `nil` if the store has no collection of this name.
  package func collection(named name: String) -> Int? { names.firstIndex(of: name) }

  /// Returns the stored value of a key's record, or `nil` if there is no record or the bytes of the record are not in memory.
  package func stored(_ key: RecordKey, in collection: Int) throws(RepositoryError) -> StoredValue? {
    try collections[collection].records[key]?.stored(triggers[collection]?.coder.schemaVersion)
  }

  /// Returns whether a key has a record, even if the bytes of the record are not in memory.
  package func hasRecord(_ key: RecordKey, in collection: Int) throws(RepositoryError) -> Bool {
    try collections[collection].records[key] != nil
  }

  /// Returns the trigger and the coder of a tracked collection, or `nil` for a collection without a trigger.
  package func tracking(of collection: Int) -> (trigger: any RecordTrigger, coder: any TrackedCoder)? {
    triggers[collection].map { ($0.trigger, $0.coder) }
  }

  /// Passes the stored values of a collection to `body`, sorted by key.
  package func visit(_ collection: Int, _ body: (RecordKey, StoredValue) throws(RepositoryError) -> Void) throws(RepositoryError) {
    for slot in try collections[collection].records.ordered() {
      // The bytes of a record over a size limit are not in memory, so the loop leaves out such a record.
      if let stored = slot.stored(triggers[collection]?.coder.schemaVersion) { try body(slot.key, stored) }
    }
  }

  /// Stores a value received from another device, without checking schema versions and unique indexes.
  ///
  /// If a value were refused, the records of the two devices would differ for ever. A value over the store's size limits is stored, but
  /// every read of the value throws an error, both before and after the next opening of the store. If the value could be read until the
  /// next opening, that opening would seem to have lost it.
  /// - Throws: `.unsupported`, `.encodingFailed` for a value that a backend could not read back.
  package mutating func store(_ value: StoredValue, for key: RecordKey, in collection: Int) throws(RepositoryError) {
    let record = StoredRecord(
      collection: names[collection], key: key, revision: revision, schemaVersion: value.schemaVersion, value: value.json)
    // The opening of a store also makes the records in memory with `RecordSlot.loaded`. A record that cannot be read after the next opening
    // can thus not be read before it either.
    try upsert(RecordSlot.loaded(record, value.json, core.options.limits).0, as: value, in: collection)
  }

  /// Returns the error for a value that exceeds a size limit of the store, or `nil`.
  ///
  /// A record with such a value could not be read after the next opening.
  package func limitViolation(of value: StoredValue, key: RecordKey) -> RepositoryError? {
    value.json.withUnsafeBytes { RecordLimit.violation(of: core.options.limits, key: key, value: $0) }
  }

  /// Stores a value in a collection that no repository reads.
  ///
  /// The record is marked as decoded, because tracking it as undecoded would take as long as storing it.
  /// - Throws: as ``store(_:for:in:)``.
  package mutating func storeUnread(_ value: StoredValue, for key: RecordKey, in collection: Int) throws(RepositoryError) {
    let slot = RecordSlot(
      key: key, revision: revision, schemaVersion: value.schemaVersion, value: value.json, decoded: UntypedValue.shared, keepsEncoded: true)
    try upsert(slot, as: value, in: collection)
  }

  /// Returns the pairs of records that have equal values in a unique index because of the write that is being staged.
  ///
  /// Each pair is listed once, and the pairs are sorted by collection and key. If no written value equals another record's value in a
  /// unique index in memory, and no unique index in the storage gets a new value, `newDuplicates()` compares no records.
  package mutating func newDuplicates() throws(RepositoryError) -> [StoredDuplicate] {
    // Nearly every write stores no value that another record has in a unique index in memory. For these writes `newDuplicates()` returns
    // before it compares changes.
    guard isContested else { return [] }
    var found: [StoredDuplicate] = []
    for (collection, new, old) in try uniqueChanges(in: changes[endedCount...]) {
      for index in collections[collection].indexes.uniqueIndexes {
        guard let other = try newDuplicate(of: new, replacing: old, in: index, of: collection) else { continue }
        let name = collections[collection].indexes.definitions[index].name
        found.append(StoredDuplicate(collection: names[collection], index: name, key: new.key, other: other))
        break
      }
    }
    // If the write has stored both records of a pair, the loop above finds the pair twice, once from each record.
    var pairs: Set<Set<RecordAddress>> = []
    return found.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }.filter { duplicate in
      pairs.insert(Set([duplicate.key, duplicate.other].map { RecordAddress(collection: duplicate.collection, key: $0) })).inserted
    }
  }

  /// Returns a record that has the same values in a unique index as the record of a key.
  ///
  /// - Parameter other: The record to return if several records have the same values.
  package mutating func duplicate(
    of key: RecordKey, preferring other: RecordKey, in collection: String, index: String
  ) throws(RepositoryError) -> KnownDuplicate {
    guard let position = self.collection(named: collection) else { return .unknown }
    guard let slot = try collections[position].records[key] else { return .none }
    return try searchUniqueIndexes(of: position) { (state) throws(RepositoryError) in
      try state.indexes.duplicate(of: slot, preferring: other, index: index, among: state.records)
    }
  }

  /// Deletes a record, and stages a tombstone.
  ///
  /// `deleteStored` does nothing if the key has no record.
  package mutating func deleteStored(_ key: RecordKey, in collection: Int) throws(RepositoryError) {
    try remove(key, in: collection, schemaVersion: 1)
  }
}

/// Two records with the same values in a unique index.
package struct StoredDuplicate: Sendable, Hashable {
  /// Name of the collection of both records.
  package let collection: String
  /// Name of the unique index.
  package let index: String
  /// Key of the record that the write has stored.
  package let key: RecordKey
  /// Key of another record with the same values in the unique index.
  package let other: RecordKey
}

/// A placeholder for the decoded value of a record that is read only as stored bytes.
private final class UntypedValue: Sendable {
  static let shared = UntypedValue()
}

extension RecordSlot {
  /// Returns the stored value of the record, or `nil` if its bytes are not in memory, as for a record over a size limit.
  ///
  /// - Parameter newest: Schema version to which values of the collection are migrated.
  func stored(_ newest: Int?) -> StoredValue? {
    // A slot keeps the schema version of the stored record, even after its bytes were migrated in memory. The migrated bytes are of version
    // `newest`.
    encoded.map { StoredValue(schemaVersion: $0.isBroughtUp ? newest ?? schemaVersion : schemaVersion, json: $0.data) }
  }
}
