internal import Foundation
@_spi(Inspection) internal import Larder

/// What a device knows of a synced record beside its value: the server's revision of it and, while it has edits that the server has not
/// taken, the value that they are based on.
struct SyncEntry: Sendable, Hashable {
  /// The scope that the record is in.
  var scope: String
  /// The server's revision of ``base``, or of the value itself where there are no edits; 0 where the server has no such record.
  var revision = 0
  /// The edits that the server has not taken; `nil` for none.
  var edits: Edits?
  /// The number of the full pass that has last seen the record.
  var pass = 0

  /// Edits that the server has not taken.
  struct Edits: Sendable, Hashable {
    /// The server's value that they were made to; `nil` where the server has no such record.
    var base: StoredValue?
    /// The groups that they belong to: records that share one are pushed all or none.
    var groups: [UInt64] = []
    /// The time of the last of them, in milliseconds since 1970.
    var stamp = 0
    /// Whether they wait for the user, since the server has refused them, or for a newer app.
    var isParked = false
    /// What the server has in a form that only a newer app reads; base and revision stay, so that such an app can merge.
    var held: Held?
  }

  /// A value of the server that this app cannot bring together with the edits.
  struct Held: Sendable, Hashable {
    var revision: Int
    var value: StoredValue
  }

  /// The number of groups that are noted; transactions that would join more are pushed apart.
  static let groupLimit = 64

  var isDirty: Bool { edits != nil }

  static func key(_ collection: String, _ id: RecordKey) -> RecordKey { RecordKey("\(collection)/\(id.text)") }

  /// Returns the collection and the key that an entry's key is made of.
  static func address(_ key: RecordKey) -> RecordAddress? {
    let text = key.text
    guard let slash = text.firstIndex(of: "/") else { return nil }
    return RecordAddress(collection: String(text[..<slash]), key: RecordKey(String(text[text.index(after: slash)...])))
  }
}

extension SyncEntry {
  /// Reads an entry.
  /// - Throws: `.corrupted` for what is none.
  init(_ stored: StoredValue) throws(RepositoryError) {
    let json: JSONValue
    do throws(RepositoryError) { json = try JSONValue(json: stored.json) } catch { throw Self.unreadable }
    guard let scope = json["s"]?.stringValue, let revision = json["r"]?.intValue else { throw Self.unreadable }
    self.init(scope: scope, revision: revision, pass: json["p"]?.intValue ?? 0)
    guard let groups = json["g"]?.arrayValue else { return }
    var edits = Edits(stamp: json["t"]?.intValue ?? 0, isParked: json["x"]?.boolValue ?? false)
    edits.groups = groups.compactMap { $0.intValue.map(UInt64.init) }
    if let base = json["b"], let version = json["v"]?.intValue { edits.base = StoredValue(schemaVersion: version, json: base.json) }
    if let held = json["h"], let version = json["w"]?.intValue, let revision = json["q"]?.intValue {
      edits.held = Held(revision: revision, value: StoredValue(schemaVersion: version, json: held.json))
    }
    self.edits = edits
  }

  /// Reads an entry; `nil` for what is none.
  init?(readable stored: StoredValue) {
    do throws(RepositoryError) { try self.init(stored) } catch { return nil }
  }

  private static var unreadable: RepositoryError {
    RepositoryError(.corrupted, "expected what sync keeps of a record, found something else; was larder.sync.records changed by hand?")
  }

  /// The entry as it is stored: put together as text, since it is made anew with every save.
  var stored: StoredValue {
    var text = "{\"r\":\(revision),\"s\":\"\(scope)\""
    if pass != 0 { text += ",\"p\":\(pass)" }
    guard let edits else { return StoredValue(schemaVersion: 1, json: Data((text + "}").utf8)) }
    text += ",\"t\":\(edits.stamp),\"g\":[\(edits.groups.map(String.init).joined(separator: ","))]"
    if edits.isParked { text += ",\"x\":true" }
    var json = Data(text.utf8)
    if let base = edits.base {
      json.append(contentsOf: ",\"v\":\(base.schemaVersion),\"b\":".utf8)
      json.append(base.json)
    }
    if let held = edits.held {
      json.append(contentsOf: ",\"q\":\(held.revision),\"w\":\(held.value.schemaVersion),\"h\":".utf8)
      json.append(held.value.json)
    }
    json.append(UInt8(ascii: "}"))
    return StoredValue(schemaVersion: 1, json: json)
  }
}
