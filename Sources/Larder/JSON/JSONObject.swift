internal import Foundation

/// A JSON object, whose members a migration step can read and change.
///
/// Members that a migration step does not change keep their values exactly, and numbers keep every digit. Two names are equal only if their
/// UTF-8 bytes are equal. The members have no order, because records are stored with their names sorted.
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  private var members: [RecordKey: JSONValue] = [:]

  /// Creates an object without members.
  public init() {}

  /// Creates an object, and keeps the last value if several members have the same name.
  public init(dictionaryLiteral members: (String, JSONValue)...) { self.init(members) }

  init(_ members: [(String, JSONValue)]) {
    for (name, value) in members { self.members[RecordKey(name)] = value }
  }

  /// The value of a member, or `nil` if the object has no member with this name.
  ///
  /// Set `nil` to remove the member. A member whose JSON value is null has the value ``JSONValue/null``.
  public subscript(name: String) -> JSONValue? {
    get { members[RecordKey(name)] }
    set { members[RecordKey(name)] = newValue }
    // `_modify` changes a nested value in place. Without `_modify`, each change of a nested value would copy it through `get` and `set`.
    _modify { yield &members[RecordKey(name)] }
  }

  /// The number of a member, or `nil` if the member is missing or is not a number.
  ///
  /// Set `nil` to remove the member. If you set a number that is not finite, which JSON cannot hold, the member becomes null.
  @_disfavoredOverload
  public subscript(name: String) -> Double? {
    get { self[name]?.doubleValue }
    set { self[name] = newValue.map { JSONValue($0) } }
  }

  /// The value at a path of names through nested objects, or `nil` if the path leads to no member.
  ///
  /// Setting a value creates the objects that are missing on the path, and replaces values on the path that are not objects. Set `nil` to
  /// remove the member at the end of the path.
  public subscript(name: String, next: String, rest: String...) -> JSONValue? {
    get { rest.reduce(self[name]?[next]) { $0?[$1] } }
    set { set(newValue, at: [name, next] + rest) }
  }

  mutating func set(_ value: JSONValue?, at path: [String]) {
    // A path of one name is the end of the recursion: the calls of `set` for the outer objects have found or created every object on the
    // path.
    guard let name = path.first, path.count > 1 else {
      if let name = path.first { self[name] = value }
      return
    }
    // Removing a member must not create the missing objects on the path to it.
    if value == nil, self[name]?.objectValue == nil { return }
    var inner = self[name]?.objectValue ?? JSONObject()
    inner.set(value, at: Array(path.dropFirst()))
    self[name] = .object(inner)
  }

  /// Names of all members, in the order of their UTF-8 bytes.
  public var names: [String] { members.keys.sorted().map(\.text) }

  /// Number of members of the object.
  public var count: Int { members.count }

  /// Renames a member of the object.
  ///
  /// If the object has no member `name`, the call does nothing. If another member already has the new name, that member is replaced.
  public mutating func rename(_ name: String, to newName: String) {
    guard let value = members.removeValue(forKey: RecordKey(name)) else { return }
    members[RecordKey(newName)] = value
  }

  /// The members in the order of their names' UTF-8 bytes.
  var sorted: [(name: String, value: JSONValue)] {
    // The members are sorted by bytes, as the encoder sorts them, so that an object and an encoded value with equal contents have equal
    // JSON.
    members.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
  }
}

extension JSONObject {
  /// Creates an object from JSON text.
  ///
  /// - Throws: `.decodingFailed` if the text is not one JSON object.
  init(json: Data) throws(RepositoryError) {
    guard case .object(let object) = try JSONReader.value(of: json) else {
      throw RepositoryError(.decodingFailed, "expected a JSON object, found another value", offset: 0)
    }
    self = object
  }

  /// The object as one line of JSON, with names sorted by their UTF-8 bytes.
  var json: Data { JSONWriter.json(of: .object(self)) }
}
