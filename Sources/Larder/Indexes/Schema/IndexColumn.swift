/// A property of an ordered index, and the direction in which the index sorts it.
///
/// Use columns in the `ordered` of a ``RepositoryIndex`` when a query sorts by several properties in different directions.
public struct IndexColumn<Item>: Sendable {
  let keyPath: any PartialKeyPath<Item> & Sendable
  let isDescending: Bool
  /// The run-time check of a raw-representable property's index values, or `nil` for a property of another type.
  ///
  /// See ``RawIndexValues``.
  let rawValues: RawIndexValues?
  /// Name of the property with its type, or `nil` for a property that is computed or observed.
  ///
  /// A later version of the app may compute another value from the same record, and an index in the storage would not notice.
  let storedName: String?
  let value: @Sendable (Item) -> IndexValue

  /// Returns a column that sorts from the least value of the property to the greatest.
  public static func ascending(_ keyPath: any KeyPath<Item, some IndexableValue> & Sendable) -> Self {
    Self(keyPath, isDescending: false)
  }

  /// Returns a column that sorts from the greatest value of the property to the least.
  public static func descending(_ keyPath: any KeyPath<Item, some IndexableValue> & Sendable) -> Self {
    Self(keyPath, isDescending: true)
  }

  /// Creates a column from a key path and a closure that reads the index value of a record's property.
  init(
    keyPath: any PartialKeyPath<Item> & Sendable, isDescending: Bool, rawValues: RawIndexValues? = nil, storedName: String? = nil,
    value: @escaping @Sendable (Item) -> IndexValue
  ) {
    self.keyPath = keyPath
    self.isDescending = isDescending
    self.rawValues = rawValues
    self.storedName = storedName
    self.value = value
  }

  private init<Value: IndexableValue>(_ keyPath: any KeyPath<Item, Value> & Sendable, isDescending: Bool) {
    let rawValues = RawIndexValues.of(Value.self)
    let read = PropertyReader(keyPath)
    let isStored = MemoryLayout<Item>.offset(of: keyPath as KeyPath<Item, Value>) != nil
    let name = "\(keyPath.propertyName) \(String(reflecting: Value.self))\(isDescending ? " desc" : "")"
    // Without reflection metadata a property is named by its offset, and a private type by its address, which another launch may give to
    // another property or type.
    let storedName = isStored && !name.contains("<offset") && !name.contains("unknown context") ? name : nil
    self.init(keyPath: keyPath, isDescending: isDescending, rawValues: rawValues, storedName: storedName) { item in
      let property = read(item)
      let indexValue = property.indexValue
      // The index value is checked before it enters the index. If the check fails, the index values of the property's type are not exact,
      // and queries that are planned later test the records that the index finds.
      rawValues?.note(property, indexValue)
      return indexValue
    }
  }
}

extension IndexColumn: CustomStringConvertible {
  /// Name of the column's property, followed by `desc` if the column descends.
  public var description: String { keyPath.propertyName + (isDescending ? " desc" : "") }
}

extension AnyKeyPath {
  /// Path of the property without its root type, such as `address.city`, or `(computed)` for a property that has no name at run time.
  var propertyName: String {
    let text = String(describing: self)
    // The description of a computed property holds a memory address, which differs from process to process.
    guard !text.contains("<computed"), let dot = text.firstIndex(of: ".") else { return "(computed)" }
    return String(text[text.index(after: dot)...])
  }
}

/// A fast reader of one property of a value.
///
/// The reader reads a stored property at its offset in memory, at a fraction of the cost of a key path.
struct PropertyReader<Root, Value>: Sendable {
  private let keyPath: any KeyPath<Root, Value> & Sendable
  /// Offset of the property in the value, or `nil` for a property that is computed, observed, or behind a reference.
  private let offset: Int?

  init(_ keyPath: any KeyPath<Root, Value> & Sendable) {
    self.keyPath = keyPath
    // The offset is looked up once for each reader, because a look-up for each record would slow down every build of an index.
    offset = MemoryLayout<Root>.offset(of: keyPath as KeyPath<Root, Value>)
  }

  /// Returns the property of a value.
  func callAsFunction(_ root: Root) -> Value {
    guard let offset else { return root[keyPath: keyPath as KeyPath<Root, Value>] }
    return withUnsafeBytes(of: root) { bytes in
      // `baseAddress` is an optional. If the bytes of the value have no address, the property is read by its key path.
      guard let base = bytes.baseAddress else { return root[keyPath: keyPath as KeyPath<Root, Value>] }
      return base.advanced(by: offset).assumingMemoryBound(to: Value.self).pointee
    }
  }
}
