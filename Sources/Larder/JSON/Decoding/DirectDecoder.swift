// Decoding/ decodes a checked JSON text straight into values, without a tree of JSON values.
// Invariant: a text that is malformed anywhere gives no value. A well-formed text decodes as Foundation decodes it, with the exceptions
// that Docs/Design/0012 lists.
// Called by JSONCoder.

internal import Foundation

/// A JSON decoder that reads values straight from bytes, without a tree of JSON values in between.
///
/// One pass over the bytes checks the whole text and records the position of each value. The decoded type reads its members at the recorded
/// positions.
struct DirectDecoder: Sendable {
  /// Decodes the value of a JSON text.
  ///
  /// Cost: about 25,000 instructions for a record of eleven properties.
  /// - Throws: `DecodingError`, or the error of the type's own `init(from:)`.
  func decode<Value: Decodable>(_ type: Value.Type, from json: Data) throws -> Value {
    try json.withUnsafeBytes { bytes in
      // The limit is 128, the largest depth limit that a store can have. A store with a lower depth limit has checked its records when it
      // loaded them.
      let limit = StoreOptions.Limits.maximumDepth
      var scan = JSONScan(bytes, depthLimit: limit)
      switch scan.run() {
      case .valid: break
      case .malformed(let offset): throw Self.corrupted("expected JSON, found something else at byte \(offset)")
      case .tooDeep: throw Self.corrupted("expected at most \(limit) nested levels, found more")
      }
      var text = DecodingText(bytes, scan.entries)
      defer {
        // A type may keep its decoder. The JSON bytes are valid only during the call of `decode`, so a kept decoder needs a copy of the
        // bytes.
        if !isKnownUniquelyReferenced(&text) { text.keepBytes() }
      }
      return try text.value(type, at: 0, nil)
    }
  }

  private static func corrupted(_ message: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: message))
  }
}
