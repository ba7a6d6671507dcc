/// An edit of a record's JSON object that a migration step declares.
///
/// ```swift
/// .init(from: 1, .rename("town", to: "place"), .set("unit", "m"), .remove("draft"), .move("zip", to: ["address", "zip"]))
/// ```
///
/// Larder applies the edits of a migration step in order to the JSON of each record. An edit does not need the Swift type of an old schema
/// version. If a new value depends on an old value, use a closure in the migration step instead of an edit.
public struct JSONEdit: Hashable, Sendable {
  enum Operation: Hashable, Sendable {
    case set(JSONPath, JSONValue)
    case remove(JSONPath)
    case move(JSONPath, to: JSONPath)
  }

  let operation: Operation

  /// Renames the member at a path, within the object that holds the member.
  ///
  /// If there is no member at the path, the edit does nothing. If another member of the object already has the new name, the edit replaces
  /// that member.
  public static func rename(_ path: JSONPath, to name: String) -> JSONEdit {
    JSONEdit(operation: .move(path, to: JSONPath(path.names.dropLast() + [name])))
  }

  /// Sets the member at a path to a value, and adds the member if it does not exist.
  ///
  /// The edit creates the objects that are missing along the path, and replaces values along the path that are not objects by objects.
  public static func set(_ path: JSONPath, _ value: JSONValue) -> JSONEdit { JSONEdit(operation: .set(path, value)) }

  /// Removes the member at a path, or does nothing if there is no such member.
  public static func remove(_ path: JSONPath) -> JSONEdit { JSONEdit(operation: .remove(path)) }

  /// Moves the member at a path to another path.
  ///
  /// If there is no member at the path, the edit does nothing. If there is a member at the path, the edit removes the member and sets its
  /// value at the new path as ``set(_:_:)`` does.
  public static func move(_ path: JSONPath, to newPath: JSONPath) -> JSONEdit { JSONEdit(operation: .move(path, to: newPath)) }
}

/// A path of names in a record's JSON object: `"town"` for a member of the object, `["address", "town"]` for a member of a nested object.
///
/// A string literal is one name, even if the string contains a dot. A path cannot lead to an element of an array.
public struct JSONPath: Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
  /// The names of the members along the path, from the outermost to the innermost.
  public let names: [String]

  /// Makes a path from its names, the outermost first.
  ///
  /// A path without names leads to no member, so an edit with such a path changes nothing.
  public init(_ names: [String]) { self.names = names }

  /// Creates a path to a member of the record's JSON object.
  public init(stringLiteral name: String) { self.init([name]) }

  /// Makes a path from its names, the outermost first.
  public init(arrayLiteral names: String...) { self.init(names) }
}

extension JSONObject {
  /// Applies an edit that a migration step declares.
  mutating func apply(_ edit: JSONEdit) {
    switch edit.operation {
    case .set(let path, let value): set(value, at: path.names)
    case .remove(let path): set(nil, at: path.names)
    case .move(let path, let newPath):
      // A new path without names leads to no member, and moving a member to it would remove the member.
      guard !newPath.names.isEmpty, let value = value(at: path.names) else { return }
      set(nil, at: path.names)
      set(value, at: newPath.names)
    }
  }

  private func value(at path: [String]) -> JSONValue? {
    guard let first = path.first else { return nil }
    return path.dropFirst().reduce(self[first]) { $0?.objectValue?[$1] }
  }
}
