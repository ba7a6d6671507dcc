import Foundation

extension PredicateExpressions.Conjunction: CompilableExpression, AnalyzableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  var operands: (any StandardPredicateExpression<Bool>, any StandardPredicateExpression<Bool>)? { (lhs, rhs) }

  func finding<Item>(in scope: Scope<Item>) -> Finding? { nil }

  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    // If the left side of `&&` is false, the right side is not run, as in Foundation, because the right side could throw for the record.
    return Compiled { try left($0) && right($0) }
  }
}

extension PredicateExpressions.Disjunction: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs).run, try scope.compile(rhs).run)
    // If the left side of `||` is true, the right side is not run, as in Foundation, because the right side could throw for the record.
    return Compiled { try left($0) || right($0) }
  }
}

extension PredicateExpressions.Negation: CompilableExpression where Wrapped: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    try scope.map(wrapped) { !$0 }
  }
}

extension PredicateExpressions.Conditional: CompilableExpression
where Test: StandardPredicateExpression, If: StandardPredicateExpression, Else: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let (test, yes, no) = (try scope.compile(self.test).run, try scope.compile(trueBranch).run, try scope.compile(falseBranch).run)
    // Only the chosen branch of a conditional expression is evaluated, because the other branch may throw for the record.
    return Compiled { try test($0) ? yes($0) : no($0) }
  }
}

extension PredicateExpressions.Equal: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs), try scope.compile(rhs))
    // In `==`, the constant may be the left or the right operand, so both cases are tried.
    if let fast = FastComparison.equal(left, scope.constant(rhs)) ?? FastComparison.equal(right, scope.constant(lhs)) { return fast }
    return Compiled { try left.run($0) == right.run($0) }
  }
}

extension PredicateExpressions.NotEqual: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs), try scope.compile(rhs))
    if let fast = FastComparison.equal(left, scope.constant(rhs)) ?? FastComparison.equal(right, scope.constant(lhs)) {
      return Compiled { try !fast.run($0) }
    }
    return Compiled { try left.run($0) != right.run($0) }
  }
}

extension PredicateExpressions.Comparison: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Bool> {
    let (left, right) = (try scope.compile(lhs), try scope.compile(rhs))
    // If the constant is the left operand, the operator is mirrored: `4 < x` is `x > 4`.
    if let fast = FastComparison.ordered(left, by: op, with: scope.constant(rhs))
      ?? FastComparison.ordered(right, by: op.mirrored, with: scope.constant(lhs))
    {
      return fast
    }
    if let left = recast(left, to: Compiled<Environment, String>.self), let right = recast(right, to: Compiled<Environment, String>.self),
      let order = TextOrder(op)
    {
      return Compiled { order.holds(try left.run($0), try right.run($0)) }
    }
    switch op {
    case .lessThan: return Compiled { try left.run($0) < right.run($0) }
    case .lessThanOrEqual: return Compiled { try left.run($0) <= right.run($0) }
    case .greaterThan: return Compiled { try left.run($0) > right.run($0) }
    case .greaterThanOrEqual: return Compiled { try left.run($0) >= right.run($0) }
    // A later version of Foundation may add an operator, and a predicate with an unknown operator is refused instead of giving wrong
    // results.
    @unknown default: throw RepositoryError(.unsupported, "a predicate has a comparison of a kind that is not known")
    }
  }
}

extension PredicateExpressions.ComparisonOperator {
  /// Operator with the same meaning after its operands are exchanged.
  var mirrored: Self {
    switch self {
    case .lessThan: .greaterThan
    case .lessThanOrEqual: .greaterThanOrEqual
    case .greaterThan: .lessThan
    case .greaterThanOrEqual: .lessThanOrEqual
    @unknown default: self
    }
  }
}

/// A comparison of texts by the order of indexes: the bytes of their composed forms.
///
/// Swift's `<` has another order for texts in several forms, with which a scan and an index would find different records.
struct TextOrder: Sendable {
  private let (isMirrored, isNegated): (Bool, Bool)

  init?(_ comparison: PredicateExpressions.ComparisonOperator) {
    switch comparison {
    case .lessThan: (isMirrored, isNegated) = (false, false)
    case .lessThanOrEqual: (isMirrored, isNegated) = (true, true)
    case .greaterThan: (isMirrored, isNegated) = (true, false)
    case .greaterThanOrEqual: (isMirrored, isNegated) = (false, true)
    @unknown default: return nil
    }
  }

  /// Returns true if the comparison holds for the two texts.
  func holds(_ left: String, _ right: String) -> Bool {
    (isMirrored ? IndexHead.precedes(right, left) : IndexHead.precedes(left, right)) != isNegated
  }

  /// Returns true if a text lies in a range, which includes its lower bound.
  static func isText(
    _ text: String, from lower: String?, to upper: String?, includingUpper: Bool
  ) -> Bool {
    if let lower, IndexHead.precedes(text, lower) { return false }
    guard let upper else { return true }
    return includingUpper ? !IndexHead.precedes(upper, text) : IndexHead.precedes(text, upper)
  }
}

/// Comparisons of a key path with a constant, each as a specialized closure for one of the most frequent types.
enum FastComparison {
  typealias Operator = PredicateExpressions.ComparisonOperator

  /// Returns a test for equality of a key path with a constant of a frequent type, or `nil` for any other comparison.
  static func equal<Environment, Value>(_ read: Compiled<Environment, Value>, _ constant: Value?) -> Compiled<Environment, Bool>? {
    guard let path = read.path, let constant else { return nil }
    return switch constant {
    case let constant as Int: equal(path, constant)
    case let constant as String: equal(path, constant)
    case let constant as Double: equal(path, constant)
    case let constant as Bool: equal(path, constant)
    case let constant as UUID: equal(path, constant)
    case let constant as Date: equal(path, constant)
    default: nil
    }
  }

  /// Returns a test by order of a key path with a constant of a frequent type, or `nil` for any other comparison.
  static func ordered<Environment, Value>(
    _ read: Compiled<Environment, Value>, by comparison: Operator, with constant: Value?
  ) -> Compiled<Environment, Bool>? {
    guard let path = read.path, let constant else { return nil }
    return switch constant {
    case let constant as Int: ordered(path, by: comparison, with: constant)
    case let constant as String: TextOrder(comparison).flatMap { ordered(path, by: $0, with: constant) }
    case let constant as Double: ordered(path, by: comparison, with: constant)
    case let constant as Date: ordered(path, by: comparison, with: constant)
    default: nil
    }
  }

  /// Returns a test for equality, or `nil` if the key path has another type than the constant, such as an optional type.
  @inline(__always)
  private static func equal<Environment, Value, T: Equatable & Sendable>(
    _ path: ValuePath<Environment, Value>, _ constant: T
  ) -> Compiled<Environment, Bool>? {
    guard let keyPath = recast(path.keyPath, to: (any KeyPath<Environment, T> & Sendable).self) else { return nil }
    // `PropertyReader` reads a stored property at its memory offset, at a fraction of the cost of a read through the key path.
    let read = PropertyReader(keyPath)
    return Compiled { read($0) == constant }
  }

  private static func ordered<Environment, Value>(
    _ path: ValuePath<Environment, Value>, by order: TextOrder, with constant: String
  ) -> Compiled<Environment, Bool>? {
    guard let keyPath = recast(path.keyPath, to: (any KeyPath<Environment, String> & Sendable).self) else { return nil }
    let read = PropertyReader(keyPath)
    return Compiled { order.holds(read($0), constant) }
  }

  @inline(__always)
  private static func ordered<Environment, Value, T: Comparable & Sendable>(
    _ path: ValuePath<Environment, Value>, by comparison: Operator, with constant: T
  ) -> Compiled<Environment, Bool>? {
    guard let keyPath = recast(path.keyPath, to: (any KeyPath<Environment, T> & Sendable).self) else { return nil }
    let read = PropertyReader(keyPath)
    return switch comparison {
    case .lessThan: Compiled { read($0) < constant }
    case .lessThanOrEqual: Compiled { read($0) <= constant }
    case .greaterThan: Compiled { read($0) > constant }
    case .greaterThanOrEqual: Compiled { read($0) >= constant }
    @unknown default: nil
    }
  }
}

extension PredicateExpressions.OptionalFlatMap: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let run = try scope.compile(wrapped).run
    let inner = try scope.nested(variable).compile(transform).run
    // The static type does not show whether the transform returns an optional, so a cast at run time covers a plain and an optional result.
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
      // The right side of `??` is evaluated only if the left side is `nil`, as in Swift.
      if let value = try left(environment) { return value }
      return try right(environment)
    }
  }
}

extension PredicateExpressions.ForcedUnwrap: CompilableExpression where Inner: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    try scope.map(inner) { value in
      // For a forced unwrap of `nil`, Foundation's `evaluate` also throws `forceUnwrapFailure` and does not trap.
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

extension PredicateExpressions.Variable: CompilableExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    Compiled(path: try scope.path(to: self))
  }
}

extension PredicateExpressions.Value: CompilableExpression where Output: Codable {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    // The closure captures the whole expression, which is `Sendable`, because the expression's value is only known to be `Codable`.
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
    // Some properties of the standard library trap, such as `count` of a range with too many integers. `refuseTrap` refuses properties that
    // can trap.
    try refuseTrap()
    let root = try scope.compile(self.root)
    // The key paths of a nested property are joined to one key path, so that the property is read in one step and can be found in an index.
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
  /// Returns a closure that returns the value of an expression without variables.
  fileprivate func reader<Environment>() -> @Sendable (Environment) throws -> Output {
    { _ in try self.evaluate(PredicateBindings()) }
  }
}
