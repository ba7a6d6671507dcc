internal import Foundation

/// A comparison operator for `where` of a ``Query``, which compares a property with a value.
///
/// Every `Equatable` type has ``equal`` and ``notEqual``. A `Comparable` type also has ``less``, ``lessOrEqual``, ``greater`` and
/// ``greaterOrEqual``.
///
/// ## Topics
///
/// ### Equality
/// - ``equal``
/// - ``notEqual``
///
/// ### Order
/// - ``less``
/// - ``lessOrEqual``
/// - ``greater``
/// - ``greaterOrEqual``
public struct QueryComparison<Value: Equatable & Sendable>: Sendable {
  /// Kinds of comparison that the analysis of predicates distinguishes.
  enum Kind: Sendable {
    case equal
    case notEqual
    case ordered(PredicateExpressions.ComparisonOperator)
  }

  let kind: Kind
  /// Returns true if the comparison holds for the property's value on the left and the given value on the right.
  let holds: @Sendable (Value, Value) -> Bool

  /// The property equals the value: `==`.
  public static var equal: Self { Self(kind: .equal) { $0 == $1 } }

  /// The property differs from the value: `!=`.
  public static var notEqual: Self { Self(kind: .notEqual) { $0 != $1 } }
}

extension QueryComparison where Value: Comparable {
  private init(
    ordered comparison: PredicateExpressions.ComparisonOperator, _ holds: @escaping @Sendable (Value, Value) -> Bool
  ) {
    guard Value.self == String.self, let order = TextOrder(comparison) else {
      self.init(kind: .ordered(comparison), holds: holds)
      return
    }
    self.init(kind: .ordered(comparison)) { left, right in
      order.holds(unsafeBitCast(left, to: String.self), unsafeBitCast(right, to: String.self))
    }
  }

  /// The property is less than the value: `<`.
  public static var less: Self { Self(ordered: .lessThan) { $0 < $1 } }

  /// The property is less than the value or equal to it: `<=`.
  public static var lessOrEqual: Self { Self(ordered: .lessThanOrEqual) { $0 <= $1 } }

  /// The property is greater than the value: `>`.
  public static var greater: Self { Self(ordered: .greaterThan) { $0 > $1 } }

  /// The property is greater than the value or equal to it: `>=`.
  public static var greaterOrEqual: Self { Self(ordered: .greaterThanOrEqual) { $0 >= $1 } }
}

extension Query {
  /// Returns the query for records whose property compares with a value.
  ///
  /// Use `where(_:_:_:)` for comparisons that `#Predicate` cannot express. Examples are a comparison with a case of an enumeration, with a
  /// value of your own type, or with a value that is not `Codable`.
  ///
  /// ```swift
  ///
  /// let piers = Query<Landing>().where(\.kind, .equal, .pier).where(\.rating, .greaterOrEqual, 4)
  ///
  /// ```
  ///
  /// The conditions of a query add up: a record must meet all of them. A declared index of the property answers `.equal` for every
  /// ``IndexableValue``. An index answers comparisons by order for integers, floating-point numbers, `String`, `Date` and `UUID`. For other
  /// types and for `.notEqual`, each record that meets the other conditions is tested.
  ///
  /// - Parameters:
  ///   - keyPath: Property whose value is the left operand.
  ///   - comparison: Comparison operator.
  ///   - value: Right operand. For an optional property, `nil` finds the records without a value.
  public func `where`<Value: Equatable & Sendable>(
    _ keyPath: any KeyPath<Item, Value> & Sendable, _ comparison: QueryComparison<Value>, _ value: Value
  ) -> Self {
    var finding: Finding?
    if let type = IndexedType(Value.self), let indexValue = type.indexValue(value) {
      switch comparison.kind {
      case .equal: finding = type.oneOf(keyPath, [indexValue])
      // No index is used for `!=`, because the condition holds for nearly every record.
      case .notEqual: break
      case .ordered(let order): finding = type.compared(keyPath, by: order, with: indexValue)
      }
    }
    return adding(finding) { comparison.holds($0[keyPath: keyPath], value) }
  }

  /// Returns the query for records whose optional property compares with a value.
  ///
  /// A record whose property is `nil` meets `.notEqual` and no other comparison. In all other respects, `where` for an optional property is
  /// like `where` for a property that is not optional.
  public func `where`<Value: Comparable & Sendable>(
    _ keyPath: any KeyPath<Item, Value?> & Sendable, _ comparison: QueryComparison<Value>, _ value: Value
  ) -> Self {
    switch comparison.kind {
    // Equality compares optionals, so that `nil` differs from every value.
    case .equal: return self.where(keyPath, QueryComparison<Value?>.equal, value)
    case .notEqual: return self.where(keyPath, QueryComparison<Value?>.notEqual, value)
    case .ordered(let order):
      let type = IndexedType(Value.self)
      let finding = type?.indexValue(value).flatMap { type?.compared(keyPath, by: order, with: $0)?.leavingOutNull }
      return adding(finding) { $0[keyPath: keyPath].map { comparison.holds($0, value) } ?? false }
    }
  }

  /// Returns the query for records whose property equals one of the given values.
  ///
  /// A declared index of the property answers the condition for every ``IndexableValue``. An empty list of values matches no record.
  public func `where`<Value: Hashable & Sendable>(
    _ keyPath: any KeyPath<Item, Value> & Sendable, in values: some Sequence<Value>
  ) -> Self {
    let values = Set(values)
    var finding: Finding?
    if let type = IndexedType(Value.self) {
      let indexValues = values.compactMap { type.indexValue($0) }
      // If a value has no index value, the index would not find the records with that value. The index is therefore used only if all given
      // values have index values.
      if indexValues.count == values.count { finding = type.oneOf(keyPath, indexValues) }
    } else if values.isEmpty {
      // An empty list matches no record, even if the property's type has no index values.
      finding = Finding(.never)
    }
    return adding(finding) { values.contains($0[keyPath: keyPath]) }
  }

  private func adding(_ finding: Finding?, _ isMet: @escaping @Sendable (Item) -> Bool) -> Self {
    // A condition that every record meets is left out, because its test for each record would change nothing.
    if case .always = finding?.constraint { return self }
    return adding(
      Conjunct(constraint: finding?.constraint ?? .residual, isExact: finding?.isExact ?? false) { (item) throws(RepositoryError) -> Bool in
        isMet(item)
      })
  }
}

extension Finding {
  /// The finding, narrowed to records whose property is not `nil`, or `nil` if every value meets the condition.
  fileprivate var leavingOutNull: Finding? {
    switch constraint {
    case .range(let path, nil, let upper, let orNotANumber):
      Finding(.range(path, lower: Bound(value: .null, isInclusive: false), upper: upper, orNotANumber: orNotANumber), isExact: isExact)
    case .always: nil
    default: self
    }
  }
}
