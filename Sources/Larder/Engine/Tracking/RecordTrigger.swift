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
