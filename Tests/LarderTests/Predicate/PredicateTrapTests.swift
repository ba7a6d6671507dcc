import Foundation
import Testing

@testable import Larder

/// Predicates that trap in Foundation's evaluation (found by running each in a process of its own), or throw there.
@Suite(.timeLimit(.minutes(15)))
struct PredicateTrapTests {
  /// A record at the edges: a predicate that Foundation could not survive on it.
  private static let edge: Sample = {
    var generator = SeededGenerator(1)
    var sample = Sample.random(&generator)
    (sample.rating, sample.count, sample.tiny, sample.big, sample.height) = (.min, 0, .min, .max, .nan)
    (sample.score, sample.numbers) = (nil, [1])
    return sample
  }()

  private static let throwing: [(String, Predicate<Sample>)] = {
    let (minusOne, one) = (-1, 1)
    var all: [(String, Predicate<Sample>)] = []
    func add(_ name: String, _ predicate: Predicate<Sample>) { all.append((name, predicate)) }
    add("subtract", #Predicate<Sample> { $0.rating - 1 > 0 })
    add("add", #Predicate<Sample> { $0.big + 1 > 0 })
    add("multiply", #Predicate<Sample> { $0.tiny * 2 > 0 })
    add("divide by zero", #Predicate<Sample> { 1 / $0.count > 0 })
    add("divide by minus one", #Predicate<Sample> { $0.rating / minusOne > 0 })
    add("remainder of zero", #Predicate<Sample> { 1 % $0.count > 0 })
    add("remainder of minus one", #Predicate<Sample> { $0.rating % minusOne > 0 })
    add("minus", #Predicate<Sample> { -$0.rating > 0 })
    add("minus of eight bits", #Predicate<Sample> { -$0.tiny > 0 })
    add("reversed closed range", #Predicate<Sample> { (one...$0.count).contains(1) })
    add("reversed range", #Predicate<Sample> { (one..<$0.count).contains(1) })
    add("range from nan", #Predicate<Sample> { ($0.height...3.0).contains(1) })
    add("index", #Predicate<Sample> { $0.numbers[5] > 0 })
    add("index below", #Predicate<Sample> { $0.numbers[minusOne] > 0 })
    add("slice", #Predicate<Sample> { $0.numbers[0..<9].count > 0 })
    // swift-format-ignore: NeverForceUnwrap
    add("unwrap", #Predicate<Sample> { $0.score! > 0 })
    // swift-format-ignore: NeverForceUnwrap
    add("cast", #Predicate<Sample> { ($0.rating as Any) as! String == "" })
    add("in a closure", #Predicate<Sample> { sample in sample.numbers.contains { sample.rating - $0 > 0 } })
    add("in all", #Predicate<Sample> { sample in sample.numbers.allSatisfy { sample.rating - $0 > 0 } })
    add("in a filter", #Predicate<Sample> { sample in sample.numbers.filter { sample.rating - $0 > 0 }.isEmpty })
    add("in a condition", #Predicate<Sample> { ($0.count == 0 ? $0.rating : 0) - 1 > 0 })
    add("behind and", #Predicate<Sample> { $0.count == 0 && $0.rating - 1 > 0 })
    return all
  }()

  @Test func whatTrapsInFoundationThrowsUnsupported() throws {
    for (name, predicate) in Self.throwing {
      let compiled = try CompiledPredicate(predicate)
      let error = #expect(throws: RepositoryError.self, "\(name)") { try compiled.evaluate(Self.edge) }
      #expect(error?.code == .unsupported, "\(name)")
    }
  }

  @Test func whatCannotBeCheckedIsRefusedByName() {
    let refused: [(String, Predicate<Sample>)] = [
      ("unsafelyUnwrapped", #Predicate<Sample> { $0.score.unsafelyUnwrapped == 3 }),
      (
        "integer arithmetic",
        Predicate<Sample> { sample in
          let rating = PredicateExpressions.build_KeyPath(root: sample, keyPath: \.rating)
          let sum = PredicateExpressions.build_Arithmetic(lhs: rating, rhs: PredicateExpressions.build_Arg(1), op: .add)
          return PredicateExpressions.build_Equal(lhs: Foreign(inner: sum), rhs: PredicateExpressions.build_Arg(3))
        }
      ),
    ]
    for (construct, predicate) in refused {
      let error = #expect(throws: RepositoryError.self) { _ = try CompiledPredicate(predicate) }
      #expect(error?.code == .unsupported)
      #expect(error?.message.contains(construct) == true)
    }
  }

  @Test func anExpressionThatOnlyFoundationKnowsIsLeftToIt() throws {
    var generator = SeededGenerator(3)
    let samples = (0..<50).map { _ in Sample.random(&generator) }
    let plain = Predicate<Sample> { sample in
      let name = Foreign(inner: PredicateExpressions.build_KeyPath(root: sample, keyPath: \.name))
      return PredicateExpressions.build_Equal(lhs: name, rhs: PredicateExpressions.build_Arg("ab"))
    }
    try agrees(plain, on: samples, "foreign")
    let nested = Predicate<Sample> { sample in
      PredicateExpressions.build_contains(PredicateExpressions.build_KeyPath(root: sample, keyPath: \.tags)) { tag in
        Foreign(
          inner: PredicateExpressions.build_Equal(lhs: tag, rhs: PredicateExpressions.build_KeyPath(root: sample, keyPath: \.name)))
      }
    }
    try agrees(nested, on: samples, "foreign in a closure")
  }

  @Test func aConditionThatShortCircuitsIsNotEvaluated() throws {
    let compiled = try CompiledPredicate(#Predicate<Sample> { $0.count != 0 && 1 / $0.count > 0 })
    #expect(try compiled.evaluate(Self.edge) == false)
  }

  @Test func theReasonHoldsNoValuesAndFoundationsErrorIsKept() throws {
    // swift-format-ignore: NeverForceUnwrap
    let compiled = try CompiledPredicate(#Predicate<Sample> { $0.score! > 0 })
    let error = #expect(throws: RepositoryError.self) { try compiled.evaluate(Self.edge) }
    #expect(error?.underlying as? PredicateError == .forceUnwrapFailure)
  }
}

/// A kind of expression that Larder does not know.
private struct Foreign<Inner: StandardPredicateExpression>: StandardPredicateExpression {
  let inner: Inner

  func evaluate(_ bindings: PredicateBindings) throws -> Inner.Output { try inner.evaluate(bindings) }
}
