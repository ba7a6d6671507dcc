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

/// A value as it is stored.
package struct StoredValue: Sendable, Hashable {
  /// The version of the schema that wrote it.
  package var schemaVersion: Int
  /// The value as JSON.
  package var json: Data

  /// Takes a value.
  package init(schemaVersion: Int, json: Data) {
    self.schemaVersion = schemaVersion
    self.json = json
  }

  /// Whether the JSON has a line feed, which backends do not store.
  ///
  /// Cost: that of `memchr`, since every save asks.
  var hasLineFeed: Bool {
    json.withUnsafeBytes { bytes in bytes.baseAddress.map { memchr($0, 0x0A, bytes.count) != nil } ?? false }
  }

  /// The value with a blank in the place of each line feed.
  ///
  /// JSON has line feeds only between its tokens.
  package var onOneLine: StoredValue {
    hasLineFeed ? StoredValue(schemaVersion: schemaVersion, json: Data(json.map { $0 == 0x0A ? 0x20 : $0 })) : self
  }

  /// The schema versions that every backend stores.
  package static var schemaVersions: ClosedRange<Int> { RecordLimit.schemaVersions }

  /// Returns why the JSON cannot be stored; `nil` for one value without a line feed, nested no deeper than a limit.
  ///
  /// Cost: about a nanosecond a byte.
  package func flaw(depth limit: Int) -> String? {
    switch JSONSyntax.verdict(on: json, depthLimit: limit) {
    case .tooDeep: return "more than \(limit) nested levels"
    case .malformed(let offset): return "no JSON at byte \(offset)"
    case .valid: return hasLineFeed ? "a line feed" : nil
    }
  }
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
