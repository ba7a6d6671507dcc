internal import Foundation
internal import Synchronization

/// A coder of a repository's values as stored bytes and back, within the limits of the store.
final class RecordCoder<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let schemaVersion: Int
  let keys: KeyCoder<Item.ID>
  private let limits: StoreOptions.Limits
  private let json: JSONCoder
  /// The JSON coder between the steps of a migration, where a value may nest as deep as any record.
  private let migrating: JSONCoder
  private let hasTriedRoundTrip = Atomic(false)
  private let plan: MigrationPlan
  private let valueType = ObjectIdentifier(DecodedValue<Item>.self)
  /// Returns the error for a value that must not be saved although it may encode.
  private let refusal: (@Sendable (Item) -> RepositoryError?)?
  /// Whether slots keep the bytes beside the decoded value, for a trigger that reads them.
  let keepsEncoded: Bool

  init(
    schemaVersion: Int, limits: StoreOptions.Limits, coding: StoreOptions.Coding = .larder, migrations: [Migration] = [],
    refusal: (@Sendable (Item) -> RepositoryError?)? = nil, keepsEncoded: Bool = false
  ) {
    self.schemaVersion = schemaVersion
    self.keepsEncoded = keepsEncoded
    self.refusal = refusal
    plan = MigrationPlan(version: schemaVersion, steps: migrations)
    self.limits = limits
    json = JSONCoder(coding, depthLimit: limits.jsonDepth)
    migrating = JSONCoder(coding, depthLimit: StoreOptions.Limits.maximumDepth)
    keys = KeyCoder(limit: limits.keyBytes, migrating)
  }

  /// Encodes a value, and returns its bytes with its key.
  ///
  /// With `decoding`, the bytes are also decoded again, for an index or an observer.
  /// - Throws: `.invalidKey`, `.encodingFailed`, `.tooLarge`, `.decodingFailed`, `.unsupported`.
  func encode(_ item: Item, decoding: Bool) throws(RepositoryError) -> EncodedRecord {
    let key = try keys.keyForStoring(item.id)
    if let refusal, let error = refusal(item) { throw error }
    let output: DirectEncoder.Output
    do {
      output = try json.encode(item)
    } catch {
      // A limit of the store, and no defect in the coding of the type.
      if error is JSONTooDeep { throw RecordLimit.tooDeep(limits, key) }
      throw RepositoryError(
        .encodingFailed, "the value does not encode as JSON; `NaN` and infinity have none", keyHash: key.hash, underlying: error)
    }
    let value = output.json
    if let error = RecordLimit.sizeViolation(of: limits, key: key, byteCount: value.count) { throw error }
    var decoded: DecodedValue<Item>?
    if decoding || output.hasUnusualNumber || !hasTriedRoundTrip.load(ordering: .relaxed) {
      // The first save shows whether the type codes its id: with `let id = UUID()`, the record could never be found again. A number that is
      // JSON may still be one that its type does not decode.
      decoded = DecodedValue(try decode(value, key: key))
      hasTriedRoundTrip.store(true, ordering: .relaxed)
    }
    return EncodedRecord(key: key, schemaVersion: schemaVersion, value: value, decoded: decoded, keepsEncoded: keepsEncoded)
  }

  /// Encodes values on all cores, and returns the records in the same order.
  /// - Throws: The error of the first value that cannot be encoded, as ``encode(_:decoding:)``.
  @concurrent func encodeAll(_ items: [Item], decoding: Bool) async throws(RepositoryError) -> [EncodedRecord] {
    let parts = await ConcurrentMap.parts(items) { part in
      Result { () throws(RepositoryError) in
        try part.map { item throws(RepositoryError) in try self.encode(item, decoding: decoding) }
      }
    }
    var records: [EncodedRecord] = []
    records.reserveCapacity(items.count)
    // In order, so that the first value that failed gives the error.
    for part in parts { records += try part.get() }
    return records
  }

  /// Returns a decoded value as the repository's type, or `nil` for one that a repository of another type has decoded.
  ///
  /// Compares identifiers of types: a look-up of the type by its parameters takes longer than the test of a record.
  func typed(_ value: any DecodedRecord) -> DecodedValue<Item>? {
    // The comparison proves the type, so the cast needs no check of its own.
    ObjectIdentifier(type(of: value)) == valueType ? unsafeDowncast(value, to: DecodedValue<Item>.self) : nil
  }

  /// Decodes the value of stored bytes, which must carry the id that belongs to the record's key.
  /// - Throws: `.decodingFailed`.
  func decode(_ value: Data, key: RecordKey) throws(RepositoryError) -> Item {
    let item: Item
    do {
      item = try json.decode(Item.self, from: value)
    } catch {
      throw RepositoryError(.decodingFailed, "the record does not decode as \(Item.self)", keyHash: key.hash, underlying: error)
    }
    // Under a key that is not its own, a value could be read, but never be updated or deleted by its id.
    guard try keys.key(for: item.id) == key else {
      throw RepositoryError(
        .decodingFailed, "expected the id of the record's key, found another after decoding; encode and decode `id`", keyHash: key.hash)
    }
    return item
  }

  /// Migrates the bytes of an older version, and returns the value and the bytes to store for it.
  ///
  /// The value is decoded from these bytes, so that memory never shows anything that the next launch will not.
  /// - Throws: `.migrationFailed`.
  func migrate(_ value: Data, key: RecordKey, from version: Int) throws(RepositoryError) -> (item: Item, value: Data) {
    let migrated = try plan.migrate(value, from: version, key: key, migrating)
    do throws(RepositoryError) {
      // A step may make a record larger, and one over a limit would be refused at the next opening.
      try RecordLimit.check(limits, key: key, encoded: migrated)
      return (try decode(migrated, key: key), migrated)
    } catch {
      throw RepositoryError(
        .migrationFailed, "from version \(version) to \(schemaVersion), the result cannot be used: \(error.message)", keyHash: key.hash,
        underlying: error.underlying ?? error)
    }
  }
}

/// An encoded record that is ready to be staged for a commit.
struct EncodedRecord: Sendable {
  let key: RecordKey
  let schemaVersion: Int
  let value: Data
  /// The value that ``value`` decodes to, if that was tried.
  let decoded: (any DecodedRecord)?
  /// Whether the record's slot keeps the bytes beside the decoded value.
  var keepsEncoded = false

  /// The value in the form that the backend gets.
  var stored: StoredValue { StoredValue(schemaVersion: schemaVersion, json: value) }

  func slot(at revision: Revision, sameMeaning: ClosedRange<Revision>? = nil) -> RecordSlot {
    RecordSlot(
      key: key, revision: revision, sameMeaning: sameMeaning, schemaVersion: schemaVersion, value: value, decoded: decoded,
      keepsEncoded: keepsEncoded)
  }
}
