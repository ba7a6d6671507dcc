import Foundation

/// An expression that Larder compiles to a closure over an environment, which holds the values of the predicate's variables.
protocol CompilableExpression<Output>: StandardPredicateExpression {
  /// Compiles the expression to a closure over the environment.
  ///
  /// - Throws: `.unsupported`, with the name of the construct, if the expression could trap and the trap cannot be prevented by a check.
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output>
}

/// An expression that may be a constraint on one key path, or a conjunction (`&&`) of two expressions.
protocol AnalyzableExpression: StandardPredicateExpression {
  /// Left and right operand of a conjunction, which are planned one by one, or `nil` for any other expression.
  ///
  /// Every analyzable expression has the property `operands`, because a cast to a protocol of conjunctions would take longer than reading
  /// the property.
  var operands: (any StandardPredicateExpression<Bool>, any StandardPredicateExpression<Bool>)? { get }

  /// Returns the constraint that the expression puts on one key path of the record, or `nil` if there is none.
  func finding<Item>(in scope: Scope<Item>) -> Finding?
}

extension AnalyzableExpression {
  var operands: (any StandardPredicateExpression<Bool>, any StandardPredicateExpression<Bool>)? { nil }
}

/// A compiled expression: its closure, and its key path if the expression only reads a key path.
struct Compiled<Environment, Output>: Sendable {
  let run: @Sendable (Environment) throws -> Output
  /// Path to the value in the environment, or `nil` if the expression does more than read that value.
  let path: ValuePath<Environment, Output>?

  init(path: ValuePath<Environment, Output>? = nil, _ run: @escaping @Sendable (Environment) throws -> Output) {
    self.path = path
    self.run = run
  }
}

extension Scope {
  /// Compiles an expression of any kind.
  ///
  /// An expression that Larder has no closure for is evaluated by Foundation, or refused with `.unsupported` if a part of it can trap.
  func compile<E: StandardPredicateExpression>(_ expression: E) throws(RepositoryError) -> Compiled<Environment, E.Output> {
    if let known = expression as? any CompilableExpression<E.Output> { return try known.compile(in: self) }
    // Foundation traps on integer overflow and on subscripts out of range. Without `TrapScan`, a record whose values make the expression
    // trap would end the app.
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

  /// Compiles an operation on the values of two expressions.
  ///
  /// The compiled closure evaluates both expressions for every record.
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

  /// Returns the value of an expression without variables, or `nil` if the expression has variables or throws.
  func constant<E: StandardPredicateExpression>(_ expression: E) -> E.Output? {
    // Nearly every constant is a captured value, and a cast to the concrete type `Value` is cheaper than the search for a protocol
    // conformance.
    if let value = expression as? PredicateExpressions.Value<E.Output> { return value.value }
    do {
      // The empty scope has no variables, so an expression that names a variable does not compile in the empty scope and is no constant.
      return try Scope<Void>().compile(expression).run(())
    } catch {
      // An expression that fails in the empty scope either has variables, so it is no constant, or throws. The error of an expression that
      // throws is reported when records are tested.
      return nil
    }
  }
}
