import Foundation

extension PredicateExpressions.Arithmetic: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    let operation: CheckedInteger.Operation =
      switch op {
      case .add: .add
      case .subtract: .subtract
      case .multiply: .multiply
      @unknown default: throw RepositoryError(.unsupported, "a predicate has arithmetic of a kind that is not known")
      }
    if let checked = try CheckedInteger.operation(Output.self, operation) { return Compiled { try checked(left($0), right($0)) } }
    switch operation {
    case .add: return Compiled { try left($0) + right($0) }
    case .subtract: return Compiled { try left($0) - right($0) }
    default: return Compiled { try left($0) * right($0) }
    }
  }
}

extension PredicateExpressions.IntDivision: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    if let checked = try CheckedInteger.operation(Output.self, .divide) { return Compiled { try checked(left($0), right($0)) } }
    return Compiled { environment in
      let (dividend, divisor) = (try left(environment), try right(environment))
      if divisor == 0 { throw CheckedInteger.divisionByZero }
      return dividend / divisor
    }
  }
}

extension PredicateExpressions.IntRemainder: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    if let checked = try CheckedInteger.operation(Output.self, .remainder) { return Compiled { try checked(left($0), right($0)) } }
    return Compiled { environment in
      let (dividend, divisor) = (try left(environment), try right(environment))
      if divisor == 0 { throw CheckedInteger.divisionByZero }
      return dividend % divisor
    }
  }
}

extension PredicateExpressions.FloatDivision: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    return Compiled { try left($0) / right($0) }
  }
}

extension PredicateExpressions.UnaryMinus: CompilableExpression where Wrapped: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let run = try scope.compile(wrapped).run
    if let checked = try CheckedInteger.operation(Output.self, .subtract) { return Compiled { try checked(.zero, run($0)) } }
    return Compiled { try -run($0) }
  }
}
