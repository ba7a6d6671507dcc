import Foundation

extension PredicateExpressions.Variable: CompilableExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    Compiled(path: try scope.path(to: self))
  }
}

extension PredicateExpressions.Value: CompilableExpression where Output: Codable {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    // The expression can be sent, not its value: of `Output` the type says no more than that it is `Codable`.
    Compiled(reader())
  }
}

extension PredicateExpressions.NilLiteral: CompilableExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    Compiled { _ in nil }
  }
}

extension PredicateExpressions.KeyPath: CompilableExpression where Root: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try refuseTrap()
    let root = try scope.compile(self.root)
    if let path = root.path?.appending(ValuePath(keyPath: keyPath)) { return Compiled(path: path) }
    let (run, keyPath) = (root.run, self.keyPath)
    return Compiled { try run($0)[keyPath: keyPath as Swift.KeyPath<Root.Output, Output>] }
  }
}

extension PredicateExpressions.KeyPath: AnalyzableExpression where Root: StandardPredicateExpression {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    guard Output.self == Bool.self, let path = scope.path(of: self) else { return nil }
    return Finding(.equal(path, IndexValue(true)))
  }
}

extension PredicateExpressions.Value: AnalyzableExpression where Output: Codable {
  func finding<Item>(in scope: Scope<Item>) -> Finding? {
    (value as? Bool).map { Finding($0 ? .always : .never) }
  }
}

extension StandardPredicateExpression {
  /// Reads the value of an expression that has no variables.
  fileprivate func reader<Environment>() -> @Sendable (Environment) throws -> Output {
    { _ in try self.evaluate(PredicateBindings()) }
  }
}
