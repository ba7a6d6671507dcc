public import Foundation
internal import Larder

// LarderWire/ holds the messages between device and server, as values and as JSON. `Docs/Larder.docc/Formats/SyncWire.md` describes the
// messages.
// Invariant: a message that was read from JSON, written as JSON and read again is unchanged.
// The transports of the sync engine, LarderServer and simulated servers read and write these messages.

/// A record at the server: its newest value, or a tombstone after its deletion.
public struct SyncRecord: Sendable, Hashable {
  /// The name of the collection.
  public var collection: String
  /// The text of the record's key.
  public var id: String
  /// Number of the commit in the scope that wrote the record.
  ///
  /// The revision is 0 for a record that the server has never had or has purged.
  public var revision: Int
  /// The schema version of the value.
  public var version: Int
  /// Time of the edit in milliseconds since 1970.
  ///
  /// The server has corrected the device's time by the difference of the two clocks, and bounded it by the server's own time.
  public var stamp: SyncMilliseconds
  /// Identifier of the device that wrote the record.
  public var writer: String
  /// Value as JSON, or `nil` for a tombstone.
  public var value: Data?

  /// Creates a record, or a tombstone if `value` is `nil`.
  public init(
    collection: String, id: String, revision: Int, version: Int = 1, stamp: SyncMilliseconds = 0, writer: String = "", value: Data? = nil
  ) {
    self.collection = collection
    self.id = id
    self.revision = revision
    self.version = version
    self.stamp = stamp
    self.writer = writer
    self.value = value
  }
}

/// An edited record in a push: its new value, or its deletion.
public struct PushedRecord: Sendable, Hashable {
  /// The name of the collection.
  public var collection: String
  /// The text of the record's key.
  public var id: String
  /// Revision that the record must have at the server for its transaction group to be accepted.
  ///
  /// A base revision of 0 requires that the server has no such record, or only its tombstone.
  public var base: Int
  /// The schema version of the value.
  public var version: Int
  /// Time of the edit by the device's clock, in milliseconds since 1970.
  public var stamp: SyncMilliseconds
  /// Value as JSON, or `nil` to delete the record.
  public var value: Data?

  /// Creates an edited record, or a deletion if `value` is `nil`.
  public init(collection: String, id: String, base: Int, version: Int = 1, stamp: SyncMilliseconds = 0, value: Data? = nil) {
    self.collection = collection
    self.id = id
    self.base = base
    self.version = version
    self.stamp = stamp
    self.value = value
  }
}

extension SyncRecord {
  init(_ json: WireObject) throws(SyncProblem) {
    // The integers are read with `integer`, which checks no bounds. If the integers were read with `number`, one record out of bounds would
    // make the whole page of changes unreadable.
    self.init(
      collection: try json.text("in"), id: try json.text("id"), revision: try json.integer("rev"),
      version: try json.integer("version", default: 1), stamp: try json.integer("stamp", default: 0),
      writer: try json.text("by", default: ""),
      value: try json.record())
  }

  var json: JSONValue {
    var json: JSONValue = ["in": .string(collection), "id": .string(id), "rev": JSONValue(revision)]
    // Members with default values are left out of a tombstone, so that a page of many deletions is short.
    if version != 1 || value != nil { json["version"] = JSONValue(version) }
    if stamp != 0 { json["stamp"] = JSONValue(stamp) }
    if !writer.isEmpty { json["by"] = JSONValue(writer) }
    json.put(record: value)
    return json
  }
}

extension PushedRecord {
  init(_ json: WireObject) throws(SyncProblem) {
    // The bounds of a pushed record are checked in `SyncPush.check()` and not in this initializer, because a device reads its own stored
    // push without the check.
    self.init(
      collection: try json.text("in"), id: try json.text("id"), base: try json.integer("base"),
      version: try json.integer("version", default: 1), stamp: try json.integer("stamp", default: 0), value: try json.record())
  }

  var json: JSONValue {
    var json: JSONValue = [
      "in": .string(collection), "id": .string(id), "base": JSONValue(base), "version": JSONValue(version), "stamp": JSONValue(stamp),
    ]
    json.put(record: value)
    return json
  }
}

extension JSONValue {
  /// Adds the member `value` with the value of a record, or the member `deleted` if `record` is `nil`.
  fileprivate mutating func put(record: Data?) {
    // A record may have the value `null`, so a deletion is written as a member of its own.
    guard let record else { return self["deleted"] = true }
    // A stored value is valid JSON. Bytes that are no valid JSON are written as null, because they would make the whole message unreadable
    // for its receiver.
    do throws(RepositoryError) { self["value"] = try JSONValue(json: record) } catch { self["value"] = .null }
  }
}

// arm64_32 is the architecture of Apple Watch. An `Int` of 32 bits cannot hold milliseconds since 1970, which need 41 bits.
#if arch(arm64_32) || arch(arm) || arch(i386) || arch(wasm32)
  /// A time in a message: milliseconds since 1970, as `Int64`, because `Int` has 32 bits on this system.
  public typealias SyncMilliseconds = Int64
#else
  /// A time in a message: milliseconds since 1970.
  ///
  /// `SyncMilliseconds` is `Int` on 64-bit systems. On Apple Watch, where `Int` may have 32 bits, `SyncMilliseconds` is `Int64`, because
  /// milliseconds since 1970 need 41 bits.
  public typealias SyncMilliseconds = Int
#endif
