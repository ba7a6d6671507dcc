import Foundation

extension PredicateExpressions.Arithmetic: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let operation: CheckedInteger.Operation =
      switch op {
      case .add: .add
      case .subtract: .subtract
      case .multiply: .multiply
      @unknown default: throw RepositoryError(.unsupported, "a predicate has arithmetic of a kind that is not known")
      }
    if let checked = try CheckedInteger.operation(Output.self, operation) { return try scope.map(lhs, rhs, checked) }
    switch operation {
    case .add: return try scope.map(lhs, rhs) { $0 + $1 }
    case .subtract: return try scope.map(lhs, rhs) { $0 - $1 }
    default: return try scope.map(lhs, rhs) { $0 * $1 }
    }
  }
}

extension PredicateExpressions.IntDivision: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    if let checked = try CheckedInteger.operation(Output.self, .divide) { return try scope.map(lhs, rhs, checked) }
    return try scope.map(lhs, rhs) { dividend, divisor in
      if divisor == 0 { throw CheckedInteger.divisionByZero }
      return dividend / divisor
    }
  }
}

extension PredicateExpressions.IntRemainder: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    if let checked = try CheckedInteger.operation(Output.self, .remainder) { return try scope.map(lhs, rhs, checked) }
    return try scope.map(lhs, rhs) { dividend, divisor in
      if divisor == 0 { throw CheckedInteger.divisionByZero }
      return dividend % divisor
    }
  }
}

extension PredicateExpressions.FloatDivision: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try scope.map(lhs, rhs) { $0 / $1 }
  }
}

extension PredicateExpressions.UnaryMinus: CompilableExpression where Wrapped: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    if let checked = try CheckedInteger.operation(Output.self, .subtract) { return try scope.map(wrapped) { try checked(.zero, $0) } }
    return try scope.map(wrapped) { -$0 }
  }
}
