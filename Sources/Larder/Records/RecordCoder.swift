internal import Foundation
internal import Synchronization

/// A coder of values as stored bytes and back, within the limits of a store.
final class RecordCoder<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let schemaVersion: Int
  let keys: KeyCoder<Item.ID>
  private let limits: StoreOptions.Limits
  private let json: JSONCoder
  /// The coder of what is between two steps of a migration, which may nest as deep as any record.
  private let migrating: JSONCoder
  private let hasTriedRoundTrip = Atomic(false)
  private let plan: MigrationPlan
  private let valueType = ObjectIdentifier(DecodedValue<Item>.self)
  /// Returns the error for a value that must not be saved, whatever it encodes to.
  private let refusal: (@Sendable (Item) -> RepositoryError?)?
  /// Whether slots keep the bytes beside the value that they were decoded to.
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

  /// Returns a value as bytes under its key; with `decoding`, also the value that these bytes decode to, for an index or observer.
  /// - Throws: `.invalidKey`, `.encodingFailed`, `.tooLarge`, `.decodingFailed`, `.unsupported`.
  func encode(_ item: Item, decoding: Bool) throws(RepositoryError) -> EncodedRecord {
    let key = try keys.keyForStoring(item.id)
    if let refusal, let error = refusal(item) { throw error }
    let output: DirectEncoder.Output
    do {
      output = try json.encode(item)
    } catch {
      if error is JSONTooDeep { throw RecordLimit.tooDeep(limits, key) }
      throw RepositoryError(
        .encodingFailed, "the value does not encode as JSON; `NaN` and infinity have none", keyHash: key.hash, underlying: error)
    }
    let value = output.json
    if let error = RecordLimit.sizeViolation(of: limits, key: key, byteCount: value.count) { throw error }
    var decoded: DecodedValue<Item>?
    if decoding || output.hasUnusualNumber || !hasTriedRoundTrip.load(ordering: .relaxed) {
      // Catches, at the first save, a type whose id is not coded at all (`let id = UUID()`): it could never be found again. And a number
      // that is JSON and that no decoder takes.
      decoded = DecodedValue(try decode(value, key: key))
      hasTriedRoundTrip.store(true, ordering: .relaxed)
    }
    return EncodedRecord(key: key, schemaVersion: schemaVersion, value: value, decoded: decoded, keepsEncoded: keepsEncoded)
  }

  /// Returns values as records, in their order; encodes on all cores.
  /// - Throws: The error of the first value that cannot be encoded, as ``encode(_:decoding:)``.
  @concurrent func encodeAll(_ items: [Item], decoding: Bool) async throws(RepositoryError) -> [EncodedRecord] {
    let parts = await ConcurrentMap.parts(items) { part in
      Result { () throws(RepositoryError) in
        try part.map { item throws(RepositoryError) in try self.encode(item, decoding: decoding) }
      }
    }
    var records: [EncodedRecord] = []
    records.reserveCapacity(items.count)
    for part in parts { records += try part.get() }
    return records
  }

  /// Returns a decoded value as the repository's type; `nil` for one that a repository of another type has decoded.
  ///
  /// Compares what is known, since to look up the type by its parameters takes longer than to test a record.
  func typed(_ value: any DecodedRecord) -> DecodedValue<Item>? {
    ObjectIdentifier(type(of: value)) == valueType ? unsafeDowncast(value, to: DecodedValue<Item>.self) : nil
  }

  /// Returns the value of stored bytes, which must carry the id that its key says.
  /// - Throws: `.decodingFailed`.
  func decode(_ value: Data, key: RecordKey) throws(RepositoryError) -> Item {
    let item: Item
    do {
      item = try json.decode(Item.self, from: value)
    } catch {
      throw RepositoryError(.decodingFailed, "the record does not decode as \(Item.self)", keyHash: key.hash, underlying: error)
    }
    guard try keys.key(for: item.id) == key else {
      throw RepositoryError(
        .decodingFailed, "expected the id of the record's key, found another after decoding; encode and decode `id`", keyHash: key.hash)
    }
    return item
  }

  /// Returns the value of bytes that an older version wrote, and the bytes that it is stored as from now on.
  ///
  /// The result is decoded from its new encoding, so that memory never shows something that the next launch will not.
  /// - Throws: `.migrationFailed`.
  func migrate(_ value: Data, key: RecordKey, from version: Int) throws(RepositoryError) -> (item: Item, value: Data) {
    let migrated = try plan.migrate(value, from: version, key: key, migrating)
    do throws(RepositoryError) {
      try RecordLimit.check(limits, key: key, encoded: migrated)
      return (try decode(migrated, key: key), migrated)
    } catch {
      throw RepositoryError(
        .migrationFailed, "from version \(version) to \(schemaVersion), the result cannot be used: \(error.message)", keyHash: key.hash,
        underlying: error.underlying ?? error)
    }
  }
}

/// A value that is ready to be staged.
struct EncodedRecord: Sendable {
  let key: RecordKey
  let schemaVersion: Int
  let value: Data
  /// The value that ``value`` decodes to, where that was tried.
  let decoded: (any DecodedRecord)?
  /// Whether the slot keeps the bytes beside the value.
  var keepsEncoded = false

  /// The value as the backend gets it.
  var stored: StoredValue { StoredValue(schemaVersion: schemaVersion, json: value) }

  func slot(at revision: Revision, sameMeaning: ClosedRange<Revision>? = nil) -> RecordSlot {
    RecordSlot(
      key: key, revision: revision, sameMeaning: sameMeaning, schemaVersion: schemaVersion, value: value, decoded: decoded,
      keepsEncoded: keepsEncoded)
  }
}
