package import Foundation
@_spi(Inspection) package import Larder

/// Output of the command `get` for one record.
package struct RecordAnswer: Answer {
  private let record: StoredRecord
  private let hasRevision: Bool
  /// Whether the value is formatted over several lines.
  let isPretty: Bool

  /// Creates the output for a record, which must not be a tombstone.
  package init(_ record: StoredRecord, isRaw: Bool, hasRevision: Bool, isPretty: Bool) {
    (self.record, self.hasRevision, self.isPretty) = (record, hasRevision, isPretty && !isRaw)
  }

  /// The value's bytes as they are stored.
  package var bytes: Data { record.value ?? Data() }

  private var checksum: String {
    // Eight digits, as in the lines of a main file, so that the two can be compared by a text search.
    let digits = String(record.checksum, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }

  /// Line with revision, version, checksum and size, if it was requested.
  ///
  /// It begins with `#`, as no JSON does.
  package var heading: String? {
    guard hasRevision else { return nil }
    let facts = "revision \(record.revision), version \(record.schemaVersion), checksum \(checksum), \(counted(bytes.count, "byte"))"
    return "# \(TerminalText.escaped(record.key.text)): \(facts)"
  }

  /// Returns the heading and the value.
  package func lines(width: Int?) -> [String] {
    // Bytes that are not JSON cannot be formatted, and are shown as text.
    let value = isPretty ? record.json.map { PrettyJSON.lines(of: $0) } : nil
    return (heading.map { [$0] } ?? []) + (value ?? [String(decoding: bytes, as: UTF8.self)])
  }

  /// JSON object with `collection`, `key`, `revision`, `version`, `checksum`, `byteCount`, and `value` or, in base 64, `bytes`.
  package var json: JSONValue {
    var body = JSONObject()
    body["collection"] = JSONValue(record.collection)
    body["key"] = JSONValue(record.key.text)
    body["revision"] = JSONValue(record.revision.number)
    body["version"] = JSONValue(record.schemaVersion)
    body["checksum"] = JSONValue(checksum)
    body["byteCount"] = JSONValue(bytes.count)
    if let value = record.json { body["value"] = value } else { body["bytes"] = JSONValue(bytes.base64EncodedString()) }
    return .object(body)
  }
}

extension Console {
  /// Writes a record.
  ///
  /// The value is written byte for byte to a file or pipe, unless it is a part of JSON output.
  package func write(record answer: RecordAnswer) throws(RepositoryError) {
    guard format == .text, !answer.isPretty else { return try write(answer) }
    if let heading = answer.heading { try write(line: heading) }
    // `get` in a script must give the bytes that the store holds.
    try write(storedLine: answer.bytes)
  }
}
