/// An edit of a record's JSON object that a migration step declares.
///
/// ```swift
/// .init(from: 1, .rename("town", to: "place"), .set("unit", "m"), .remove("draft"), .move("zip", to: ["address", "zip"]))
/// ```
///
/// Larder applies the edits of a step in order, to the bytes of the record. An edit needs no type of an old version. Use a closure instead
/// if a new value depends on an old one.
public struct JSONEdit: Hashable, Sendable {
  enum Operation: Hashable, Sendable {
    case set(JSONPath, JSONValue)
    case remove(JSONPath)
    case move(JSONPath, to: JSONPath)
  }

  let operation: Operation

  /// Gives the member at a path another name, in the object that holds it.
  ///
  /// Does nothing without such a member, and replaces a member that has the new name already.
  public static func rename(_ path: JSONPath, to name: String) -> JSONEdit {
    JSONEdit(operation: .move(path, to: JSONPath(path.names.dropLast() + [name])))
  }

  /// Sets the member at a path, whether it is there or not.
  ///
  /// The objects on the way that are missing are made, and values on the way that are not objects are replaced.
  public static func set(_ path: JSONPath, _ value: JSONValue) -> JSONEdit { JSONEdit(operation: .set(path, value)) }

  /// Removes the member at a path, if it is there.
  public static func remove(_ path: JSONPath) -> JSONEdit { JSONEdit(operation: .remove(path)) }

  /// Moves the member at a path to another path.
  ///
  /// Does nothing without such a member. Otherwise the new path is set as ``set(_:_:)`` sets it.
  public static func move(_ path: JSONPath, to newPath: JSONPath) -> JSONEdit { JSONEdit(operation: .move(path, to: newPath)) }
}

/// A path of names from a record's JSON object to a member in it: `"town"`, or `["address", "town"]` for a member of a nested object.
///
/// A text is one name, also if it contains a dot. A path cannot lead into an array.
public struct JSONPath: Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
  /// The names, the outermost first.
  public let names: [String]

  /// Makes a path from its names, the outermost first.
  ///
  /// A path without names leads to no member, so an edit of it changes nothing.
  public init(_ names: [String]) { self.names = names }

  /// Makes a path to a member of the record's object.
  public init(stringLiteral name: String) { self.init([name]) }

  /// Makes a path from its names, the outermost first.
  public init(arrayLiteral names: String...) { self.init(names) }
}

extension JSONObject {
  /// Applies a declared edit.
  mutating func apply(_ edit: JSONEdit) {
    switch edit.operation {
    case .set(let path, let value): set(value, at: path.names)
    case .remove(let path): set(nil, at: path.names)
    case .move(let path, let newPath):
      // A path without names leads nowhere, and the member must not be lost on the way to it.
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
