internal import Foundation

/// One property that a query sorts by.
struct SortColumn<Item: Sendable>: Sendable {
  let keyPath: any PartialKeyPath<Item> & Sendable
  let isReversed: Bool
  /// The value that decides, where the type can be indexed; cursors and indexes need it.
  let value: (@Sendable (Item) -> IndexValue)?
  /// The same value read from a decoded record where it lies, without a copy of the record; `nil` for one of another type.
  ///
  /// Its type does not depend on that of the records: to hand it on costs no look-up of types.
  let valueInPlace: (@Sendable (any DecodedRecord) -> IndexValue?)?
  /// The order of values that have no index values.
  private let order: @Sendable (Item, Item) -> Int

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.init(keyPath, order, isIndexable: Value.self is any IndexableValue.Type) { left, right in
      let (left, right) = (left[keyPath: keyPath], right[keyPath: keyPath])
      return left < right ? -1 : right < left ? 1 : 0
    }
  }

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder) {
    self.init(keyPath, order, isIndexable: Value.self is any IndexableValue.Type) { left, right in
      guard let right = right[keyPath: keyPath] else { return left[keyPath: keyPath] == nil ? 0 : 1 }
      guard let left = left[keyPath: keyPath] else { return -1 }
      return left < right ? -1 : right < left ? 1 : 0
    }
  }

  /// Sorts as an index does.
  init<Value: IndexableValue>(indexed keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    let read = PropertyReader(keyPath)
    value = { read($0).indexValue }
    let type = ObjectIdentifier(DecodedValue<Item>.self)
    valueInPlace = { record in
      ObjectIdentifier(Swift.type(of: record)) == type ? unsafeDowncast(record, to: DecodedValue<Item>.self).indexValue(read) : nil
    }
    self.order = { _, _ in 0 }
  }

  private init<Value>(
    _ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder, isIndexable: Bool,
    _ compare: @escaping @Sendable (Item, Item) -> Int
  ) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    if isIndexable { value = { IndexValue(of: $0[keyPath: keyPath]) } } else { value = nil }
    valueInPlace = nil
    self.order = compare
  }

  /// Returns the order of two items by the column: negative when `left` comes first, 0 when they are equal.
  func compare(_ left: Item, _ right: Item) -> Int {
    let ascending = value.map { $0(left).compared(to: $0(right)).rawValue } ?? order(left, right)
    return isReversed ? -ascending : ascending
  }
}

extension DecodedValue {
  /// Returns the index value of a property.
  ///
  /// Not inlined, as ``copy()``.
  @inline(never) fileprivate func indexValue<Value: IndexableValue>(_ read: PropertyReader<Item, Value>) -> IndexValue {
    read(item).indexValue
  }
}

extension SortColumn: CustomStringConvertible {
  var description: String { keyPath.propertyName + (isReversed ? " desc" : "") }
}
