internal import Foundation

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
