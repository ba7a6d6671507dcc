internal import Foundation

/// The limits of a record, the same when it is saved and when it is read.
enum RecordLimit {
  /// Checks what a migration has made: that it is within the limits, and JSON.
  /// - Throws: `.tooLarge`, `.encodingFailed`.
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

  /// Returns what is over a limit in a record that is read; whether it is JSON is seen when it is decoded.
  static func violation(of limits: StoreOptions.Limits, key: RecordKey, value: UnsafeRawBufferPointer) -> RepositoryError? {
    if let error = sizeViolation(of: limits, key: key, byteCount: value.count) { return error }
    return JSONDepth.exceeds(limits.jsonDepth, in: value) ? tooDeep(limits, key) : nil
  }

  /// Returns the error for a key or a value that is longer than the limits.
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
