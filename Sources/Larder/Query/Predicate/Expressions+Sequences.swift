import Foundation

extension PredicateExpressions.SequenceContains: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
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
