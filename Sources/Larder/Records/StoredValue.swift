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
