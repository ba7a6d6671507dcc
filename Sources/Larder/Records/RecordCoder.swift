internal import Foundation
internal import Synchronization

/// Turns values into stored bytes and back, within the limits of a store.
final class RecordCoder<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let schemaVersion: Int
  let keys: KeyCoder<Item.ID>
  private let limits: StoreOptions.Limits
  private let encoder: JSONEncoder
  private let decoder = JSONDecoder()
  private let hasTriedRoundTrip = Atomic(false)
  private let plan: MigrationPlan
  private let valueType = ObjectIdentifier(DecodedValue<Item>.self)
  /// Why a value must not be saved, whatever it encodes to.
  private let refusal: (@Sendable (Item) -> RepositoryError?)?

  init(
    schemaVersion: Int, limits: StoreOptions.Limits, migrations: [Migration] = [],
    refusal: (@Sendable (Item) -> RepositoryError?)? = nil
  ) {
    self.schemaVersion = schemaVersion
    self.refusal = refusal
    plan = MigrationPlan(version: schemaVersion, steps: migrations)
    self.limits = limits
    keys = KeyCoder(limit: limits.keyBytes)
    encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]  // so that files can be compared line by line
  }

  /// A value as bytes under its key; with `decoding`, also what these bytes decode to, for who will ask at once.
  /// - Throws: `.invalidKey`, `.encodingFailed`, `.tooLarge`, `.decodingFailed`, `.unsupported`.
  func encode(_ item: Item, decoding: Bool) throws(RepositoryError) -> EncodedRecord {
    let key = try keys.keyForStoring(item.id)
    if let refusal, let error = refusal(item) { throw error }
    if EncodingDepth.isUnsafe(item, limit: limits.jsonDepth) { throw RecordLimit.tooDeep(limits, key) }
    let value: Data
    do {
      value = try encoder.encode(item)
    } catch {
      throw RepositoryError(.encodingFailed, "the value does not encode as JSON", keyHash: key.hash, underlying: error)
    }
    let isUnusual = try RecordLimit.check(limits, key: key, encoded: value)
    var decoded: DecodedValue<Item>?
    if decoding || isUnusual || !hasTriedRoundTrip.load(ordering: .relaxed) {
      // Catches, at the first save, a type whose id is not coded at all (`let id = UUID()`): it could never be found again. And a number that
      // is JSON and that no decoder takes.
      decoded = DecodedValue(try decode(value, key: key))
      hasTriedRoundTrip.store(true, ordering: .relaxed)
    }
    return EncodedRecord(key: key, schemaVersion: schemaVersion, value: value, decoded: decoded)
  }

  /// A value as one of the repository's type; `nil` for one that a repository of another type has decoded.
  ///
  /// Compares what is known, since to look up the type by its parameters takes longer than to test a record.
  func typed(_ value: any DecodedRecord) -> DecodedValue<Item>? {
    ObjectIdentifier(type(of: value)) == valueType ? unsafeDowncast(value, to: DecodedValue<Item>.self) : nil
  }

  /// The value of stored bytes, which must carry the id that its key says.
  /// - Throws: `.decodingFailed`.
  func decode(_ value: Data, key: RecordKey) throws(RepositoryError) -> Item {
    let item: Item
    do {
      item = try decoder.decode(Item.self, from: value)
    } catch {
      throw RepositoryError(.decodingFailed, "the record does not decode as \(Item.self)", keyHash: key.hash, underlying: error)
    }
    guard try keys.key(for: item.id) == key else {
      throw RepositoryError(.decodingFailed, "the decoded value has another id than its key; is `id` coded?", keyHash: key.hash)
    }
    return item
  }

  /// The value of bytes that an older version wrote, and what it is stored as from now on.
  ///
  /// The result is decoded from its new encoding, so that memory never shows something that the next launch will not.
  /// - Throws: `.migrationFailed`.
  func migrate(_ value: Data, key: RecordKey, from version: Int) throws(RepositoryError) -> (item: Item, value: Data) {
    let migrated = try plan.migrate(value, from: version, key: key)
    do throws(RepositoryError) {
      _ = try RecordLimit.check(limits, key: key, encoded: migrated)
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
  /// What ``value`` decodes to, where that was tried.
  let decoded: (any DecodedRecord)?

  func slot(at revision: Revision, sameMeaning: ClosedRange<Revision>? = nil) -> RecordSlot {
    RecordSlot(key: key, revision: revision, sameMeaning: sameMeaning, schemaVersion: schemaVersion, value: value, decoded: decoded)
  }
}

/// The limits of a record, the same when it is saved and when it is read.
enum RecordLimit {
  /// Checks what is about to be stored: that it is within the limits, and JSON.
  /// - Returns: Whether it holds a number that must be decoded to know whether it can be read.
  /// - Throws: `.tooLarge`, `.encodingFailed`.
  static func check(_ limits: StoreOptions.Limits, key: RecordKey, encoded value: Data) throws(RepositoryError) -> Bool {
    if let error = sizeViolation(of: limits, key: key, value: value) { throw error }
    switch JSONSyntax.verdict(on: value, depthLimit: limits.jsonDepth) {
    case .valid(let hasUnusualNumber): return hasUnusualNumber
    case .tooDeep: throw tooDeep(limits, key)
    case .malformed(let offset):
      throw RepositoryError(
        .encodingFailed, "expected JSON, and byte \(offset) of the encoded value is not: `NaN` and infinity have no JSON", keyHash: key.hash
      )
    }
  }

  static func tooDeep(_ limits: StoreOptions.Limits, _ key: RecordKey) -> RepositoryError {
    RepositoryError(.tooLarge, "the record nests deeper than \(limits.jsonDepth)", keyHash: key.hash)
  }

  /// Returns what is over a limit in a record that is read; whether it is JSON is seen when it is decoded.
  static func violation(of limits: StoreOptions.Limits, key: RecordKey, value: Data) -> RepositoryError? {
    if let error = sizeViolation(of: limits, key: key, value: value) { return error }
    return JSONDepth.exceeds(limits.jsonDepth, in: value) ? tooDeep(limits, key) : nil
  }

  private static func sizeViolation(of limits: StoreOptions.Limits, key: RecordKey, value: Data) -> RepositoryError? {
    if key.byteCount > limits.keyBytes {
      return RepositoryError(.tooLarge, "the key has \(key.byteCount) bytes, more than \(limits.keyBytes)", keyHash: key.hash)
    }
    if value.count > limits.recordBytes {
      return RepositoryError(.tooLarge, "the record has \(value.count) bytes, more than \(limits.recordBytes)", keyHash: key.hash)
    }
    return nil
  }
}
