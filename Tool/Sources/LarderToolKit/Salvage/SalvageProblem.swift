internal import Foundation
internal import Larder

/// A place of a damaged store that could not be saved, or that a person should know of.
struct SalvageProblem: Sendable {
  /// The path of the file.
  let file: String
  /// The offset in it, in bytes.
  var offset: Int?
  /// The line of a JSON file, counted from 1.
  var line: Int?
  /// The page of a SQLite database, counted from 1.
  var page: Int?
  /// The row within the page, counted from 1.
  var row: Int?
  /// The collection, as far as it can be read.
  var collection: String?
  /// The key, as far as it can be read; it may be what is damaged.
  var key: RecordKey?
  /// The finding in words.
  let reason: String
  /// Whether something that the store held may be missing in the new one.
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
