internal import Foundation

/// One property that a query sorts by.
struct SortColumn<Item>: Sendable {
  let keyPath: any PartialKeyPath<Item> & Sendable
  let isReversed: Bool
  /// The value that decides, where the type can be indexed; cursors and indexes need it.
  let value: (@Sendable (Item) -> IndexValue)?
  private let order: @Sendable (Item, Item) -> Int

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    value = Self.value(at: keyPath, isIndexable: Value.self is any IndexableValue.Type)
    let isLess = Self.order(of: Value.self)
    self.order = { left, right in
      let (left, right) = (left[keyPath: keyPath], right[keyPath: keyPath])
      return isLess(left, right) ? -1 : isLess(right, left) ? 1 : 0
    }
  }

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    value = Self.value(at: keyPath, isIndexable: Value.self is any IndexableValue.Type)
    let isLess = Self.order(of: Value.self)
    self.order = { left, right in
      guard let right = right[keyPath: keyPath] else { return left[keyPath: keyPath] == nil ? 0 : 1 }
      guard let left = left[keyPath: keyPath] else { return -1 }
      return isLess(left, right) ? -1 : isLess(right, left) ? 1 : 0
    }
  }

  /// Sorts as an index does.
  init<Value: IndexableValue>(indexed keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    value = { $0[keyPath: keyPath].indexValue }
    self.order = { left, right in
      left[keyPath: keyPath].indexValue.compared(to: right[keyPath: keyPath].indexValue).rawValue
    }
  }

  private static func value<Value>(
    at keyPath: any KeyPath<Item, Value> & Sendable, isIndexable: Bool
  ) -> (@Sendable (Item) -> IndexValue)? {
    guard isIndexable else { return nil }
    return { IndexValue(of: $0[keyPath: keyPath]) }
  }

  /// Returns the order of a type's values, total also where `<` is not: what does not equal itself, a NaN, comes last.
  private static func order<Value: Comparable & Sendable>(of type: Value.Type) -> @Sendable (Value, Value) -> Bool {
    guard type == Double.self || type == Float.self || type == Date.self else { return { $0 < $1 } }
    return { left, right in left == left && (right != right || left < right) }
  }

  /// Returns the order of two items by the column: negative when `left` comes first, 0 when they are equal.
  func compare(_ left: Item, _ right: Item) -> Int { isReversed ? order(right, left) : order(left, right) }
}

extension SortColumn: CustomStringConvertible {
  var description: String { keyPath.propertyName + (isReversed ? " desc" : "") }
}
