/// One property of an ordered index, and its direction.
public struct IndexColumn<Item>: Sendable {
  let keyPath: any PartialKeyPath<Item> & Sendable
  let isDescending: Bool
  /// The knowledge of the index values of a type with a raw value; `nil` for other types.
  let rawValues: RawIndexValues?
  let value: @Sendable (Item) -> IndexValue

  /// Returns a column from the least value of the property to its greatest.
  public static func ascending(_ keyPath: any KeyPath<Item, some IndexableValue> & Sendable) -> Self {
    Self(keyPath, isDescending: false)
  }

  /// Returns a column from the greatest value of the property to its least.
  public static func descending(_ keyPath: any KeyPath<Item, some IndexableValue> & Sendable) -> Self {
    Self(keyPath, isDescending: true)
  }

  /// Makes a column of values that are read in some way.
  init(
    keyPath: any PartialKeyPath<Item> & Sendable, isDescending: Bool, rawValues: RawIndexValues? = nil,
    value: @escaping @Sendable (Item) -> IndexValue
  ) {
    self.keyPath = keyPath
    self.isDescending = isDescending
    self.rawValues = rawValues
    self.value = value
  }

  private init<Value: IndexableValue>(_ keyPath: any KeyPath<Item, Value> & Sendable, isDescending: Bool) {
    let rawValues = RawIndexValues.of(Value.self)
    let read = PropertyReader(keyPath)
    self.init(keyPath: keyPath, isDescending: isDescending, rawValues: rawValues) { item in
      let property = read(item)
      let indexValue = property.indexValue
      rawValues?.note(property, indexValue)
      return indexValue
    }
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

/// A reader of one property of values: at its place in memory where the property is stored in the value itself, which costs a fraction of
/// following the key path.
struct PropertyReader<Root, Value>: Sendable {
  private let keyPath: any KeyPath<Root, Value> & Sendable
  /// The distance of the property from the beginning of the value; `nil` for one that is computed, observed, or behind a reference.
  private let offset: Int?

  init(_ keyPath: any KeyPath<Root, Value> & Sendable) {
    self.keyPath = keyPath
    offset = MemoryLayout<Root>.offset(of: keyPath as KeyPath<Root, Value>)
  }

  /// Returns the property of a value.
  func callAsFunction(_ root: Root) -> Value {
    guard let offset else { return root[keyPath: keyPath as KeyPath<Root, Value>] }
    return withUnsafeBytes(of: root) { bytes in
      guard let base = bytes.baseAddress else { return root[keyPath: keyPath as KeyPath<Root, Value>] }
      return base.advanced(by: offset).assumingMemoryBound(to: Value.self).pointee
    }
  }
}
