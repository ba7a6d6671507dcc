internal import Foundation

/// A property that a query sorts by, with its direction and the functions that compare it.
struct SortColumn<Item: Sendable>: Sendable {
  let keyPath: any PartialKeyPath<Item> & Sendable
  let isReversed: Bool
  /// Reads the index value that cursors and indexes need, or `nil` if the type cannot be indexed.
  let value: (@Sendable (Item) -> IndexValue)?
  /// Reads the same value from a decoded record in place, without a copy of the record.
  ///
  /// `nil` for a column that has no such reader.
  ///
  /// The closure's type does not depend on the type of the records, so passing it on costs no look-up of types.
  let valueInPlace: (@Sendable (any DecodedRecord) -> IndexValue?)?
  /// Compares values that have no index values.
  private let order: @Sendable (Item, Item) -> Int

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.init(keyPath, order, isIndexable: Value.self is any IndexableValue.Type) { left, right in
      let (left, right) = (left[keyPath: keyPath], right[keyPath: keyPath])
      return left < right ? -1 : right < left ? 1 : 0
    }
  }

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder) {
    self.init(keyPath, order, isIndexable: Value.self is any IndexableValue.Type) { left, right in
      // `nil` comes before every value, as in an index.
      guard let right = right[keyPath: keyPath] else { return left[keyPath: keyPath] == nil ? 0 : 1 }
      guard let left = left[keyPath: keyPath] else { return -1 }
      return left < right ? -1 : right < left ? 1 : 0
    }
  }

  /// Creates a column that sorts by index values, as an index does.
  init<Value: IndexableValue>(indexed keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    let read = PropertyReader(keyPath)
    value = { read($0).indexValue }
    // Compared before the unchecked downcast: a repository of another type may have decoded the record.
    let type = ObjectIdentifier(DecodedValue<Item>.self)
    valueInPlace = { record in
      ObjectIdentifier(Swift.type(of: record)) == type ? unsafeDowncast(record, to: DecodedValue<Item>.self).indexValue(read) : nil
    }
    // Never called, because `value` decides.
    self.order = { _, _ in 0 }
  }

  private init<Value>(
    _ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder, isIndexable: Bool,
    _ compare: @escaping @Sendable (Item, Item) -> Int
  ) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    // Index values are compared where there are any, so that a sort agrees with an index.
    if isIndexable { value = { IndexValue(of: $0[keyPath: keyPath]) } } else { value = nil }
    valueInPlace = nil
    self.order = compare
  }

  /// Compares two items by the column: negative if `left` comes first, 0 if they are equal.
  func compare(_ left: Item, _ right: Item) -> Int {
    let ascending = value.map { $0(left).compared(to: $0(right)).rawValue } ?? order(left, right)
    return isReversed ? -ascending : ascending
  }
}

extension DecodedValue {
  /// Returns the index value of a property of the decoded record.
  ///
  /// Not inlined, for the reason that ``copy()`` gives: the look-up of the type would take longer than the read.
  @inline(never) fileprivate func indexValue<Value: IndexableValue>(_ read: PropertyReader<Item, Value>) -> IndexValue {
    read(item).indexValue
  }
}

extension SortColumn: CustomStringConvertible {
  var description: String { keyPath.propertyName + (isReversed ? " desc" : "") }
}
