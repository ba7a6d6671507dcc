public import Foundation
internal import Larder

// Wire/ holds the messages between device and server, as values and as JSON. `Docs/Larder.docc/Formats/SyncWire.md` describes them.
// Invariant: a value that was read from JSON writes the same JSON. Called by the transports, by LarderServer and by simulated servers.

/// A record at the server: its newest value, or a tombstone after its deletion.
public struct SyncRecord: Sendable, Hashable {
  /// The name of the collection.
  public var collection: String
  /// The text of the record's key.
  public var id: String
  /// Commit of the scope that wrote the record.
  ///
  /// 0 for a record that the server has never had or has purged.
  public var revision: Int
  /// The schema version of the value.
  public var version: Int
  /// Time of the edit in milliseconds since 1970, corrected and bounded by the server.
  public var stamp: SyncMilliseconds
  /// Device that wrote the record.
  public var writer: String
  /// Value as JSON, or `nil` for a tombstone.
  public var value: Data?

  /// Creates a record.
  ///
  /// Without a value, it is a tombstone.
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
  /// Revision that the record must have at the server for its group to be accepted.
  ///
  /// 0 requires that the server has no such record, or a tombstone.
  public var base: Int
  /// The schema version of the value.
  public var version: Int
  /// Time of the edit by the device's clock, in milliseconds since 1970.
  public var stamp: SyncMilliseconds
  /// Value as JSON, or `nil` to delete the record.
  public var value: Data?

  /// Creates a record.
  ///
  /// Without a value, it is a deletion.
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
    // `integer` and not `number`, which checks bounds: one bad record would make the whole page unreadable.
    self.init(
      collection: try json.text("in"), id: try json.text("id"), revision: try json.integer("rev"),
      version: try json.integer("version", default: 1), stamp: try json.integer("stamp", default: 0),
      writer: try json.text("by", default: ""),
      value: try json.record())
  }

  var json: JSONValue {
    var json: JSONValue = ["in": .string(collection), "id": .string(id), "rev": JSONValue(revision)]
    // A tombstone leaves out members with their default values, which keeps pages of deletions short.
    if version != 1 || value != nil { json["version"] = JSONValue(version) }
    if stamp != 0 { json["stamp"] = JSONValue(stamp) }
    if !writer.isEmpty { json["by"] = JSONValue(writer) }
    json.put(record: value)
    return json
  }
}

extension PushedRecord {
  init(_ json: WireObject) throws(SyncProblem) {
    // Without a check of bounds, which `SyncPush.check()` makes. A stored push is read without it.
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
  /// Adds the value of a record, or that it is deleted.
  fileprivate mutating func put(record: Data?) {
    // `null` is a value that a record may have, so a deletion has a member of its own.
    guard let record else { return self["deleted"] = true }
    // A stored value is valid JSON. Anything else becomes null here, since no receiver could read the message.
    do throws(RepositoryError) { self["value"] = try JSONValue(json: record) } catch { self["value"] = .null }
  }
}

// arm64_32 is Apple Watch. With 32 bits, `Int` cannot hold milliseconds since 1970.
#if arch(arm64_32) || arch(arm) || arch(i386) || arch(wasm32)
  /// A time of a message: milliseconds since 1970, as `Int64`, because `Int` has 32 bits on this system.
  public typealias SyncMilliseconds = Int64
#else
  /// A time of a message: milliseconds since 1970.
  ///
  /// This is `Int`. On Apple Watch, where `Int` may have 32 bits, it is `Int64`, since milliseconds since 1970 need 41 bits.
  public typealias SyncMilliseconds = Int
#endif
