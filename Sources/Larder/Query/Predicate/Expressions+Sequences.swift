import Foundation

extension PredicateExpressions.SequenceContains: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (all, one) = (try scope.compile(finite: sequence), try scope.compile(element).run)
    return Compiled { try all($0).contains(one($0)) }
  }
}

extension PredicateExpressions.SequenceContainsWhere: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let all = try scope.compile(finite: sequence)
    let test = try scope.nested(variable).compile(self.test).run
    return Compiled { environment in try all(environment).contains { try test(Nested(outer: environment, element: $0)) } }
  }
}

extension PredicateExpressions.SequenceAllSatisfy: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let all = try scope.compile(finite: sequence)
    let test = try scope.nested(variable).compile(self.test).run
    return Compiled { environment in try all(environment).allSatisfy { try test(Nested(outer: environment, element: $0)) } }
  }
}

extension PredicateExpressions.Filter: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let all = try scope.compile(finite: sequence)
    let test = try scope.nested(variable).compile(filter).run
    return Compiled { environment in try all(environment).filter { try test(Nested(outer: environment, element: $0)) } }
  }
}

extension PredicateExpressions.SequenceStartsWith: CompilableExpression
where Base: StandardPredicateExpression, Prefix: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (base, prefix) = (try scope.compile(finite: self.base), try scope.compile(finite: self.prefix))
    return Compiled { try base($0).starts(with: prefix($0)) }
  }
}

extension PredicateExpressions.SequenceMaximum: CompilableExpression where Elements: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let all = try scope.compile(finite: elements)
    return Compiled { try all($0).max() }
  }
}

extension PredicateExpressions.SequenceMinimum: CompilableExpression where Elements: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let all = try scope.compile(finite: elements)
    return Compiled { try all($0).min() }
  }
}

extension Scope {
  /// A sequence to walk: not `5...`, which has no end and traps where the integers end.
  fileprivate func compile<E: StandardPredicateExpression>(
    finite expression: E
  ) throws(RepositoryError) -> @Sendable (Environment) throws -> E.Output where E.Output: Sequence {
    if E.Output.self is any EndlessSequence.Type {
      throw RepositoryError(.unsupported, "a predicate walks through a range without an end")
    }
    return try compile(expression).run
  }
}
