import Foundation

extension PredicateExpressions.Equal: AnalyzableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    guard let type = IndexedType(LHS.Output.self) else { return nil }
    if let path = scope.path(of: lhs), let value = scope.constant(rhs).flatMap({ type.indexValue($0) }) { return type.oneOf(path, [value]) }
    // The constant may be on the left: `4 <= $0.rating`.
    if let path = scope.path(of: rhs), let value = scope.constant(lhs).flatMap({ type.indexValue($0) }) { return type.oneOf(path, [value]) }
    return nil
  }
}

extension PredicateExpressions.Comparison: AnalyzableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    // If `<` is not the order of the index values, a range of an index would select the wrong records.
    guard let type = IndexedType(LHS.Output.self), type.isOrdered else { return nil }
    if let path = scope.path(of: lhs), let value = scope.constant(rhs).flatMap({ type.indexValue($0) }) {
      return type.compared(path, op, value)
    }
    if let path = scope.path(of: rhs), let value = scope.constant(lhs).flatMap({ type.indexValue($0) }) {
      // With the operands exchanged, `<` is `>`.
      return type.compared(path, op.mirrored, value)
    }
    return nil
  }
}

extension PredicateExpressions.RangeExpressionContains: AnalyzableExpression
where RangeExpression: StandardPredicateExpression, Element: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    // Only a range of constants is a constraint. One that reads the record is tested.
    guard let path = scope.path(of: element), let range = scope.constant(self.range) as? any ConstantRange else { return nil }
    return range.finding(path)
  }
}

extension PredicateExpressions.SequenceContains: AnalyzableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    guard let path = scope.path(of: element), let all = scope.constant(sequence) else { return nil }
    // A range that is used as a sequence is still a range, not a list of its elements.
    if let range = all as? any ConstantRange { return range.finding(path) }
    // Another sequence may define `contains` by a rule of its own.
    guard all is any ConstantList, let type = IndexedType(RHS.Output.self) else { return nil }
    let values = all.map { type.indexValue($0) }
    return type.oneOf(path, values.compactMap { $0 })
  }
}

extension PredicateExpressions.SequenceStartsWith: AnalyzableExpression
where Base: StandardPredicateExpression, Prefix: StandardPredicateExpression {
  /// Returns the range of texts that begin with an ASCII prefix.
  ///
  /// The range holds other texts, too.
  ///
  /// For example, "ab" followed by a combining accent is in the range of "ab", but its second character is not "b".
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    guard Base.Output.self == String.self, let path = scope.path(of: base), let prefix = scope.constant(self.prefix) as? String,
      let last = prefix.unicodeScalars.last, prefix.unicodeScalars.allSatisfy(\.isASCII)
    else { return nil }
    var end = String(prefix.unicodeScalars.dropLast())
    // ASCII ends at 127, so the next scalar always exists.
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
    // A negated Boolean property is equality with `false`.
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
    // Without a constraint on both sides, any record may meet the other one.
    guard let left = (lhs as? any AnalyzableExpression)?.finding(in: scope),
      let right = (rhs as? any AnalyzableExpression)?.finding(in: scope)
    else { return nil }
    switch (left.constraint, right.constraint) {
    case (.always, _), (_, .always): return Finding(.always)
    // A side that no record meets adds nothing to the other.
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
  /// Path and values of a constraint by equality, or `nil` for another constraint.
  fileprivate var values: (ItemPath, [IndexValue])? {
    switch self {
    case .equal(let path, let value): (path, [value])
    case .oneOf(let path, let values): (path, values)
    default: nil
    }
  }
}

/// A collection that stores its elements, so that `contains` is equality with one of them.
private protocol ConstantList {}
extension Array: ConstantList {}
extension ArraySlice: ConstantList {}
extension ContiguousArray: ConstantList {}
extension Set: ConstantList {}

/// A range with constant bounds, as the constraint that it puts on a path.
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
