import Foundation

/// An expression that Larder compiles itself: to a closure over an environment that holds the bound variables.
protocol CompilableExpression<Output>: StandardPredicateExpression {
  /// Compiles the expression to a closure.
  ///
  /// - Throws: `.unsupported`, with the name of the construct, if it could trap and cannot be checked.
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output>
}

/// An expression that may be a constraint on one key path, or a conjunction.
protocol AnalyzableExpression: StandardPredicateExpression {
  /// Operands of a conjunction, which are planned one by one, or `nil` for any other expression.
  ///
  /// A requirement of every expression: a cast to a protocol of conjunctions would take longer than the answer.
  var operands: (any StandardPredicateExpression<Bool>, any StandardPredicateExpression<Bool>)? { get }

  /// Returns the constraint that the expression puts on a key path of the item, or `nil` if it puts none.
  func finding<Item>(in scope: Scope<Item>) -> Finding?
}

extension AnalyzableExpression {
  var operands: (any StandardPredicateExpression<Bool>, any StandardPredicateExpression<Bool>)? { nil }
}

/// A compiled expression: a closure, and the key path if the expression only reads one.
struct Compiled<Environment, Output>: Sendable {
  let run: @Sendable (Environment) throws -> Output
  /// Path to the value in the environment, if the expression reads it and does nothing else.
  let path: ValuePath<Environment, Output>?

  init(path: ValuePath<Environment, Output>? = nil, _ run: @escaping @Sendable (Environment) throws -> Output) {
    self.path = path
    self.run = run
  }
}

extension Scope {
  /// Compiles an expression of a known kind, or evaluates it by Foundation if nothing in it can trap.
  func compile<E: StandardPredicateExpression>(_ expression: E) throws(RepositoryError) -> Compiled<Environment, E.Output> {
    if let known = expression as? any CompilableExpression<E.Output> { return try known.compile(in: self) }
    // Foundation traps on overflow and on subscripts out of range, which would end the app for one record.
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

  /// Compiles an operation on the value of one expression.
  @inline(__always)
  func map<E: StandardPredicateExpression, Output>(
    _ expression: E, _ operation: @escaping @Sendable (E.Output) throws -> Output
  ) throws(RepositoryError) -> Compiled<Environment, Output> {
    let run = try compile(expression).run
    return Compiled { try operation(run($0)) }
  }

  /// Compiles an operation on the values of two expressions, both of which are always evaluated.
  @inline(__always)
  func map<Left: StandardPredicateExpression, Right: StandardPredicateExpression, Output>(
    _ left: Left, _ right: Right, _ operation: @escaping @Sendable (Left.Output, Right.Output) throws -> Output
  ) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (left, right) = (try compile(left).run, try compile(right).run)
    return Compiled { try operation(left($0), right($0)) }
  }

  /// Compiles an expression whose type is known only at run time.
  func compile(expression: any StandardPredicateExpression<Bool>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try compile(expression)
  }

  /// Returns the value of an expression without variables, or `nil` if it has variables or throws.
  func constant<E: StandardPredicateExpression>(_ expression: E) -> E.Output? {
    // Nearly every constant is a captured value. This cast to a concrete type is cheaper than a search for a conformance.
    if let value = expression as? PredicateExpressions.Value<E.Output> { return value.value }
    do {
      // The empty scope has no variables, so an expression that names one does not compile.
      return try Scope<Void>().compile(expression).run(())
    } catch {
      // An expression with variables, or one that throws. In the latter case the test of a record reports the error.
      return nil
    }
  }
}
