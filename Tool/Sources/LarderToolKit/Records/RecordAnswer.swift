package import Foundation
@_spi(Inspection) package import Larder

/// A record as the command `get` shows it.
package struct RecordAnswer: Answer {
  private let record: StoredRecord
  private let hasRevision: Bool
  /// Whether the value is shown over several lines.
  let isPretty: Bool

  /// Takes a record that has a value.
  package init(_ record: StoredRecord, isRaw: Bool, hasRevision: Bool, isPretty: Bool) {
    (self.record, self.hasRevision, self.isPretty) = (record, hasRevision, isPretty && !isRaw)
  }

  /// The bytes as they are stored.
  package var bytes: Data { record.value ?? Data() }

  private var checksum: String {
    let digits = String(record.checksum, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }

  /// The revision if it is asked for, as a comment that no JSON begins with.
  package var heading: String? {
    guard hasRevision else { return nil }
    let facts = "revision \(record.revision), version \(record.schemaVersion), checksum \(checksum), \(counted(bytes.count, "byte"))"
    return "# \(TerminalText.escaped(record.key.text)): \(facts)"
  }

  /// The heading and the value.
  package func lines(width: Int?) -> [String] {
    let value = isPretty ? record.json.map { PrettyJSON.lines(of: $0) } : nil
    return (heading.map { [$0] } ?? []) + (value ?? [String(decoding: bytes, as: UTF8.self)])
  }

  /// An object with `collection`, `key`, `revision`, `version`, `checksum`, `byteCount` and `value`, or `bytes` in base 64.
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
  /// Writes a record; the value as it is stored unless it is to be read on a terminal.
  package func write(record answer: RecordAnswer) throws(RepositoryError) {
    guard format == .text, !answer.isPretty else { return try write(answer) }
    if let heading = answer.heading { try write(line: heading) }
    try write(bytes: answer.bytes + Data("\n".utf8))
  }
}
