public import Foundation

extension Query {
  /// Returns the query in an order; the next call orders what is equal in this one, and at last the id decides.
  ///
  /// Texts order as Swift's `String` does, a NaN comes last; for a type that is ``IndexableValue`` too, its index value decides.
  public func sorted<Value: Comparable & Sendable>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(keyPath, order)) }
  }

  /// Returns the query in the order of an optional property, in which `nil` is less than everything.
  public func sorted<Value: Comparable & Sendable>(
    by keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(keyPath, order)) }
  }

  /// Returns the query in the order that an index of the property has: of truth values, where `false` comes first, of enumerations by
  /// their raw value, and of optionals of them, where `nil` comes first.
  public func sorted<Value: IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }

  /// Returns the query in the order that an index of the property has; the same as that of its values.
  public func sorted<Value: Comparable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }

  /// Returns the query in the order that an index of the optional property has, in which `nil` is less than everything.
  public func sorted<Value: Comparable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }
}
