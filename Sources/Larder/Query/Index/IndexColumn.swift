/// One property of an ordered index, and its direction.
public struct IndexColumn<Item>: Sendable {
  let keyPath: any PartialKeyPath<Item> & Sendable
  let isDescending: Bool
  let value: @Sendable (Item) -> IndexValue

  /// The property from its least value to its greatest.
  public static func ascending(_ keyPath: any KeyPath<Item, some IndexableValue> & Sendable) -> Self {
    Self(keyPath: keyPath, isDescending: false) { $0[keyPath: keyPath].indexValue }
  }

  /// The property from its greatest value to its least.
  public static func descending(_ keyPath: any KeyPath<Item, some IndexableValue> & Sendable) -> Self {
    Self(keyPath: keyPath, isDescending: true) { $0[keyPath: keyPath].indexValue }
  }
}

extension IndexColumn: CustomStringConvertible {
  /// The name of the property, with `desc` behind it if it descends.
  public var description: String { keyPath.propertyName + (isDescending ? " desc" : "") }
}

extension AnyKeyPath {
  /// The path without its type, as in `address.city`; a computed property has no name while running.
  var propertyName: String {
    let text = String(describing: self)
    guard !text.contains("<computed"), let dot = text.firstIndex(of: ".") else { return "(computed)" }
    return String(text[text.index(after: dot)...])
  }
}
