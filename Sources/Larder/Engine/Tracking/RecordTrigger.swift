package import Foundation

// Tracking/ lets another product of the package write beside each change, in the same commit, as the outbox of LarderSync.
// Invariant: a trigger throws before it writes anything, and sees every change of this process but those of migrations and its own.
// Called by PendingState.

/// An action beside each change of a collection, in the same commit.
package protocol RecordTrigger: Sendable {
  /// The collections that it writes, beside the one that it watches.
  var collections: [String] { get }
  /// Writes what belongs to a change that is about to be made.
  ///
  /// - Throws: whatever forbids the change, before anything is written.
  func willChange(_ change: TriggeredChange, in pending: inout PendingState) throws(RepositoryError)
}

/// A change that is about to be made.
package struct TriggeredChange: Sendable {
  /// The name of the collection.
  package let collection: String
  /// The key of the record.
  package let key: RecordKey
  /// The record as it is; `nil` when it is new.
  package let old: StoredValue?
  /// The record as it will be; `nil` when it is being deleted.
  package let new: StoredValue?
  /// The coder of the collection.
  package let coder: any TrackedCoder
}

/// The coder of a tracked collection, whatever its type.
package protocol TrackedCoder: Sendable {
  /// The schema version of what is written.
  var schemaVersion: Int { get }
  /// Returns a value as the collection's type, brought up if it is older.
  ///
  /// - Throws: `.decodingFailed`, `.migrationFailed`, `.newerSchema`; `.unsupported` for another type than that of the collection.
  func item<Item>(_ type: Item.Type, of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Item
  /// Returns a value as the newest version has it.
  ///
  /// - Throws: `.migrationFailed`, `.newerSchema`.
  func broughtUp(_ value: StoredValue, key: RecordKey) throws(RepositoryError) -> StoredValue
  /// Decodes a value and encodes it again, so that equal values give equal bytes.
  ///
  /// The result lacks members that the type does not know.
  /// - Throws: as ``item(_:of:key:)``; `.encodingFailed`.
  func canonicalForm(of value: StoredValue, key: RecordKey) throws(RepositoryError) -> Data
  /// Returns the JSON of an item; `nil` when it is of another type than that of the collection.
  ///
  /// - Throws: `.encodingFailed` and what else a save throws.
  func json<Item>(of item: Item) throws(RepositoryError) -> Data?
}

/// The trigger of a collection with its coder.
struct CollectionTrigger: Sendable {
  let trigger: any RecordTrigger
  let coder: any AnyRecordCoder & TrackedCoder
}
