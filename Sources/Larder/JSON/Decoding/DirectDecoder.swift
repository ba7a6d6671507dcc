internal import Foundation

/// A decoder of values straight from the bytes of JSON.
///
/// One pass checks the whole text and notes where each value is; the type that is decoded then picks its own.
struct DirectDecoder: Sendable {
  /// Returns the value of a text.
  ///
  /// Cost: about 25,000 instructions for a record of eleven properties.
  /// - Throws: `DecodingError`; what the type itself throws.
  func decode<Value: Decodable>(_ type: Value.Type, from json: Data) throws -> Value {
    try json.withUnsafeBytes { bytes in
      let limit = StoreOptions.Limits.maximumDepth
      var scan = JSONScan(bytes, depthLimit: limit)
      switch scan.run() {
      case .valid: break
      case .malformed(let offset): throw Self.corrupted("expected JSON, found something else at byte \(offset)")
      case .tooDeep: throw Self.corrupted("expected at most \(limit) nested levels, found more")
      }
      var text = DecodingText(bytes, scan.entries)
      defer {
        // A decoder that the value has kept must not read what is gone.
        if !isKnownUniquelyReferenced(&text) { text.keepBytes() }
      }
      return try text.value(type, at: 0, nil)
    }
  }

  private static func corrupted(_ message: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: message))
  }
}
