internal import Foundation
internal import Larder

/// Finding of a repair: a place that could not be read, or a fact that a person should see.
struct SalvageProblem: Sendable {
  /// Path of the file.
  let file: String
  /// Offset in the file, in bytes.
  var offset: Int?
  /// Line of a JSON file, counted from 1.
  var line: Int?
  /// Page of a SQLite database, counted from 1.
  var page: Int?
  /// Row within the page, counted from 1.
  var row: Int?
  /// Collection, as far as it can be read.
  var collection: String?
  /// Key, as far as it can be read.
  ///
  /// It may itself be damaged.
  var key: RecordKey?
  /// Description of the finding.
  let reason: String
  /// Whether records of the store may be missing in the new one.
  let isLoss: Bool

  init(
    _ file: String, offset: Int? = nil, line: Int? = nil, page: Int? = nil, row: Int? = nil, collection: String? = nil,
    key: RecordKey? = nil,
    _ reason: String, isLoss: Bool = true
  ) {
    self.file = file
    self.offset = offset
    self.line = line
    self.page = page
    self.row = row
    self.collection = collection
    self.key = key
    self.reason = reason
    self.isLoss = isLoss
  }

  /// Returns the problem as one line.
  func line(showingKeys: Bool) -> String {
    var place = file
    if let line { place += ", line \(line)" }
    if let page { place += ", page \(page)" }
    if let row { place += ", row \(row)" }
    if let offset { place += ", byte \(offset)" }
    var text = "\(isLoss ? "lost" : "note"): \(place): \(reason)"
    if let collection { text += " [collection \(collection)]" }
    // A key can be personal data, and reports are sent to others. The hash still identifies the record.
    if let key { text += " [key \(showingKeys ? key.text : key.description)]" }
    return text
  }

  /// Returns the problem as JSON.
  func json(showingKeys: Bool) -> JSONValue {
    var body = JSONObject()
    body["file"] = JSONValue(file)
    body["offset"] = offset.map { JSONValue($0) }
    body["line"] = line.map { JSONValue($0) }
    body["page"] = page.map { JSONValue($0) }
    body["row"] = row.map { JSONValue($0) }
    body["collection"] = collection.map { JSONValue($0) }
    body["keyHash"] = key.map { JSONValue($0.hash) }
    if showingKeys { body["key"] = key.map { JSONValue($0.text) } }
    body["reason"] = JSONValue(reason)
    body["lost"] = JSONValue(isLoss)
    return .object(body)
  }
}
