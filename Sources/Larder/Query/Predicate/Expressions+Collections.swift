import Foundation

extension PredicateExpressions.CollectionIndexSubscript: CompilableExpression
where Wrapped: StandardPredicateExpression, Index: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try requireIntegerIndex(Index.Output.self)
    let (all, index) = (try scope.compile(wrapped).run, try scope.compile(self.index).run)
    return Compiled { environment in
      let (all, index) = (try all(environment), try index(environment))
      guard index >= all.startIndex, index < all.endIndex else { throw indexOutOfRange }
      return all[index]
    }
  }
}

extension PredicateExpressions.CollectionRangeSubscript: CompilableExpression
where Wrapped: StandardPredicateExpression, Range: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try requireIntegerIndex(Wrapped.Output.Index.self)
    let (all, range) = (try scope.compile(wrapped).run, try scope.compile(self.range).run)
    return Compiled { environment in
      let (all, range) = (try all(environment), try range(environment))
      guard range.lowerBound >= all.startIndex, range.upperBound <= all.endIndex else { throw indexOutOfRange }
      return all[range]
    }
  }
}

extension PredicateExpressions.CollectionContainsCollection: CompilableExpression
where Base: StandardPredicateExpression, Other: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (base, other) = (try scope.compile(self.base).run, try scope.compile(self.other).run)
    return Compiled { try base($0).contains(other($0)) }
  }
}

extension PredicateExpressions.DictionaryKeySubscript: CompilableExpression
where Wrapped: StandardPredicateExpression, Key: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (all, key) = (try scope.compile(wrapped).run, try scope.compile(self.key).run)
    return Compiled { try all($0)[key($0)] }
  }
}

extension PredicateExpressions.DictionaryKeyDefaultValueSubscript: CompilableExpression
where Wrapped: StandardPredicateExpression, Key: StandardPredicateExpression, Default: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (all, key, other) = (try scope.compile(wrapped).run, try scope.compile(self.key).run, try scope.compile(self.default).run)
    return Compiled { environment in
      if let value = try all(environment)[key(environment)] { return value }
      return try other(environment)
    }
  }
}

extension PredicateExpressions.Range: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (lower, upper) = (try scope.compile(self.lower).run, try scope.compile(self.upper).run)
    return Compiled { environment in
      let (lower, upper) = (try lower(environment), try upper(environment))
      guard lower <= upper else { throw reversedRange }
      return lower..<upper
    }
  }
}

extension PredicateExpressions.ClosedRange: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (lower, upper) = (try scope.compile(self.lower).run, try scope.compile(self.upper).run)
    return Compiled { environment in
      let (lower, upper) = (try lower(environment), try upper(environment))
      guard lower <= upper else { throw reversedRange }
      return lower...upper
    }
  }
}

extension PredicateExpressions.RangeExpressionContains: CompilableExpression
where RangeExpression: StandardPredicateExpression, Element: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (range, element) = (try scope.compile(self.range).run, try scope.compile(self.element).run)
    return Compiled { try range($0).contains(element($0)) }
  }
}

private let indexOutOfRange = RepositoryError(.unsupported, "a subscript in a predicate is out of range for a record")
private let reversedRange = RepositoryError(
  .unsupported, "a range in a predicate is reversed for a record, or has a bound that is not a number")

/// Indices of other types belong to one collection: another may trap on them, even between its ends.
private func requireIntegerIndex(_ type: Any.Type) throws(RepositoryError) {
  if type != Int.self { throw RepositoryError(.unsupported, "a predicate has a subscript whose index is not an integer") }
}
