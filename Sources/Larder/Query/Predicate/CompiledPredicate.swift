// Predicate/ turns Foundation's `#Predicate` into closures that never trap, and into conjuncts that a plan can look up in indexes.
// Invariant: for every record the closures say what Foundation's `evaluate` says; where that would trap, or throw, they throw
// `RepositoryError.Code.unsupported`. A conjunct's constraint holds for every record that the conjunct lets through (and if it is exact,
// for no other). Key paths into computed properties run the code that the properties have: what they do, traps included, is their author's.
// Called by Query, once for each predicate; the planner reads the conjuncts.
import Foundation

/// A predicate ready to run and to plan with.
struct CompiledPredicate<Item>: Sendable {
  /// Returns whether the predicate holds for a record, or throws `.unsupported` with the reason; the reason never holds values.
  let evaluate: @Sendable (Item) throws(RepositoryError) -> Bool
  /// The parts that must all hold, in the order written.
  ///
  /// Evaluated in this order up to the first that is false, they are the predicate. A part that an index answers may be taken out: parts
  /// with a constraint never throw, so an index takes errors away but adds none.
  let conjuncts: [Conjunct<Item>]

  /// Compiles a predicate.
  ///
  /// - Throws: `.unsupported`, naming the construct, if a part could trap and cannot be checked.
  init(_ predicate: Predicate<Item>) throws(RepositoryError) {
    let scope = Scope(item: predicate.variable)
    evaluate = Self.reporting(try scope.compile(expression: predicate.expression).run)
    var parts: [Conjunct<Item>] = []
    try Self.split(predicate.expression, in: scope, into: &parts)
    conjuncts = parts
  }

  /// Returns the parts alone, which are all that a query needs, at half the price.
  ///
  /// - Throws: as ``init(_:)``.
  static func conjuncts(of predicate: Predicate<Item>) throws(RepositoryError) -> [Conjunct<Item>] {
    var parts: [Conjunct<Item>] = []
    try split(predicate.expression, in: Scope(item: predicate.variable), into: &parts)
    return parts
  }

  /// Adds the parts of an expression, in the order written.
  private static func split(
    _ expression: any StandardPredicateExpression<Bool>, in scope: Scope<Item>, into parts: inout [Conjunct<Item>]
  ) throws(RepositoryError) {
    let analyzable = expression as? any AnalyzableExpression
    if let (left, right) = analyzable?.operands {
      try split(left, in: scope, into: &parts)
      try split(right, in: scope, into: &parts)
      return
    }
    let finding = analyzable?.finding(in: scope)
    if case .always = finding?.constraint { return }
    if let finding, finding.isExact {
      parts.append(Conjunct(exact: finding.constraint) { later(expression, in: scope) })
      return
    }
    let run = reporting(try scope.compile(expression: expression).run)
    parts.append(Conjunct(constraint: finding?.constraint ?? .residual, isExact: false, evaluate: run))
  }

  /// Compiles a part that was found to be a plain comparison, for which compiling does not throw.
  private static func later(_ expression: any StandardPredicateExpression<Bool>, in scope: Scope<Item>) -> Conjunct<Item>.Evaluation {
    do throws(RepositoryError) {
      return reporting(try scope.compile(expression: expression).run)
    } catch {
      return { (_) throws(RepositoryError) -> Bool in throw error }
    }
  }

  /// Makes every error one of ours.
  private static func reporting(_ run: @escaping @Sendable (Item) throws -> Bool) -> @Sendable (Item) throws(RepositoryError) -> Bool {
    { (item) throws(RepositoryError) -> Bool in
      do {
        return try run(item)
      } catch let error as RepositoryError {
        throw error
      } catch {
        throw RepositoryError(.unsupported, "a predicate cannot be evaluated for a record", underlying: error)
      }
    }
  }
}

/// One of the parts of a predicate that must all hold.
struct Conjunct<Item>: Sendable {
  typealias Evaluation = @Sendable (Item) throws(RepositoryError) -> Bool

  /// The constraint of the part on one key path, if it is as simple as that.
  let constraint: Constraint
  /// Whether the records that meet the constraint are just those for which the part holds.
  ///
  /// Otherwise the constraint lets through more, and `evaluate` must be asked about each. Never true of a residual.
  let isExact: Bool
  private let compiled: CompiledOnce

  init(constraint: Constraint, isExact: Bool, evaluate: @escaping Evaluation) {
    (self.constraint, self.isExact) = (constraint, isExact)
    compiled = CompiledOnce { evaluate }
  }

  /// Makes an exact part, which is compiled when it is first evaluated: not at all where an index answers it, and compiling is most of what
  /// a query costs then.
  init(exact constraint: Constraint, compile: @escaping @Sendable () -> Evaluation) {
    (self.constraint, isExact) = (constraint, true)
    compiled = CompiledOnce(compile)
  }

  /// Returns whether the part holds for a record; never throws unless the part is a residual.
  ///
  /// Taken once for many records: it is looked up.
  var evaluate: Evaluation { compiled.evaluation }

  private final class CompiledOnce: Sendable {
    private let compile: @Sendable () -> Evaluation
    /// The closure in a ``Made``; of a type that does not depend on that of the records, which would be looked up for every query.
    private let made = LazyReference<any AnyObject & Sendable>()

    /// A holder of the closure by reference: a closure in generic storage is wrapped once more each time that it is taken out.
    private final class Made: Sendable {
      let evaluation: Evaluation
      init(_ evaluation: @escaping Evaluation) { self.evaluation = evaluation }
    }

    init(_ compile: @escaping @Sendable () -> Evaluation) { self.compile = compile }

    /// Compiled outside any lock: two readers may both do it, and both get the first one.
    var evaluation: Evaluation { unsafeDowncast(made.load() ?? made.storeIfNil(Made(compile())), to: Made.self).evaluation }
  }
}

/// A condition on the index value at one key path.
enum Constraint: Sendable {
  /// One value; `nil` is ``IndexValue/null``.
  case equal(ItemPath, IndexValue)
  /// Values between the bounds; a missing bound is open.
  ///
  /// Ranges of `Double`, `Float` and `Date` have both bounds, so that they leave out what is not a number. With `orNotANumber` a record
  /// whose value is ``IndexValue/notANumber`` meets it too: dates that are not a number are neither before nor after another, so `<=` and
  /// `>=` hold for them.
  case range(ItemPath, lower: Bound?, upper: Bound?, orNotANumber: Bool)
  /// Any of some values, at least two, without repetition, in order.
  case oneOf(ItemPath, [IndexValue])
  /// No record meets it.
  case never
  /// Every record meets it; never the constraint of a conjunct, which is left out instead.
  case always
  /// No index can answer it.
  case residual
}

/// One end of a range of index values.
struct Bound: Hashable, Sendable {
  let value: IndexValue
  let isInclusive: Bool
}
