internal import Foundation
internal import Larder

/// The rules that a record must keep before it is handed to a backend, which checks few of them.
enum RecordRules {
  private static let limits = StoreOptions.Limits()

  /// Whether a name can be that of a collection.
  static func isCollectionName(_ name: String) -> Bool { name.wholeMatch(of: /[A-Za-z0-9_][A-Za-z0-9_.\-]{0,63}/) != nil }

  /// The largest commit of a store that is made: both kinds keep 63 bits, and an app must be able to go on from there.
  static let lastCommit: UInt64 = 1 << 62 - 1
  /// The schema versions that both kinds keep.
  static let schemaVersions = 1...Int(Int32.max)

  /// Returns what is wrong with a key or a value; `nil` where nothing is.
  /// - Parameter json: The value of a new record as JSON, which must not nest deeper than stores allow unless they are told. `nil` for a
  ///   record that a store has held, whose limit may be higher.
  static func problem(_ key: RecordKey, _ value: Data?, json: JSONValue? = nil) -> String? {
    if key.byteCount > limits.keyBytes { return "expected a key of at most \(limits.keyBytes) bytes, found \(key.byteCount)" }
    guard let value else { return nil }
    if value.count > limits.recordBytes { return "expected a value of at most \(limits.recordBytes) bytes, found \(value.count)" }
    if value.isEmpty || value.contains(UInt8(ascii: "\n")) { return "expected a value without a line feed, found one, or no value" }
    // A level takes two bytes.
    if value.count > 2 * limits.jsonDepth, let depth = json.map(depth), depth > limits.jsonDepth {
      return
        "expected a value of at most \(limits.jsonDepth) nested levels, found \(depth): an app with the default limits would not read it"
    }
    return nil
  }

  /// Returns the number of arrays and objects that are in each other; no JSON that was read has more than 128.
  private static func depth(of value: JSONValue) -> Int {
    switch value {
    case .array(let elements): 1 + (elements.lazy.map(depth).max() ?? 0)
    case .object(let object): 1 + (object.names.lazy.compactMap { object[$0] }.map(depth).max() ?? 0)
    default: 0
    }
  }
}
