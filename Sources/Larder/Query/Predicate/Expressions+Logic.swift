import Foundation

extension PredicateExpressions.Conjunction: CompilableExpression, AnalyzableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  var operands: (any StandardPredicateExpression<Bool>, any StandardPredicateExpression<Bool>)? { (lhs, rhs) }

  func finding<Item>(in scope: Scope<Item>) -> Finding? { nil }

  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    return Compiled { try left($0) && right($0) }
  }
}

extension PredicateExpressions.Disjunction: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    return Compiled { try left($0) || right($0) }
  }
}

extension PredicateExpressions.Negation: CompilableExpression where Wrapped: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try scope.map(wrapped) { !$0 }
  }
}

extension PredicateExpressions.Conditional: CompilableExpression
where Test: StandardPredicateExpression, If: StandardPredicateExpression, Else: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (test, yes, no) = (try scope.compile(self.test).run, try scope.compile(trueBranch).run, try scope.compile(falseBranch).run)
    return Compiled { try test($0) ? yes($0) : no($0) }
  }
}

extension PredicateExpressions.Equal: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs), try scope.compile(rhs))
    if let fast = FastComparison.equal(left, scope.constant(rhs)) ?? FastComparison.equal(right, scope.constant(lhs)) { return fast }
    return Compiled { try left.run($0) == right.run($0) }
  }
}

extension PredicateExpressions.NotEqual: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs), try scope.compile(rhs))
    if let fast = FastComparison.equal(left, scope.constant(rhs)) ?? FastComparison.equal(right, scope.constant(lhs)) {
      return Compiled { try !fast.run($0) }
    }
    return Compiled { try left.run($0) != right.run($0) }
  }
}

extension PredicateExpressions.Comparison: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs), try scope.compile(rhs))
    if let fast = FastComparison.ordered(left, op, scope.constant(rhs))
      ?? FastComparison.ordered(right, op.mirrored, scope.constant(lhs))
    {
      return fast
    }
    switch op {
    case .lessThan: return Compiled { try left.run($0) < right.run($0) }
    case .lessThanOrEqual: return Compiled { try left.run($0) <= right.run($0) }
    case .greaterThan: return Compiled { try left.run($0) > right.run($0) }
    case .greaterThanOrEqual: return Compiled { try left.run($0) >= right.run($0) }
    @unknown default: throw RepositoryError(.unsupported, "a predicate has a comparison of a kind that is not known")
    }
  }
}

extension PredicateExpressions.ComparisonOperator {
  /// The operator that says the same with its operands exchanged.
  var mirrored: Self {
    switch self {
    case .lessThan: .greaterThan
    case .lessThanOrEqual: .greaterThanOrEqual
    case .greaterThan: .lessThan
    case .greaterThanOrEqual: .lessThanOrEqual
    @unknown default: self
    }
  }
}
