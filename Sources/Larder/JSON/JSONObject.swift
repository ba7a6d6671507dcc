internal import Foundation

/// The members of a JSON object, as a migration step changes them.
///
/// Members that a step does not touch keep their values exactly, numbers digit by digit. Names are equal only if their bytes are. There is
/// no order: records are stored with their names sorted.
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  private var members: [RecordKey: JSONValue] = [:]

  /// Makes an object without members.
  public init() {}

  /// Makes an object; of two members with one name the last one holds.
  public init(dictionaryLiteral members: (String, JSONValue)...) { self.init(members) }

  init(_ members: [(String, JSONValue)]) {
    for (name, value) in members { self.members[RecordKey(name)] = value }
  }

  /// The value of a member; `nil` when there is no such member, and setting `nil` takes it out.
  ///
  /// A member that is there and null is ``JSONValue/null``.
  public subscript(name: String) -> JSONValue? {
    get { members[RecordKey(name)] }
    set { members[RecordKey(name)] = newValue }
    _modify { yield &members[RecordKey(name)] }
  }

  /// The number of a member; `nil` when there is no such member, or it is not a number.
  ///
  /// Setting `nil` takes the member out; a number that is not finite, which JSON cannot hold, makes it null.
  @_disfavoredOverload
  public subscript(name: String) -> Double? {
    get { self[name]?.doubleValue }
    set { self[name] = newValue.map { JSONValue($0) } }
  }

  /// The value at a path of names, through objects in objects; `nil` when there is none.
  ///
  /// Setting a value makes the objects on the way that are missing, in place of whatever else is there; setting `nil` takes the member out.
  public subscript(name: String, next: String, rest: String...) -> JSONValue? {
    get { rest.reduce(self[name]?[next]) { $0?[$1] } }
    set { set(newValue, at: [name, next] + rest) }
  }

  private mutating func set(_ value: JSONValue?, at path: [String]) {
    guard let name = path.first, path.count > 1 else {
      if let name = path.first { self[name] = value }
      return
    }
    if value == nil, self[name]?.objectValue == nil { return }
    var inner = self[name]?.objectValue ?? JSONObject()
    inner.set(value, at: Array(path.dropFirst()))
    self[name] = .object(inner)
  }

  /// The names of all members, in the order of their bytes.
  public var names: [String] { members.keys.sorted().map(\.text) }

  /// The number of members.
  public var count: Int { members.count }

  /// Gives a member another name; does nothing when there is no such member, and replaces one that has the new name.
  public mutating func rename(_ name: String, to newName: String) {
    guard let value = members.removeValue(forKey: RecordKey(name)) else { return }
    members[RecordKey(newName)] = value
  }

  /// The members in the order of their names' bytes.
  var sorted: [(name: String, value: JSONValue)] {
    members.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
  }
}

extension JSONObject {
  /// Reads an object.
  /// - Throws: `.decodingFailed` for what is not one JSON object.
  init(json: Data) throws(RepositoryError) {
    guard case .object(let object) = try JSONReader.value(of: json) else {
      throw RepositoryError(.decodingFailed, "expected a JSON object, found another value", offset: 0)
    }
    self = object
  }

  /// The object as one line of JSON, names sorted.
  var json: Data { JSONWriter.json(of: .object(self)) }
}
