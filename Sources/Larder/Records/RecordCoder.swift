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

  init(schemaVersion: Int, limits: StoreOptions.Limits, migrations: [Migration] = []) {
    self.schemaVersion = schemaVersion
    plan = MigrationPlan(version: schemaVersion, steps: migrations)
    self.limits = limits
    keys = KeyCoder(limit: limits.keyBytes)
    encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]  // so that files can be compared line by line
  }

  /// A value as bytes under its key; with `decoding`, also what these bytes decode to, for who will ask at once.
  /// - Throws: `.invalidKey`, `.encodingFailed`, `.tooLarge`, `.decodingFailed`.
  func encode(_ item: Item, decoding: Bool) throws(RepositoryError) -> EncodedRecord {
    let key = try keys.keyForStoring(item.id)
    let value: Data
    do {
      value = try encoder.encode(item)
    } catch {
      throw RepositoryError(.encodingFailed, "the value does not encode as JSON", keyHash: key.hash, underlying: error)
    }
    if let error = RecordLimit.violation(of: limits, key: key, value: value) { throw error }
    var decoded: Item?
    if decoding || !hasTriedRoundTrip.load(ordering: .relaxed) {
      // Catches, at the first save, a type whose id is not coded at all (`let id = UUID()`): it could never be found again.
      decoded = try decode(value, key: key)
      hasTriedRoundTrip.store(true, ordering: .relaxed)
    }
    return EncodedRecord(key: key, schemaVersion: schemaVersion, value: value, decoded: decoded)
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
      if let error = RecordLimit.violation(of: limits, key: key, value: migrated) { throw error }
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
  let decoded: (any Sendable)?

  func slot(at revision: Revision, sameMeaning: ClosedRange<Revision>? = nil) -> RecordSlot {
    RecordSlot(key: key, revision: revision, sameMeaning: sameMeaning, schemaVersion: schemaVersion, value: value, decoded: decoded)
  }
}

/// The limits of a record, the same when it is saved and when it is read.
enum RecordLimit {
  static func violation(of limits: StoreOptions.Limits, key: RecordKey, value: Data) -> RepositoryError? {
    if key.byteCount > limits.keyBytes {
      return RepositoryError(.tooLarge, "the key has \(key.byteCount) bytes, more than \(limits.keyBytes)", keyHash: key.hash)
    }
    if value.count > limits.recordBytes {
      return RepositoryError(.tooLarge, "the record has \(value.count) bytes, more than \(limits.recordBytes)", keyHash: key.hash)
    }
    if JSONDepth.exceeds(limits.jsonDepth, in: value) {
      return RepositoryError(.tooLarge, "the record nests deeper than \(limits.jsonDepth)", keyHash: key.hash)
    }
    return nil
  }
}
