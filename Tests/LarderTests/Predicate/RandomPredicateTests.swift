import Foundation
import Testing

@testable import Larder

/// Trees of conditions made at random, against Foundation.
@Suite(.timeLimit(.minutes(15)))
struct RandomPredicateTests {
  private typealias Build = PredicateExpressions
  private typealias Condition = any StandardPredicateExpression<Bool>
  private typealias Item = PredicateExpressions.Variable<Sample>

  @Test(arguments: Seeds.list(4, for: "RandomPredicateTests"))
  func aRandomTreeSaysWhatFoundationSays(seed: UInt64) throws {
    var generator = SeededGenerator(seed)
    let samples = (0..<40).map { _ in Sample.random(&generator) }
    for round in 0..<100 {
      let predicate = Predicate<Sample> { Self.condition(of: $0, depth: 5, &generator) }
      try agrees(predicate, on: samples, "round \(round), LARDER_SEED=\(seed)")
    }
  }

  private static func condition(of item: Item, depth: Int, _ generator: inout SeededGenerator) -> Condition {
    if depth == 0 || generator.chance(20) { return leaf(of: item, &generator) }
    let left = condition(of: item, depth: depth - 1, &generator)
    let right = condition(of: item, depth: depth - 1, &generator)
    switch generator.int(0..<6) {
    case 0, 1: return and(left, right)
    case 2, 3: return or(left, right)
    case 4: return not(left)
    default: return choose(leaf(of: item, &generator), left, right)
    }
  }

  private static func and(_ left: some StandardPredicateExpression<Bool>, _ right: some StandardPredicateExpression<Bool>) -> Condition {
    Build.build_Conjunction(lhs: left, rhs: right)
  }
  private static func or(_ left: some StandardPredicateExpression<Bool>, _ right: some StandardPredicateExpression<Bool>) -> Condition {
    Build.build_Disjunction(lhs: left, rhs: right)
  }
  private static func not(_ wrapped: some StandardPredicateExpression<Bool>) -> Condition { Build.build_Negation(wrapped) }
  private static func choose(
    _ test: some StandardPredicateExpression<Bool>, _ yes: some StandardPredicateExpression<Bool>,
    _ no: some StandardPredicateExpression<Bool>
  ) -> Condition { Build.build_Conditional(test, yes, no) }

  private static func leaf(of item: Item, _ generator: inout SeededGenerator) -> Condition {
    let other = Sample.random(&generator)
    return switch generator.int(0..<12) {
    case 0: comparison(item, \.rating, other.rating, &generator)
    case 1: comparison(item, \.name, other.name, &generator)
    case 2: comparison(item, \.height, other.height, &generator)
    case 3: comparison(item, \.made, other.made, &generator)
    case 4: comparison(item, \.big, other.big, &generator)
    case 5: comparison(item, \.width, other.width, &generator)
    case 6: equality(item, \.score, other.score, &generator)
    case 7: equality(item, \.weight, other.weight, &generator)
    case 8: equality(item, \.kind, other.kind, &generator)
    case 9: equality(item, \.label, other.label, &generator)
    case 10: Build.build_KeyPath(root: item, keyPath: \.flag)
    default: comparison(item, \.id, other.id, &generator)
    }
  }

  private static func equality<T: Codable & Equatable & Sendable>(
    _ item: Item, _ path: any KeyPath<Sample, T> & Sendable, _ value: T, _ generator: inout SeededGenerator
  ) -> Condition {
    let (left, right) = (Build.build_KeyPath(root: item, keyPath: path), Build.build_Arg(value))
    return switch generator.int(0..<4) {
    case 0: Build.build_Equal(lhs: left, rhs: right)
    case 1: Build.build_Equal(lhs: right, rhs: left)
    case 2: Build.build_NotEqual(lhs: left, rhs: right)
    default: Build.build_contains(Build.build_Arg([value]), left)
    }
  }

  private static func comparison<T: Codable & Comparable & Sendable>(
    _ item: Item, _ path: any KeyPath<Sample, T> & Sendable, _ value: T, _ generator: inout SeededGenerator
  ) -> Condition {
    let (left, right) = (Build.build_KeyPath(root: item, keyPath: path), Build.build_Arg(value))
    let operators: [Build.ComparisonOperator] = [.lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual]
    let chosen = operators[generator.int(0..<4)]
    return switch generator.int(0..<3) {
    case 0: Build.build_Comparison(lhs: left, rhs: right, op: chosen)
    case 1: Build.build_Comparison(lhs: right, rhs: left, op: chosen)
    default: equality(item, path, value, &generator)
    }
  }
}
