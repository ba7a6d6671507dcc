internal import Foundation
internal import Larder

/// The rules that a record must keep before it is handed to a backend, which checks few of them.
enum RecordRules {
  private static let limits = StoreOptions.Limits()

  /// Whether a name can be that of a collection.
  static func isCollectionName(_ name: String) -> Bool { name.wholeMatch(of: /[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}/) != nil }

  /// Returns what is wrong with a key or a value; `nil` where nothing is.
  static func problem(_ key: RecordKey, _ value: Data?) -> String? {
    if key.byteCount > limits.keyBytes { return "expected a key of at most \(limits.keyBytes) bytes, found \(key.byteCount)" }
    guard let value else { return nil }
    if value.count > limits.recordBytes { return "expected a value of at most \(limits.recordBytes) bytes, found \(value.count)" }
    if value.isEmpty || value.contains(UInt8(ascii: "\n")) { return "expected a value without a line feed, found one, or no value" }
    return nil
  }
}
