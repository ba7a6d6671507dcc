internal import Foundation
internal import Synchronization

/// A coder that encodes a repository's values as stored bytes and decodes the bytes, within the limits of the store.
final class RecordCoder<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let schemaVersion: Int
  let keys: KeyCoder<Item.ID>
  private let limits: StoreOptions.Limits
  private let json: JSONCoder
  /// The JSON coder between the steps of a migration, with the largest depth limit of any store instead of the limit of this store.
  private let migrating: JSONCoder
  private let hasTriedRoundTrip = Atomic(false)
  private let plan: MigrationPlan
  private let valueType = ObjectIdentifier(DecodedValue<Item>.self)
  /// Returns the error for a value that must not be saved although it may encode, or `nil` for any other value.
  private let refusal: (@Sendable (Item) -> RepositoryError?)?
  /// Whether slots (records in memory) keep the bytes beside the decoded value, for a trigger of the schema that reads the bytes.
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
  /// If `decoding` is true, the encoded bytes are also decoded, for an index or an observer that needs the decoded value.
  /// - Throws: `.invalidKey` for an id that cannot be a key. `.encodingFailed` for a value that does not encode as JSON. `.tooLarge` for a
  ///   value over a limit. `.decodingFailed` for bytes that do not decode. `.unsupported` for a place that a `.geo` index cannot hold.
  func encode(_ item: Item, decoding: Bool) throws(RepositoryError) -> EncodedRecord {
    let key = try keys.keyForStoring(item.id)
    if let refusal, let error = refusal(item) { throw error }
    let output: DirectEncoder.Output
    do {
      output = try json.encode(item)
    } catch {
      // A value that nests too deep is over a limit of the store, and is no defect in the coding of its type.
      if error is JSONTooDeep { throw RecordLimit.tooDeep(limits, key) }
      throw RepositoryError(
        .encodingFailed, "the value does not encode as JSON; `NaN` and infinity have none", keyHash: key.hash, underlying: error)
    }
    let value = output.json
    if let error = RecordLimit.sizeViolation(of: limits, key: key, byteCount: value.count) { throw error }
    var decoded: DecodedValue<Item>?
    if decoding || output.hasUnusualNumber || !hasTriedRoundTrip.load(ordering: .relaxed) {
      // The first save decodes its own bytes, to test that the type encodes and decodes its id. With `let id = UUID()` the decoded id is a
      // new one, so the record could never be found again. The bytes of an unusual number are also decoded, because such a number is valid
      // JSON, and yet its type may not decode it.
      decoded = DecodedValue(try decode(value, key: key))
      hasTriedRoundTrip.store(true, ordering: .relaxed)
    }
    return EncodedRecord(key: key, schemaVersion: schemaVersion, value: value, decoded: decoded, keepsEncoded: keepsEncoded)
  }

  /// Encodes values on all cores, and returns the records in the same order.
  ///
  /// - Throws: The error of the first value that cannot be encoded, as ``encode(_:decoding:)``.
  @concurrent func encodeAll(_ items: [Item], decoding: Bool) async throws(RepositoryError) -> [EncodedRecord] {
    let parts = await ConcurrentMap.parts(items) { part in
      Result { () throws(RepositoryError) in
        try part.map { item throws(RepositoryError) in try self.encode(item, decoding: decoding) }
      }
    }
    var records: [EncodedRecord] = []
    records.reserveCapacity(items.count)
    // The results of the parallel parts are read in the order of the values, so that the error of the first value that failed is thrown.
    for part in parts { records += try part.get() }
    return records
  }

  /// Returns a decoded value as the repository's type, or `nil` if a repository of another type has decoded it.
  ///
  /// `typed(_:)` compares identifiers of types. A cast would look the type up by its generic parameters, which takes longer than testing a
  /// record.
  func typed(_ value: any DecodedRecord) -> DecodedValue<Item>? {
    // Equal identifiers prove that the value is a `DecodedValue<Item>`, so the unchecked downcast is safe.
    ObjectIdentifier(type(of: value)) == valueType ? unsafeDowncast(value, to: DecodedValue<Item>.self) : nil
  }

  /// Decodes stored bytes to a value, whose id must have the record's key.
  ///
  /// - Throws: `.decodingFailed` if the bytes do not decode, or if the decoded id has another key. `.invalidKey` for a decoded id that
  ///   cannot be a key.
  func decode(_ value: Data, key: RecordKey) throws(RepositoryError) -> Item {
    let item: Item
    do {
      item = try json.decode(Item.self, from: value)
    } catch {
      throw RepositoryError(.decodingFailed, "the record does not decode as \(Item.self)", keyHash: key.hash, underlying: error)
    }
    // A value whose id has another key than its record could be read, but it could never be updated or deleted by its id.
    guard try keys.key(for: item.id) == key else {
      throw RepositoryError(
        .decodingFailed, "expected the id of the record's key, found another after decoding; encode and decode `id`", keyHash: key.hash)
    }
    return item
  }

  /// Migrates the bytes of a record of an older version, and returns the value and the bytes to store for it.
  ///
  /// The value is decoded from the returned bytes, so that memory never holds a value that differs from the one decoded at the next launch.
  /// - Throws: `.migrationFailed` if a step fails, or if its result is over a limit or does not decode.
  func migrate(_ value: Data, key: RecordKey, from version: Int) throws(RepositoryError) -> (item: Item, value: Data) {
    let migrated = try plan.migrate(value, from: version, key: key, migrating)
    do throws(RepositoryError) {
      // A migration step may make a record larger, and a record over a limit would be refused when the store opens the next time.
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
  /// The value that the bytes decode to, or `nil` if the bytes were not decoded after encoding.
  let decoded: (any DecodedRecord)?
  /// Whether the record's slot keeps the bytes beside the decoded value.
  var keepsEncoded = false

  /// The value in the form that is passed to the backend.
  var stored: StoredValue { StoredValue(schemaVersion: schemaVersion, json: value) }

  func slot(at revision: Revision, sameMeaning: ClosedRange<Revision>? = nil) -> RecordSlot {
    RecordSlot(
      key: key, revision: revision, sameMeaning: sameMeaning, schemaVersion: schemaVersion, value: value, decoded: decoded,
      keepsEncoded: keepsEncoded)
  }
}
