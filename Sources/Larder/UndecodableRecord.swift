/// A record whose bytes are whole but cannot be turned into a value; it is kept and carried through every rewrite.
public struct UndecodableRecord: Sendable {
  /// The collection that holds it.
  public let collection: String
  /// Its key.
  public let key: RecordKey
  /// The commit that wrote it.
  public let revision: Revision
  /// The schema version that wrote it.
  public let schemaVersion: Int
  /// The reason: `.decodingFailed`, `.migrationFailed`, `.tooLarge`; `.newerSchema` for a foreign commit of a newer app.
  public let error: RepositoryError
}

extension UndecodableRecord {
  init(_ slot: RecordSlot, in collection: String, _ error: RepositoryError) {
    self.init(collection: collection, key: slot.key, revision: slot.revision, schemaVersion: slot.schemaVersion, error: error)
  }
}
