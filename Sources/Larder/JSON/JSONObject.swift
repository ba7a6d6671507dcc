internal import Foundation

/// A JSON object whose members a migration step reads and changes.
///
/// Members that a step does not touch keep their values exactly, numbers digit by digit. Names are equal only if their bytes are. There is
/// no order: records are stored with their names sorted.
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  private var members: [RecordKey: JSONValue] = [:]

  /// Makes an object without members.
  public init() {}

  /// Makes an object, in which the last of several members with the same name counts.
  public init(dictionaryLiteral members: (String, JSONValue)...) { self.init(members) }

  init(_ members: [(String, JSONValue)]) {
    for (name, value) in members { self.members[RecordKey(name)] = value }
  }

  /// The value of a member, or `nil` without such a member.
  ///
  /// Set `nil` to remove the member. A member that is present and null is ``JSONValue/null``.
  public subscript(name: String) -> JSONValue? {
    get { members[RecordKey(name)] }
    set { members[RecordKey(name)] = newValue }
    // Nested values are changed in place: `get` and `set` would copy them.
    _modify { yield &members[RecordKey(name)] }
  }

  /// The number of a member, or `nil` for a missing member and for one that is not a number.
  ///
  /// Set `nil` to remove the member. A number that is not finite, which JSON cannot hold, makes the member null.
  @_disfavoredOverload
  public subscript(name: String) -> Double? {
    get { self[name]?.doubleValue }
    set { self[name] = newValue.map { JSONValue($0) } }
  }

  /// The value at a path of names through nested objects, or `nil` without one.
  ///
  /// Setting a value makes the objects on the way that are missing, and replaces values on the way that are not objects. Set `nil` to
  /// remove the member at the end of the path.
  public subscript(name: String, next: String, rest: String...) -> JSONValue? {
    get { rest.reduce(self[name]?[next]) { $0?[$1] } }
    set { set(newValue, at: [name, next] + rest) }
  }

  private mutating func set(_ value: JSONValue?, at path: [String]) {
    // The end of the path: everything before it is an object by now.
    guard let name = path.first, path.count > 1 else {
      if let name = path.first { self[name] = value }
      return
    }
    // Removing a member must not create the objects on the way to it.
    if value == nil, self[name]?.objectValue == nil { return }
    var inner = self[name]?.objectValue ?? JSONObject()
    inner.set(value, at: Array(path.dropFirst()))
    self[name] = .object(inner)
  }

  /// Names of all members, in the order of their bytes.
  public var names: [String] { members.keys.sorted().map(\.text) }

  /// Number of members.
  public var count: Int { members.count }

  /// Gives a member another name.
  ///
  /// Does nothing without such a member, and replaces a member that has the new name already.
  public mutating func rename(_ name: String, to newName: String) {
    guard let value = members.removeValue(forKey: RecordKey(name)) else { return }
    members[RecordKey(newName)] = value
  }

  /// The members in the order of their names' bytes.
  var sorted: [(name: String, value: JSONValue)] {
    // By bytes, as the encoder sorts, so that equal records have equal JSON.
    members.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
  }
}

extension JSONObject {
  /// Reads an object from JSON.
  /// - Throws: `.decodingFailed` for text that is not one JSON object.
  init(json: Data) throws(RepositoryError) {
    guard case .object(let object) = try JSONReader.value(of: json) else {
      throw RepositoryError(.decodingFailed, "expected a JSON object, found another value", offset: 0)
    }
    self = object
  }

  /// The object as one line of JSON with its names sorted.
  var json: Data { JSONWriter.json(of: .object(self)) }
}
