package import Larder

/// Condition over the fields of a record, as a tree of comparisons.
package indirect enum QueryExpression: Equatable, Sendable {
  /// Operator that compares a field with a value.
  ///
  /// The raw value is its spelling in a query.
  package enum Comparison: String, Sendable, CaseIterable {
    case equal = "="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case contains
    case startsWith = "startswith"
    case endsWith = "endswith"
  }

  case comparison(FieldPath, Comparison, JSONValue)
  case oneOf(FieldPath, [JSONValue])
  // A chain of terms is one list. As a tree of pairs, a long chain would overflow the stack of each recursion over it.
  case and([QueryExpression])
  case or([QueryExpression])
  case not(QueryExpression)

  /// Returns whether a record meets the condition.
  ///
  /// A missing field is null. Values of different kinds are unequal, and neither is less than the other.
  package func matches(_ value: JSONValue, of record: StoredRecord) -> Bool {
    switch self {
    // A comparison with null must find the records that lack the field.
    case .comparison(let path, let comparison, let other): comparison.holds(path.value(in: value, of: record) ?? .null, other)
    case .oneOf(let path, let others):
      others.contains { Comparison.equal.holds(path.value(in: value, of: record) ?? .null, $0) }
    case .and(let terms): terms.allSatisfy { $0.matches(value, of: record) }
    case .or(let terms): terms.contains { $0.matches(value, of: record) }
    case .not(let inner): !inner.matches(value, of: record)
    }
  }
}

extension QueryExpression.Comparison {
  /// Returns whether the comparison holds for two values.
  func holds(_ left: JSONValue, _ right: JSONValue) -> Bool {
    switch self {
    case .equal: ValueOrder.areEqual(left, right)
    case .notEqual: !ValueOrder.areEqual(left, right)
    // `compare` returns `nil` for values of different kinds, and then none of the four orders holds.
    case .less: ValueOrder.compare(left, right) == .less
    case .lessOrEqual: [.less, .equal].contains(ValueOrder.compare(left, right))
    case .greater: ValueOrder.compare(left, right) == .greater
    case .greaterOrEqual: [.greater, .equal].contains(ValueOrder.compare(left, right))
    case .contains: Self.contains(left, right)
    case .startsWith: Self.texts(left, right).map { $0.hasPrefix($1) } ?? false
    case .endsWith: Self.texts(left, right).map { $0.hasSuffix($1) } ?? false
    }
  }

  private static func texts(_ left: JSONValue, _ right: JSONValue) -> (String, String)? {
    guard let left = left.stringValue, let right = right.stringValue else { return nil }
    return (left, right)
  }

  private static func contains(_ left: JSONValue, _ right: JSONValue) -> Bool {
    // `areEqual` compares numbers by value, so that an element 1.0 contains 1.
    if let elements = left.arrayValue { return elements.contains { ValueOrder.areEqual($0, right) } }
    return texts(left, right).map { $1.isEmpty || $0.contains($1) } ?? false
  }
}
