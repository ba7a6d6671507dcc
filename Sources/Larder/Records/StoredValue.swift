package import Foundation

/// A value in its stored form: its JSON, and the version of the schema that wrote it.
package struct StoredValue: Sendable, Hashable {
  /// The version of the schema that wrote the value.
  package var schemaVersion: Int
  /// The value as JSON.
  package var json: Data

  /// Makes a stored value.
  package init(schemaVersion: Int, json: Data) {
    self.schemaVersion = schemaVersion
    self.json = json
  }

  /// Whether the JSON has a line feed, which a stored value must not have.
  ///
  /// Cost: the time of one `memchr` over the JSON. The test for a line feed must be fast, because every saved record is tested.
  var hasLineFeed: Bool {
    json.withUnsafeBytes { bytes in bytes.baseAddress.map { memchr($0, 0x0A, bytes.count) != nil } ?? false }
  }

  /// The value with a blank in place of each line feed.
  ///
  /// JSON has line feeds only between its tokens, so the replacement does not change the meaning of the JSON.
  package var onOneLine: StoredValue {
    hasLineFeed ? StoredValue(schemaVersion: schemaVersion, json: Data(json.map { $0 == 0x0A ? 0x20 : $0 })) : self
  }

  /// Schema versions that every backend can store.
  package static var schemaVersions: ClosedRange<Int> { RecordLimit.schemaVersions }

  /// Returns the reason why the JSON cannot be stored, or `nil` if it is one value on one line within the depth limit.
  ///
  /// Cost: about one nanosecond per byte.
  package func flaw(depth limit: Int) -> String? {
    switch JSONSyntax.verdict(on: json, depthLimit: limit) {
    case .tooDeep: return "more than \(limit) nested levels"
    case .malformed(let offset): return "no JSON at byte \(offset)"
    case .valid: return hasLineFeed ? "a line feed" : nil
    }
  }
}

/// Checks of a record against the limits of a store, the same when the record is saved and when it is read.
enum RecordLimit {
  /// Schema versions that backends can store, since their formats have 32 bits for a version.
  static let schemaVersions = 1...Int(Int32.max)

  /// Checks that a backend can read a value back after storing the value.
  ///
  /// The encoders of this package only return values that a backend can read back. Values from other devices arrive already encoded, and a
  /// single value that is empty or has a line feed would make the whole JSON file of a store unreadable.
  /// - Throws: `.unsupported` for a schema version out of range, `.encodingFailed` for a value that is empty or has a line feed.
  static func checkReadableForm(of value: StoredValue, key: RecordKey) throws(RepositoryError) {
    guard schemaVersions.contains(value.schemaVersion) else {
      throw RepositoryError(
        .unsupported, "expected a schema version from 1 to \(schemaVersions.upperBound), found \(value.schemaVersion)", keyHash: key.hash)
    }
    guard !value.json.isEmpty, !value.hasLineFeed else {
      throw RepositoryError(
        .encodingFailed, "expected one line of JSON, found \(value.json.isEmpty ? "no bytes" : "a line feed")", keyHash: key.hash)
    }
  }

  /// Checks that the result of a migration is JSON and within the limits.
  ///
  /// - Throws: `.tooLarge` for a value over a limit. `.encodingFailed` for bytes that are no JSON.
  static func check(_ limits: StoreOptions.Limits, key: RecordKey, encoded value: Data) throws(RepositoryError) {
    if let error = sizeViolation(of: limits, key: key, byteCount: value.count) { throw error }
    switch JSONSyntax.verdict(on: value, depthLimit: limits.jsonDepth) {
    case .valid: return
    case .tooDeep: throw tooDeep(limits, key)
    case .malformed(let offset):
      throw RepositoryError(
        .encodingFailed, "expected JSON, found something else at byte \(offset) of the encoded value; `NaN` and infinity have no JSON",
        keyHash: key.hash)
    }
  }

  static func tooDeep(_ limits: StoreOptions.Limits, _ key: RecordKey) -> RepositoryError {
    RepositoryError(
      .tooLarge, "expected at most \(limits.jsonDepth) nested levels (`limits.jsonDepth`), found more; raise the limit or split the record",
      keyHash: key.hash)
  }

  /// Returns the error for a record that is over a limit when it is read, or `nil` for a record within the limits.
  ///
  /// The check of the limits does not test whether the record is JSON, because the decoder tests this later.
  static func violation(of limits: StoreOptions.Limits, key: RecordKey, value: UnsafeRawBufferPointer) -> RepositoryError? {
    // The size is checked first, because its check costs nothing. The check of the depth may need a pass over all bytes of the value.
    if let error = sizeViolation(of: limits, key: key, byteCount: value.count) { return error }
    return JSONDepth.exceeds(limits.jsonDepth, in: value) ? tooDeep(limits, key) : nil
  }

  /// Returns the error for a key or a value that is longer than the limits, or `nil` if the key and the value are within the limits.
  static func sizeViolation(of limits: StoreOptions.Limits, key: RecordKey, byteCount: Int) -> RepositoryError? {
    if key.byteCount > limits.keyBytes {
      return RepositoryError(
        .tooLarge,
        "expected a key of at most \(limits.keyBytes) bytes (`limits.keyBytes`), found \(key.byteCount); raise the limit or shorten the id",
        keyHash: key.hash)
    }
    if byteCount > limits.recordBytes {
      return RepositoryError(
        .tooLarge,
        "expected at most \(limits.recordBytes) bytes (`limits.recordBytes`), found \(byteCount); raise the limit or split the record",
        keyHash: key.hash)
    }
    return nil
  }
}
