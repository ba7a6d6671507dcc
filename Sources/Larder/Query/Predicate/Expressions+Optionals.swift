import Foundation

extension PredicateExpressions.OptionalFlatMap: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let run = try scope.compile(wrapped).run
    let inner = try scope.nested(variable).compile(transform).run
    // The transform gives a result or an optional one: which, the type does not tell.
    return Compiled { environment in
      guard let element = try run(environment) else { return nil }
      let result = try inner(Nested(outer: environment, element: element))
      guard let output = recast(result, to: Output.self) else { throw PredicateError.forceCastFailure }
      return output
    }
  }
}

extension PredicateExpressions.NilCoalesce: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    return Compiled { environment in
      if let value = try left(environment) { return value }
      return try right(environment)
    }
  }
}

extension PredicateExpressions.ForcedUnwrap: CompilableExpression where Inner: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try scope.map(inner) { value in
      guard let value else { throw PredicateError.forceUnwrapFailure }
      return value
    }
  }
}

extension PredicateExpressions.ConditionalCast: CompilableExpression where Input: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try scope.map(input) { $0 as? Desired }
  }
}

extension PredicateExpressions.ForceCast: CompilableExpression where Input: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try scope.map(input) { value in
      guard let cast = value as? Desired else { throw PredicateError.forceCastFailure }
      return cast
    }
  }
}

extension PredicateExpressions.TypeCheck: CompilableExpression where Input: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try scope.map(input) { $0 is Desired }
  }
}
