public import Foundation
@_spi(Inspection) internal import Larder

// Wire/ holds what a device and a server say to each other, as values and as JSON: Docs/Larder.docc/Formats describes it.
// Invariant: a value that was read from JSON writes the same JSON. Called by the transports, by LarderServer and by simulated servers.

/// A record as a server has it: its newest value, or its tombstone.
public struct SyncRecord: Sendable, Hashable {
  /// The name of the collection.
  public var collection: String
  /// The text of the record's key.
  public var id: String
  /// The commit of its scope that wrote it; 0 for a record that the server has never had, or has forgotten.
  public var revision: Int
  /// The schema version of the value.
  public var version: Int
  /// The time of the edit in milliseconds since 1970, as the server has bounded it.
  public var stamp: SyncMilliseconds
  /// The device that wrote it.
  public var writer: String
  /// The value as JSON; `nil` for a tombstone.
  public var value: Data?

  /// Makes a record; without a value, a tombstone.
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

/// A record as a device wants it to be.
public struct PushedRecord: Sendable, Hashable {
  /// The name of the collection.
  public var collection: String
  /// The text of the record's key.
  public var id: String
  /// The revision that the record must have at the server for the push to be accepted; 0 where there must be none, or a tombstone.
  public var base: Int
  /// The schema version of the value.
  public var version: Int
  /// The time of the edit by the device's clock, in milliseconds since 1970.
  public var stamp: SyncMilliseconds
  /// The value as JSON; `nil` to delete the record.
  public var value: Data?

  /// Makes a record; without a value, a deletion.
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
    self.init(
      collection: try json.text("in"), id: try json.text("id"), revision: try json.integer("rev"),
      version: try json.integer("version", default: 1), stamp: try json.integer("stamp", default: 0),
      writer: try json.text("by", default: ""),
      value: try json.record())
  }

  var json: JSONValue {
    var json: JSONValue = ["in": .string(collection), "id": .string(id), "rev": JSONValue(revision)]
    if version != 1 || value != nil { json["version"] = JSONValue(version) }
    if stamp != 0 { json["stamp"] = JSONValue(stamp) }
    if !writer.isEmpty { json["by"] = JSONValue(writer) }
    json.put(record: value)
    return json
  }
}

extension PushedRecord {
  init(_ json: WireObject) throws(SyncProblem) {
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
  /// Puts in the value of a record, or that it is deleted.
  fileprivate mutating func put(record: Data?) {
    guard let record else { return self["deleted"] = true }
    // What was stored is JSON; what is not would be refused by whoever reads it.
    do throws(RepositoryError) { self["value"] = try JSONValue(json: record) } catch { self["value"] = .null }
  }
}

#if arch(arm64_32) || arch(arm) || arch(i386) || arch(wasm32)
  /// A time of a message: milliseconds since 1970, as `Int64`, because `Int` has 32 bits on this system.
  public typealias SyncMilliseconds = Int64
#else
  /// A time of a message: milliseconds since 1970.
  ///
  /// This is `Int`. On Apple Watch, where `Int` may have 32 bits, it is `Int64`: the milliseconds since 1970 have 41.
  public typealias SyncMilliseconds = Int
#endif
