internal import Foundation

/// A property by which a query sorts, with its direction and the closures that compare records by the property.
struct SortColumn<Item: Sendable>: Sendable {
  let keyPath: any PartialKeyPath<Item> & Sendable
  let isReversed: Bool
  /// Returns the property's value as an index value, or `nil` if the property's type is not ``IndexableValue``.
  let value: (@Sendable (Item) -> IndexValue)?
  /// Reads the property's index value from a decoded record in place, without copying the record.
  ///
  /// `valueInPlace` is `nil` for a column that was not made for an ``IndexableValue`` type. The type of the closure does not depend on the
  /// type of the records, so passing the closure to other functions needs no type metadata look-up.
  let valueInPlace: (@Sendable (any DecodedRecord) -> IndexValue?)?
  /// Compares two records by a property whose type has no index values.
  private let order: @Sendable (Item, Item) -> Int

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.init(keyPath, order, isIndexable: Value.self is any IndexableValue.Type) { left, right in
      Self.compare(left[keyPath: keyPath], right[keyPath: keyPath])
    }
  }

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder) {
    self.init(keyPath, order, isIndexable: Value.self is any IndexableValue.Type) { left, right in
      // `nil` sorts before every value, as it does in an index.
      guard let right = right[keyPath: keyPath] else { return left[keyPath: keyPath] == nil ? 0 : 1 }
      guard let left = left[keyPath: keyPath] else { return -1 }
      return Self.compare(left, right)
    }
  }

  /// Creates a column that compares the property's index values, as an index does.
  init<Value: IndexableValue>(indexed keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    let read = PropertyReader(keyPath)
    value = { read($0).indexValue }
    // The downcast is unchecked, so the types are compared first: a repository with another type may have decoded the record.
    let type = ObjectIdentifier(DecodedValue<Item>.self)
    valueInPlace = { record in
      ObjectIdentifier(Swift.type(of: record)) == type ? unsafeDowncast(record, to: DecodedValue<Item>.self).indexValue(read) : nil
    }
    // The closure `order` of an indexed column is never called, because `compare` uses `value` if `value` is set.
    self.order = { _, _ in 0 }
  }

  private init<Value>(
    _ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder, isIndexable: Bool,
    _ compare: @escaping @Sendable (Item, Item) -> Int
  ) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    // If the property's type has index values, the column compares index values and not the property's values. A sort in memory by index
    // values gives the same order as an index.
    if isIndexable { value = { IndexValue(of: $0[keyPath: keyPath]) } } else { value = nil }
    valueInPlace = nil
    self.order = compare
  }

  /// Compares two values of a property whose type has no index values.
  private static func compare<Value: Comparable>(_ left: Value, _ right: Value) -> Int {
    if left < right { return -1 }
    if right < left { return 1 }
    // A value that differs from itself, such as the NaN of a `CGFloat`, is not less than any value. Such a value sorts after all others, as
    // in an index, because a sort needs a place for every value.
    switch (left == left, right == right) {
    case (true, false): return -1
    case (false, true): return 1
    case (true, true), (false, false): return 0
    }
  }

  /// Compares two records by the property, in the direction of the column.
  ///
  /// The result is negative if `left` comes first, and 0 if the property is equal in both records.
  func compare(_ left: Item, _ right: Item) -> Int {
    let ascending = value.map { $0(left).compared(to: $0(right)).rawValue } ?? order(left, right)
    return isReversed ? -ascending : ascending
  }
}

extension DecodedValue {
  /// Returns the index value of a property of the decoded record.
  ///
  /// `indexValue(_:)` is not inlined, because in the caller the type metadata look-up would take longer than reading the property.
  @inline(never) fileprivate func indexValue<Value: IndexableValue>(_ read: PropertyReader<Item, Value>) -> IndexValue {
    read(item).indexValue
  }
}

extension SortColumn: CustomStringConvertible {
  var description: String { keyPath.propertyName + (isReversed ? " desc" : "") }
}
