package import Foundation

// Tracking/ lets another product of the package, as LarderSync with its outbox, write records in the same commit as each change.
// Invariant: a trigger throws before it writes anything, and runs for every change of this process except those of migrations and its own.
// Called by PendingState.

/// A trigger that writes records of its own in the commit of each change of a collection.
package protocol RecordTrigger: Sendable {
  /// Names of the collections that the trigger writes, beside the one that it watches.
  var collections: [String] { get }
  /// Writes the trigger's own records for a change that is about to be made.
  ///
  /// - Throws: The error that forbids the change, before anything is written.
  func willChange(_ change: TriggeredChange, in pending: inout PendingState) throws(RepositoryError)
}

/// A change of one record that is about to be made.
package struct TriggeredChange: Sendable {
  /// Name of the record's collection.
  package let collection: String
  /// Key of the changed record.
  package let key: RecordKey
  /// Stored value before the change, or `nil` for a new record and for one whose bytes are not in memory, as those over a limit.
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
  /// Decodes a stored value as the collection's type, after migrating an older one.
  ///
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.newerSchema`. `.unsupported` if `type` is not that of the collection.
  func item<Item>(_ type: Item.Type, of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Item
  /// Migrates a stored value to the coder's schema version.
  ///
  /// - Throws: `.migrationFailed`, `.newerSchema`.
  func broughtUp(_ value: StoredValue, key: RecordKey) throws(RepositoryError) -> StoredValue
  /// Decodes a stored value and encodes it again, so that equal values give equal bytes.
  ///
  /// The result lacks members that the type does not read.
  /// - Throws: as ``item(_:of:key:)``, or `.encodingFailed`.
  func canonicalForm(of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Data
  /// Returns the JSON of an item, or `nil` if it is not of the collection's type.
  ///
  /// - Throws: `.encodingFailed`, and the other errors of a save.
  func json<Item>(of item: Item) throws(RepositoryError) -> Data?
}

/// The trigger of a collection, with the collection's coder.
struct CollectionTrigger: Sendable {
  let trigger: any RecordTrigger
  let coder: any AnyRecordCoder & TrackedCoder
}
