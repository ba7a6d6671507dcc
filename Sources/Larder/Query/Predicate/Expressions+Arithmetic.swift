import Foundation

extension PredicateExpressions.Arithmetic: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    let operation: CheckedInteger.Operation =
      switch op {
      case .add: .add
      case .subtract: .subtract
      case .multiply: .multiply
      // A later version of Foundation may add an operator, and a predicate with an unknown operator is refused instead of giving wrong
      // results.
      @unknown default: throw RepositoryError(.unsupported, "a predicate has arithmetic of a kind that is not known")
      }
    // Integers are handled before floating-point numbers, because `+` on integers traps on overflow. On floating-point numbers `+` never
    // traps.
    if let checked = try CheckedInteger.operation(Output.self, operation) { return try scope.map(lhs, rhs, checked) }
    switch operation {
    case .add: return try scope.map(lhs, rhs) { $0 + $1 }
    case .subtract: return try scope.map(lhs, rhs) { $0 - $1 }
    default: return try scope.map(lhs, rhs) { $0 * $1 }
    }
  }
}

extension PredicateExpressions.IntDivision: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    if let checked = try CheckedInteger.operation(Output.self, .divide) { return try scope.map(lhs, rhs, checked) }
    return try scope.map(lhs, rhs) { dividend, divisor in
      // `CheckedInteger` handles or refuses all fixed-width integer types. The division of any other integer type traps only on 0, so the
      // divisor is checked.
      if divisor == 0 { throw CheckedInteger.divisionByZero }
      return dividend / divisor
    }
  }
}

extension PredicateExpressions.IntRemainder: CompilableExpression where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    if let checked = try CheckedInteger.operation(Output.self, .remainder) { return try scope.map(lhs, rhs, checked) }
    return try scope.map(lhs, rhs) { dividend, divisor in
      if divisor == 0 { throw CheckedInteger.divisionByZero }
      return dividend % divisor
    }
  }
}

extension PredicateExpressions.FloatDivision: CompilableExpression
where LHS: StandardPredicateExpression, RHS: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    // Division of floating-point numbers never traps. Division by 0 gives an infinity or NaN.
    try scope.map(lhs, rhs) { $0 / $1 }
  }
}

extension PredicateExpressions.UnaryMinus: CompilableExpression where Wrapped: StandardPredicateExpression {
  func compile<Environment>(in scope: Scope<Environment>) throws(RepositoryError) -> Compiled<Environment, Output> {
    // The negation is computed as `0 - x` with an overflow check, because the negation of the least integer overflows.
    if let checked = try CheckedInteger.operation(Output.self, .subtract) { return try scope.map(wrapped) { try checked(.zero, $0) } }
    return try scope.map(wrapped) { -$0 }
  }
}

/// Integer operations that throw an error where the operators of the standard library trap.
enum CheckedInteger {
  enum Operation { case add, subtract, multiply, divide, remainder }

  static let overflow = RepositoryError(.unsupported, "integer arithmetic in a predicate overflows for a record")
  static let divisionByZero = RepositoryError(.unsupported, "a predicate divides an integer by zero for a record")

  /// Returns the checked operation for a fixed-width integer type of the standard library, or `nil` for other types.
  ///
  /// - Throws: `.unsupported` for a fixed-width integer type of another library.
  static func operation<T>(_ type: T.Type, _ operation: Operation) throws(RepositoryError) -> (@Sendable (T, T) throws -> T)? {
    // `integer` is the type `T` itself, but the compiler cannot infer that, so the closure is cast to a closure on `T`.
    if let integer = T.self as? any CheckableInteger.Type, let checked = closure(integer, operation) as? @Sendable (T, T) throws -> T {
      return checked
    }
    // An integer type of another library traps on overflow too, and without a conformance to `CheckableInteger` its overflow cannot be
    // checked.
    if T.self is any FixedWidthInteger.Type {
      throw RepositoryError(.unsupported, "a predicate has arithmetic on integers that are not the standard library's")
    }
    return nil
  }

  private static func closure<I: CheckableInteger>(_ type: I.Type, _ operation: Operation) -> any Sendable {
    let run: @Sendable (I, I) throws -> I =
      switch operation {
      case .add: { try checked($0.addingReportingOverflow($1)) }
      case .subtract: { try checked($0.subtractingReportingOverflow($1)) }
      case .multiply: { try checked($0.multipliedReportingOverflow(by: $1)) }
      // The divisor is checked for 0 apart from the overflow, which happens only if the least integer is divided by -1.
      case .divide: { try checked($0.dividedReportingOverflow(by: divisor($1))) }
      case .remainder: { try checked($0.remainderReportingOverflow(dividingBy: divisor($1))) }
      }
    return run
  }

  private static func checked<I>(_ result: (partialValue: I, overflow: Bool)) throws -> I {
    if result.overflow { throw overflow }
    return result.partialValue
  }

  private static func divisor<I: FixedWidthInteger>(_ value: I) throws -> I {
    if value == 0 { throw divisionByZero }
    return value
  }
}

/// The fixed-width integer types of the standard library, whose operations can be checked for overflow.
private protocol CheckableInteger: FixedWidthInteger, Sendable {}
extension Int: CheckableInteger {}
extension Int8: CheckableInteger {}
extension Int16: CheckableInteger {}
extension Int32: CheckableInteger {}
extension Int64: CheckableInteger {}
extension Int128: CheckableInteger {}
extension UInt: CheckableInteger {}
extension UInt8: CheckableInteger {}
extension UInt16: CheckableInteger {}
extension UInt32: CheckableInteger {}
extension UInt64: CheckableInteger {}
extension UInt128: CheckableInteger {}
