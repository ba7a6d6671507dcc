internal import Larder

/// Order and equality of JSON values.
enum ValueOrder {
  enum Order { case less, equal, greater }

  /// Returns whether two values are equal.
  ///
  /// Numbers are compared by value, so that 1 equals 1.0.
  static func areEqual(_ left: JSONValue, _ right: JSONValue) -> Bool {
    if left.numberValue != nil, right.numberValue != nil { return compare(left, right) == .equal }
    return left == right
  }

  /// Returns the order of two numbers, texts or truth values.
  ///
  /// `nil` for values of different kinds, and for all others.
  static func compare(_ left: JSONValue, _ right: JSONValue) -> Order? {
    switch (left, right) {
    case (.number(let left), .number(let right)): compare(left, right)
    case (.string(let left), .string(let right)): order(left, right)
    case (.bool(let left), .bool(let right)): order(left ? 1 : 0, right ? 1 : 0)
    default: nil
    }
  }

  /// Returns the order of any two values, for sorting: null, truth values, numbers, texts, arrays, objects.
  static func sorting(_ left: JSONValue, _ right: JSONValue) -> Order {
    // A sort needs an order of any two values, also where a comparison in a condition has none.
    compare(left, right) ?? order(rank(left), rank(right))
  }

  private static func rank(_ value: JSONValue) -> Int {
    switch value {
    case .null: 0
    case .bool: 1
    case .number: 2
    case .string: 3
    case .array: 4
    case .object: 5
    }
  }

  private static func compare(_ left: JSONNumber, _ right: JSONNumber) -> Order {
    // A `Double` holds integers exactly only up to 2⁵³.
    if let left = left.exactly(Int128.self), let right = right.exactly(Int128.self) { return order(left, right) }
    return order(left.doubleValue, right.doubleValue)
  }

  private static func order<Value: Comparable>(_ left: Value, _ right: Value) -> Order {
    left < right ? .less : left == right ? .equal : .greater
  }
}
