import Foundation

/// A kind of expression that is evaluated without Foundation, by a closure over an environment that holds the bound variables.
protocol CompilableExpression<Output>: StandardPredicateExpression {
  /// Makes the closure.
  ///
  /// - Throws: `.unsupported`, naming the construct, if it could trap and cannot be checked.
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output>
}

/// An expression that may be a constraint on one key path, or a conjunction.
protocol AnalyzableExpression: StandardPredicateExpression {
  /// The operands of a conjunction, which are planned one by one; `nil` for anything else.
  ///
  /// Asked of every expression: to ask for a protocol of conjunctions takes longer than the answer.
  var operands: (any StandardPredicateExpression<Bool>, any StandardPredicateExpression<Bool>)? { get }

  func finding<Item>(in scope: Scope<Item>) -> Finding?
}

extension AnalyzableExpression {
  var operands: (any StandardPredicateExpression<Bool>, any StandardPredicateExpression<Bool>)? { nil }
}

/// An expression as a closure.
struct Compiled<Environment, Output>: Sendable {
  let run: @Sendable (Environment) throws -> Output
  /// The path to the value in the environment, if it is read from there and nothing else is done.
  let path: ValuePath<Environment, Output>?

  init(path: ValuePath<Environment, Output>? = nil, _ run: @escaping @Sendable (Environment) throws -> Output) {
    self.path = path
    self.run = run
  }
}

extension Scope {
  /// Compiles an expression of a known kind, or leaves it to Foundation if nothing in it can trap.
  func compile<E: StandardPredicateExpression>(_ expression: E) throws(RepositoryError) -> Compiled<Environment, E.Output> {
    if let known = expression as? any CompilableExpression<E.Output> { return try known.compile(in: self) }
    if let construct = TrapScan.construct(in: expression) {
      throw RepositoryError(.unsupported, "a predicate has \(construct) inside an expression of a kind that cannot be checked")
    }
    let bind = self.bind
    return Compiled { environment in
      var bindings = PredicateBindings()
      bind(environment, &bindings)
      return try expression.evaluate(bindings)
    }
  }

  /// Compiles an operation on the value of an expression.
  @inline(__always)
  func map<E: StandardPredicateExpression, Output>(
    _ expression: E, _ operation: @escaping @Sendable (E.Output) throws -> Output
  ) throws(RepositoryError) -> Compiled<Environment, Output> {
    let run = try compile(expression).run
    return Compiled { try operation(run($0)) }
  }

  /// Compiles an operation on the values of two expressions, both of which are evaluated.
  @inline(__always)
  func map<Left: StandardPredicateExpression, Right: StandardPredicateExpression, Output>(
    _ left: Left, _ right: Right, _ operation: @escaping @Sendable (Left.Output, Right.Output) throws -> Output
  ) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (left, right) = (try compile(left).run, try compile(right).run)
    return Compiled { try operation(left($0), right($0)) }
  }

  func compile(expression: any StandardPredicateExpression<Bool>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try compile(expression)
  }

  /// Returns the value of an expression without variables; `nil` if it has some or throws.
  func constant<E: StandardPredicateExpression>(_ expression: E) -> E.Output? {
    // What nearly every constant is, without a search for a conformance.
    if let value = expression as? PredicateExpressions.Value<E.Output> { return value.value }
    do {
      return try Scope<Void>().compile(expression).run(())
    } catch {
      return nil
    }
  }
}
