import Foundation

extension PredicateExpressions.Equal: AnalyzableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    guard let type = IndexedType(LHS.Output.self) else { return nil }
    if let path = scope.path(of: lhs), let value = scope.constant(rhs).flatMap({ type.indexValue($0) }) { return type.oneOf(path, [value]) }
    // The constant may be on the left side, as in `4 == $0.rating`.
    if let path = scope.path(of: rhs), let value = scope.constant(lhs).flatMap({ type.indexValue($0) }) { return type.oneOf(path, [value]) }
    return nil
  }
}

extension PredicateExpressions.Comparison: AnalyzableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    // The property's type must define `<` in the order of its index values. If `<` had another order, a range of an index would select the
    // wrong records.
    guard let type = IndexedType(LHS.Output.self), type.isOrdered else { return nil }
    if let path = scope.path(of: lhs), let value = scope.constant(rhs).flatMap({ type.indexValue($0) }) {
      return type.compared(path, by: op, with: value)
    }
    if let path = scope.path(of: rhs), let value = scope.constant(lhs).flatMap({ type.indexValue($0) }) {
      // If the constant is the left operand, the operator is mirrored: `4 < x` is `x > 4`.
      return type.compared(path, by: op.mirrored, with: value)
    }
    return nil
  }
}

extension PredicateExpressions.RangeExpressionContains: AnalyzableExpression
where RangeExpression: StandardPredicateExpression, Element: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    // An index can answer only a range with constant bounds. A range that depends on the record is tested for each record.
    guard let path = scope.path(of: element), let range = scope.constant(self.range) as? any ConstantRange else { return nil }
    return range.finding(path)
  }
}

extension PredicateExpressions.SequenceContains: AnalyzableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    guard let path = scope.path(of: element), let all = scope.constant(sequence) else { return nil }
    // A range such as `1..<5` may be used as a sequence. An index answers a range by its bounds and not by the list of its elements.
    if let range = all as? any ConstantRange { return range.finding(path) }
    // A sequence type may define its own `contains`. Only the types that conform to `ConstantList` are known to compare a value with each
    // element.
    guard all is any ConstantList, let type = IndexedType(RHS.Output.self) else { return nil }
    let values = all.map { type.indexValue($0) }
    return type.oneOf(path, values.compactMap { $0 })
  }
}

extension PredicateExpressions.SequenceStartsWith: AnalyzableExpression
where Base: StandardPredicateExpression, Prefix: StandardPredicateExpression {
  /// Returns the range of texts that contains all texts with an ASCII prefix.
  ///
  /// The range also contains texts without the prefix, so the finding is not exact. For example, "ab" followed by a combining accent is in
  /// the range of "ab", but its second character is not "b".
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    guard Base.Output.self == String.self, let path = scope.path(of: base), let prefix = scope.constant(self.prefix) as? String,
      let last = prefix.unicodeScalars.last, prefix.unicodeScalars.allSatisfy(\.isASCII)
    else { return nil }
    var end = String(prefix.unicodeScalars.dropLast())
    // The upper bound of the range is the prefix with the successor of its last scalar. The last scalar is ASCII and so at most 127, and
    // the successor of an ASCII scalar is always a valid scalar.
    end.unicodeScalars.append(Unicode.Scalar(UInt8(last.value + 1)))
    return Finding(
      .range(
        path, lower: Bound(value: IndexValue(prefix), isInclusive: true), upper: Bound(value: IndexValue(end), isInclusive: false),
        orNotANumber: false),
      isExact: false)
  }
}

extension PredicateExpressions.Negation: AnalyzableExpression where Wrapped: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    // The negation of a Boolean property holds if the property equals `false`.
    if let path = scope.path(of: wrapped) { return Finding(.equal(path, IndexValue(false))) }
    return switch (wrapped as? any AnalyzableExpression)?.finding(in: scope)?.constraint {
    case .never: Finding(.always)
    case .always: Finding(.never)
    default: nil
    }
  }
}

extension PredicateExpressions.Disjunction: AnalyzableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    // If one side of a disjunction has no constraint, any record may meet that side. An index would find only the records that meet the
    // other side, so no index can answer the disjunction.
    guard let left = (lhs as? any AnalyzableExpression)?.finding(in: scope),
      let right = (rhs as? any AnalyzableExpression)?.finding(in: scope)
    else { return nil }
    switch (left.constraint, right.constraint) {
    case (.always, _), (_, .always): return Finding(.always)
    // If no record meets one side, the disjunction is equivalent to its other side.
    case (.never, _): return right
    case (_, .never): return left
    default: break
    }
    guard let (path, values) = left.constraint.values, let (otherPath, otherValues) = right.constraint.values,
      path.isSame(as: otherPath)
    else { return nil }
    return Finding(.oneOf(path, among: values + otherValues), isExact: left.isExact && right.isExact)
  }
}

extension Constraint {
  /// Key path and values of an equality constraint, or `nil` for any other constraint.
  fileprivate var values: (ItemPath, [IndexValue])? {
    switch self {
    case .equal(let path, let value): (path, [value])
    case .oneOf(let path, let values): (path, values)
    default: nil
    }
  }
}

/// A collection that stores its elements, so that `contains` holds for a value that equals one of them.
private protocol ConstantList {}
extension Array: ConstantList {}
extension ArraySlice: ConstantList {}
extension ContiguousArray: ConstantList {}
extension Set: ConstantList {}

/// A range with constant bounds, which an index on the property of the range can answer.
private protocol ConstantRange {
  func finding(_ path: ItemPath) -> Finding?
}

private func finding<Bounds>(_ path: ItemPath, lower: Bounds?, upper: Bounds?, includesUpper: Bool) -> Finding? {
  guard let type = IndexedType(Bounds.self) else { return nil }
  let lower = lower.flatMap { type.indexValue($0) }.map { Bound(value: $0, isInclusive: true) }
  let upper = upper.flatMap { type.indexValue($0) }.map { Bound(value: $0, isInclusive: includesUpper) }
  return type.range(path, lower: lower, upper: upper)
}

extension Range: ConstantRange {
  func finding(_ path: ItemPath) -> Finding? { Larder.finding(path, lower: lowerBound, upper: upperBound, includesUpper: false) }
}
extension ClosedRange: ConstantRange {
  func finding(_ path: ItemPath) -> Finding? { Larder.finding(path, lower: lowerBound, upper: upperBound, includesUpper: true) }
}
extension PartialRangeFrom: ConstantRange {
  func finding(_ path: ItemPath) -> Finding? { Larder.finding(path, lower: lowerBound, upper: nil, includesUpper: false) }
}
extension PartialRangeUpTo: ConstantRange {
  func finding(_ path: ItemPath) -> Finding? { Larder.finding(path, lower: nil, upper: upperBound, includesUpper: false) }
}
extension PartialRangeThrough: ConstantRange {
  func finding(_ path: ItemPath) -> Finding? { Larder.finding(path, lower: nil, upper: upperBound, includesUpper: true) }
}
