internal import Foundation
internal import Larder

/// Limits of names, keys, values and numbers that the tool checks before it writes a record.
///
/// Backends check few of them.
enum RecordRules {
  private static let limits = StoreOptions.Limits()

  /// Returns true if a name is valid for a collection: 1 to 64 letters, digits, `_`, `.` and `-`, not beginning with `.` or `-`.
  static func isCollectionName(_ name: String) -> Bool { name.wholeMatch(of: /[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}/) != nil }

  /// Largest commit in a store that the tool makes.
  ///
  /// Both kinds keep 63 bits, which leaves an app as many commits again.
  static let lastCommit: UInt64 = 1 << 62 - 1
  /// Schema versions that both kinds of stores keep.
  static let schemaVersions = 1...Int(Int32.max)

  /// Returns a description of the first limit that a key or value exceeds.
  ///
  /// `nil` if both are valid.
  /// - Parameter json: Value of a new record as JSON, which must not nest deeper than the default limit. `nil` for a record that a store
  ///   has held, because that store's limit may be higher.
  static func problem(_ key: RecordKey, _ value: Data?, json: JSONValue? = nil) -> String? {
    if key.byteCount > limits.keyBytes { return "expected a key of at most \(limits.keyBytes) bytes, found \(key.byteCount)" }
    guard let value else { return nil }
    if value.count > limits.recordBytes { return "expected a value of at most \(limits.recordBytes) bytes, found \(value.count)" }
    // A JSON main file has one record on each line.
    if value.isEmpty || value.contains(UInt8(ascii: "\n")) { return "expected a value without a line feed, found one, or no value" }
    // A level takes at least two bytes, so a short value is not walked through.
    if value.count > 2 * limits.jsonDepth, let depth = json.map(depth), depth > limits.jsonDepth {
      return
        "expected a value of at most \(limits.jsonDepth) nested levels, found \(depth): an app with the default limits would not read it"
    }
    return nil
  }

  /// Returns the nesting depth of arrays and objects.
  ///
  /// The recursion is safe, because the parser accepts at most 128 levels.
  private static func depth(of value: JSONValue) -> Int {
    switch value {
    case .array(let elements): 1 + (elements.lazy.map(depth).max() ?? 0)
    case .object(let object): 1 + (object.names.lazy.compactMap { object[$0] }.map(depth).max() ?? 0)
    default: 0
    }
  }
}
