// Decoding/ decodes a checked text straight into values, without a tree of JSON values.
// Invariant: a text that is malformed anywhere gives no value. Other texts decode as Foundation decodes them, but for a fraction that
// Foundation would round to an integer, which is refused.
// Called by JSONCoder.

internal import Foundation

/// A JSON decoder that reads values straight from bytes, without a tree of values between.
///
/// One pass checks the whole text and notes the place of each value. The decoded type then reads its members at these places.
struct DirectDecoder: Sendable {
  /// Decodes the value of a JSON text.
  ///
  /// Cost: about 25,000 instructions for a record of eleven properties.
  /// - Throws: `DecodingError`, or the error of the type's own `init(from:)`.
  func decode<Value: Decodable>(_ type: Value.Type, from json: Data) throws -> Value {
    try json.withUnsafeBytes { bytes in
      // The largest limit that a store can have. The store checks its own when it loads records.
      let limit = StoreOptions.Limits.maximumDepth
      var scan = JSONScan(bytes, depthLimit: limit)
      switch scan.run() {
      case .valid: break
      case .malformed(let offset): throw Self.corrupted("expected JSON, found something else at byte \(offset)")
      case .tooDeep: throw Self.corrupted("expected at most \(limit) nested levels, found more")
      }
      var text = DecodingText(bytes, scan.entries)
      defer {
        // A type may keep its decoder. Such a decoder gets a copy, because the lent bytes end with this call.
        if !isKnownUniquelyReferenced(&text) { text.keepBytes() }
      }
      return try text.value(type, at: 0, nil)
    }
  }

  private static func corrupted(_ message: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: message))
  }
}
