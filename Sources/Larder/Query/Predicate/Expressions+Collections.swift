import Foundation

extension PredicateExpressions.CollectionIndexSubscript: CompilableExpression
where Wrapped: StandardPredicateExpression, Index: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    // The bounds check of the subscript is enough only for `Int` indexes. `refuseTrap` refuses all other index types.
    try refuseTrap()
    return try scope.map(wrapped, index) { all, index in
      // Without the bounds check the subscript would trap, and a trap ends the app.
      guard index >= all.startIndex, index < all.endIndex else { throw indexOutOfRange }
      return all[index]
    }
  }
}

extension PredicateExpressions.CollectionRangeSubscript: CompilableExpression
where Wrapped: StandardPredicateExpression, Range: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    // The bounds check of the subscript is enough only for ranges of `Int` indexes. `refuseTrap` refuses all other index types.
    try refuseTrap()
    return try scope.map(wrapped, range) { all, range in
      // The indexes of a slice may not begin at 0, so both bounds of the range are compared with those of the collection.
      guard range.lowerBound >= all.startIndex, range.upperBound <= all.endIndex else { throw indexOutOfRange }
      return all[range]
    }
  }
}

extension PredicateExpressions.CollectionContainsCollection: CompilableExpression
where Base: StandardPredicateExpression, Other: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try scope.map(base, other) { $0.contains($1) }
  }
}

extension PredicateExpressions.DictionaryKeySubscript: CompilableExpression
where Wrapped: StandardPredicateExpression, Key: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try scope.map(wrapped, key) { $0[$1] }
  }
}

extension PredicateExpressions.DictionaryKeyDefaultValueSubscript: CompilableExpression
where Wrapped: StandardPredicateExpression, Key: StandardPredicateExpression, Default: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (all, key, other) = (try scope.compile(wrapped).run, try scope.compile(self.key).run, try scope.compile(self.default).run)
    return Compiled { environment in
      // The default value of a dictionary subscript is evaluated only if the key is missing, as in Foundation's evaluation of predicates.
      // If the default were always evaluated, it could throw for a record that has the key.
      if let value = try all(environment)[key(environment)] { return value }
      return try other(environment)
    }
  }
}

extension PredicateExpressions.Range: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try scope.map(lower, upper) { lower, upper in
      // `..<` traps if the bounds are reversed or NaN. The comparison `lower <= upper` is false for reversed bounds and for NaN.
      guard lower <= upper else { throw reversedRange }
      return lower..<upper
    }
  }
}

extension PredicateExpressions.ClosedRange: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try scope.map(lower, upper) { lower, upper in
      // `...` traps if the bounds are reversed or NaN. The comparison `lower <= upper` is false for reversed bounds and for NaN.
      guard lower <= upper else { throw reversedRange }
      return lower...upper
    }
  }
}

extension PredicateExpressions.RangeExpressionContains: CompilableExpression
where RangeExpression: StandardPredicateExpression, Element: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    if RangeExpression.Output.self is any TextRange.Type, Element.Output.self == String.self {
      return try scope.map(range, element) { range, element in
        guard let range = range as? any TextRange, let text = recast(element, to: String.self) else { return range.contains(element) }
        return range.holds(text)
      }
    }
    return try scope.map(range, element) { $0.contains($1) }
  }
}

/// A range of texts, in the order of ``TextOrder``.
private protocol TextRange {
  func holds(_ text: String) -> Bool
}

extension Range: TextRange where Bound == String {
  func holds(_ text: String) -> Bool { TextOrder.isText(text, from: lowerBound, to: upperBound, includingUpper: false) }
}
extension ClosedRange: TextRange where Bound == String {
  func holds(_ text: String) -> Bool { TextOrder.isText(text, from: lowerBound, to: upperBound, includingUpper: true) }
}
extension PartialRangeFrom: TextRange where Bound == String {
  func holds(_ text: String) -> Bool { TextOrder.isText(text, from: lowerBound, to: nil, includingUpper: false) }
}
extension PartialRangeUpTo: TextRange where Bound == String {
  func holds(_ text: String) -> Bool { TextOrder.isText(text, from: nil, to: upperBound, includingUpper: false) }
}
extension PartialRangeThrough: TextRange where Bound == String {
  func holds(_ text: String) -> Bool { TextOrder.isText(text, from: nil, to: upperBound, includingUpper: true) }
}

private let indexOutOfRange = RepositoryError(.unsupported, "a subscript in a predicate is out of range for a record")
private let reversedRange = RepositoryError(
  .unsupported, "a range in a predicate is reversed for a record, or has a bound that is not a number")

extension PredicateExpressions.SequenceContains: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    // `contains` on a range without an end, such as `5...`, would count up to the greatest integer and then trap. `refuseTrap` refuses a
    // range without an end.
    try refuseTrap()
    return try scope.map(sequence, element) { $0.contains($1) }
  }
}

extension PredicateExpressions.SequenceContainsWhere: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try refuseTrap()
    let all = try scope.compile(sequence).run
    let test = try scope.nested(variable).compile(self.test).run
    // The environment (the values of the variables) is extended by the element, because the inner closure may name the element and the
    // outer variables.
    return Compiled { environment in try all(environment).contains { try test(Nested(outer: environment, element: $0)) } }
  }
}

extension PredicateExpressions.SequenceAllSatisfy: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try refuseTrap()
    let all = try scope.compile(sequence).run
    let test = try scope.nested(variable).compile(self.test).run
    return Compiled { environment in try all(environment).allSatisfy { try test(Nested(outer: environment, element: $0)) } }
  }
}

extension PredicateExpressions.Filter: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try refuseTrap()
    let all = try scope.compile(sequence).run
    let test = try scope.nested(variable).compile(filter).run
    return Compiled { environment in try all(environment).filter { try test(Nested(outer: environment, element: $0)) } }
  }
}

extension PredicateExpressions.SequenceStartsWith: CompilableExpression
where Base: StandardPredicateExpression, Prefix: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try refuseTrap()
    return try scope.map(base, prefix) { $0.starts(with: $1) }
  }
}

extension PredicateExpressions.SequenceMaximum: CompilableExpression where Elements: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try refuseTrap()
    return try scope.map(elements) { $0.max() }
  }
}

extension PredicateExpressions.SequenceMinimum: CompilableExpression where Elements: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try refuseTrap()
    return try scope.map(elements) { $0.min() }
  }
}
