import Foundation

/// The search for constructs that could trap in an expression that only Foundation can evaluate.
///
/// It reads the stored properties by reflection, so it finds expressions inside kinds that Larder does not compile, and inside constants
/// that are expressions or predicates themselves.
enum TrapScan {
  /// Returns the name of the first construct that could trap, or `nil` if there is none.
  static func construct(in value: Any) -> String? {
    if let found = (value as? any TrappingExpression)?.trap { return found }
    // A constant may be a large array, and reflection on each element would take longer than the query.
    guard mayHoldExpressions(value) else { return nil }
    for child in Mirror(reflecting: value).children {
      if let found = construct(in: child.value) { return found }
    }
    return nil
  }

  /// Returns true for a value that may hold expressions, and not for text, numbers and the elements of constants.
  private static func mayHoldExpressions(_ value: Any) -> Bool {
    switch value {
    case is any PredicateExpression, is any ExpressionHolder, is [any PredicateExpression]: true
    // A parameter pack of expressions is stored as a tuple.
    default: Mirror(reflecting: value).displayStyle == .tuple
    }
  }
}

/// An expression whose evaluation by Foundation can trap.
protocol TrappingExpression {
  /// Name of the construct, or `nil` if it cannot trap with the types that it has here.
  var trap: String? { get }
}

extension TrappingExpression {
  /// Refuses a construct that can trap and whose evaluation cannot be checked.
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
// Indices of other types belong to one collection. Another collection may trap on them, even between its ends.
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
  /// Name of a property of the standard library that traps or, in optimized builds, is undefined.
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

/// A range of integers, whose count may exceed an `Int` and then traps.
private protocol TrapsWhenCounted {}
extension Range: TrapsWhenCounted where Bound: Strideable, Bound.Stride: SignedInteger {}
extension ClosedRange: TrapsWhenCounted where Bound: Strideable, Bound.Stride: SignedInteger {}

/// Returns the name of the construct for a sequence without an end, such as `5...`, which traps where the integers end.
private func endless(_ sequence: Any.Type) -> String? {
  sequence is any EndlessSequence.Type ? "a walk through a range without an end" : nil
}

protocol EndlessSequence {}
extension PartialRangeFrom: EndlessSequence {}
