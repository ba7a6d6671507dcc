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

/// Searches an expression that only Foundation can evaluate for constructs that could trap.
///
/// The search for traps reads stored properties by reflection. Reflection also finds expressions inside kinds of expressions that Larder
/// does not compile, and inside constants that are expressions or predicates.
enum TrapScan {
  /// Returns the name of the first construct in a value that could trap, or `nil` if there is none.
  static func construct(in value: Any) -> String? {
    if let found = (value as? any TrappingExpression)?.trap { return found }
    // A constant may be a large array, and reflection on each of its elements would take longer than the query.
    guard mayHoldExpressions(value) else { return nil }
    for child in Mirror(reflecting: value).children {
      if let found = construct(in: child.value) { return found }
    }
    return nil
  }

  /// Returns true for a value that may contain predicate expressions.
  ///
  /// `mayHoldExpressions` returns false for text, numbers and collections of values that are no expressions.
  private static func mayHoldExpressions(_ value: Any) -> Bool {
    switch value {
    case is any PredicateExpression, is any ExpressionHolder, is [any PredicateExpression]: true
    // A parameter pack of expressions is stored as a tuple.
    default: Mirror(reflecting: value).displayStyle == .tuple
    }
  }
}

/// An expression that can trap when Foundation evaluates it.
protocol TrappingExpression {
  /// Name of the construct that can trap, or `nil` if the construct cannot trap with its present types.
  var trap: String? { get }
}

extension TrappingExpression {
  /// Throws if the construct can trap and the trap cannot be prevented by a check.
  ///
  /// - Throws: `.unsupported`, with the name of the construct.
  func refuseTrap() throws(RepositoryError) {
    if let trap { throw RepositoryError(.unsupported, "a predicate has \(trap)") }
  }
}

private protocol ExpressionHolder {}
extension Predicate: ExpressionHolder {}
extension Expression: ExpressionHolder {}

extension PredicateExpressions.Arithmetic: TrappingExpression {
  var trap: String? { Output.self is any FixedWidthInteger.Type ? "integer arithmetic" : nil }
}
extension PredicateExpressions.UnaryMinus: TrappingExpression {
  var trap: String? { Output.self is any FixedWidthInteger.Type ? "an integer with a minus sign" : nil }
}
extension PredicateExpressions.IntDivision: TrappingExpression {
  var trap: String? { "a division of integers" }
}
extension PredicateExpressions.IntRemainder: TrappingExpression {
  var trap: String? { "a remainder of integers" }
}
extension PredicateExpressions.ClosedRange: TrappingExpression {
  var trap: String? { "a closed range" }
}
extension PredicateExpressions.Range: TrappingExpression {
  var trap: String? { "a range" }
}
// An index that is not an integer, such as `String.Index`, belongs to one collection. With another collection such an index may trap, even
// if it lies between the start and the end of that collection.
extension PredicateExpressions.CollectionIndexSubscript: TrappingExpression {
  var trap: String? { Index.Output.self == Int.self ? nil : "a subscript whose index is not an integer" }
}
extension PredicateExpressions.CollectionRangeSubscript: TrappingExpression {
  var trap: String? { Wrapped.Output.Index.self == Int.self ? nil : "a subscript whose index is not an integer" }
}
extension PredicateExpressions.SequenceContains: TrappingExpression {
  var trap: String? { endless(LHS.Output.self) }
}
extension PredicateExpressions.SequenceContainsWhere: TrappingExpression {
  var trap: String? { endless(LHS.Output.self) }
}
extension PredicateExpressions.SequenceAllSatisfy: TrappingExpression {
  var trap: String? { endless(LHS.Output.self) }
}
extension PredicateExpressions.Filter: TrappingExpression {
  var trap: String? { endless(LHS.Output.self) }
}
extension PredicateExpressions.SequenceStartsWith: TrappingExpression {
  var trap: String? { endless(Base.Output.self) ?? endless(Prefix.Output.self) }
}
extension PredicateExpressions.SequenceMaximum: TrappingExpression {
  var trap: String? { endless(Elements.Output.self) }
}
extension PredicateExpressions.SequenceMinimum: TrappingExpression {
  var trap: String? { endless(Elements.Output.self) }
}
extension PredicateExpressions.KeyPath: TrappingExpression {
  /// Name of a standard-library property that traps or, in optimized builds, has undefined behaviour, or `nil` for any other property.
  var trap: String? {
    if (Root.Output.self as? any TrapsWhenUnwrapped.Type)?.unwrapping == keyPath { return "unsafelyUnwrapped" }
    if Root.Output.self is any TrapsWhenCounted.Type, Output.self == Int.self { return "a count of the integers of a range" }
    return nil
  }
}

private protocol TrapsWhenUnwrapped {
  static var unwrapping: AnyKeyPath { get }
}
extension Optional: TrapsWhenUnwrapped {
  static var unwrapping: AnyKeyPath { \Wrapped?.unsafelyUnwrapped }
}

/// A range of integers, whose `count` traps if it exceeds `Int.max`.
private protocol TrapsWhenCounted {}
extension Range: TrapsWhenCounted where Bound: Strideable, Bound.Stride: SignedInteger {}
extension ClosedRange: TrapsWhenCounted where Bound: Strideable, Bound.Stride: SignedInteger {}

/// Returns the name of the trap in iterating over a range without an end, such as `5...`, or `nil` for any other sequence.
private func endless(_ sequence: Any.Type) -> String? {
  sequence is any EndlessSequence.Type ? "a walk through a range without an end" : nil
}

protocol EndlessSequence {}
extension PartialRangeFrom: EndlessSequence {}
