package import Foundation

/// A value as it is stored.
package struct StoredValue: Sendable, Hashable {
  /// The version of the schema that wrote it.
  package var schemaVersion: Int
  /// The value as JSON.
  package var json: Data

  /// Takes a value.
  package init(schemaVersion: Int, json: Data) {
    self.schemaVersion = schemaVersion
    self.json = json
  }

  /// Whether the JSON has a line feed, which backends do not store.
  ///
  /// Cost: that of `memchr`, since every save asks.
  var hasLineFeed: Bool {
    json.withUnsafeBytes { bytes in bytes.baseAddress.map { memchr($0, 0x0A, bytes.count) != nil } ?? false }
  }

  /// The value with a blank in the place of each line feed.
  ///
  /// JSON has line feeds only between its tokens.
  package var onOneLine: StoredValue {
    hasLineFeed ? StoredValue(schemaVersion: schemaVersion, json: Data(json.map { $0 == 0x0A ? 0x20 : $0 })) : self
  }

  /// The schema versions that every backend stores.
  package static var schemaVersions: ClosedRange<Int> { RecordLimit.schemaVersions }

  /// Returns why the JSON cannot be stored; `nil` for one value without a line feed, nested no deeper than a limit.
  ///
  /// Cost: about a nanosecond a byte.
  package func flaw(depth limit: Int) -> String? {
    switch JSONSyntax.verdict(on: json, depthLimit: limit) {
    case .tooDeep: return "more than \(limit) nested levels"
    case .malformed(let offset): return "no JSON at byte \(offset)"
    case .valid: return hasLineFeed ? "a line feed" : nil
    }
  }
}
