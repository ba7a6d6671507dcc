import Foundation

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
