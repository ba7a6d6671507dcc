// Predicate/ compiles Foundation's `#Predicate` to closures that never trap, and splits it into conjuncts (the operands of `&&`) that a
// plan can look up in indexes.
// Invariant: for every record the closures return the result of Foundation's `evaluate`. If `evaluate` would trap or throw, the closures
// throw `RepositoryError.Code.unsupported`. A conjunct's constraint holds for every record that meets the conjunct. An exact constraint
// holds for no record that does not meet the conjunct. A key path to a computed property runs the code of that property, and a trap in that
// code ends the app.
// Called by Query, once for each predicate. The planner reads the conjuncts.
import Foundation

/// A predicate compiled to closures, with the conjuncts from which the planner chooses an index.
struct CompiledPredicate<Item>: Sendable {
  /// Returns true if the predicate holds for a record, or throws `.unsupported` with the reason.
  ///
  /// The text of the error never contains a value of the record.
  let evaluate: @Sendable (Item) throws(RepositoryError) -> Bool
  /// Conjuncts of the predicate (the operands of `&&`), all of which must hold, in the order in which they are written.
  ///
  /// The result of the predicate is that of evaluating the conjuncts in order up to the first false conjunct. If an index answers a
  /// conjunct, the conjunct need not be evaluated. A conjunct with a constraint never throws, so the use of an index may remove errors but
  /// never adds one.
  let conjuncts: [Conjunct<Item>]

  /// Compiles a predicate to closures and splits it into conjuncts.
  ///
  /// - Throws: `.unsupported`, with the name of the construct, if a part could trap and the trap cannot be prevented by a check.
  init(_ predicate: Predicate<Item>) throws(RepositoryError) {
    let scope = Scope(item: predicate.variable)
    evaluate = Self.reporting(try scope.compile(expression: predicate.expression).run)
    var parts: [Conjunct<Item>] = []
    try Self.split(predicate.expression, in: scope, into: &parts)
    conjuncts = parts
  }

  /// Returns only the conjuncts of a predicate, at half the cost of ``init(_:)``, which also compiles the whole predicate.
  ///
  /// A query uses only the conjuncts and never evaluates the whole predicate.
  /// - Throws: The errors of ``init(_:)``.
  static func conjuncts(of predicate: Predicate<Item>) throws(RepositoryError) -> [Conjunct<Item>] {
    var parts: [Conjunct<Item>] = []
    try split(predicate.expression, in: Scope(item: predicate.variable), into: &parts)
    return parts
  }

  /// Appends the conjuncts of an expression (the operands of `&&`) to `parts`, in the order in which they are written.
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
    // A conjunct that holds for every record is left out, because it would only cost time in the plan and in the tests of records.
    if case .always = finding?.constraint { return }
    // A conjunct that its constraint expresses exactly is compiled only when it is first evaluated, because an index usually answers it
    // without any test.
    if let finding, finding.isExact {
      parts.append(Conjunct(exact: finding.constraint) { later(expression, in: scope) })
      return
    }
    let run = reporting(try scope.compile(expression: expression).run)
    parts.append(Conjunct(constraint: finding?.constraint ?? .residual, isExact: false, evaluate: run))
  }

  /// Compiles an exact conjunct when it is first evaluated.
  ///
  /// An exact conjunct is made of comparisons with constants, which compile without an error.
  private static func later(_ expression: any StandardPredicateExpression<Bool>, in scope: Scope<Item>) -> Conjunct<Item>.Evaluation {
    do throws(RepositoryError) {
      return reporting(try scope.compile(expression: expression).run)
    } catch {
      // An exact conjunct fails to compile only if the analysis of predicates has a defect. The returned closure throws the compilation
      // error, so that such a defect makes the fetch throw and does not end the app.
      return { (_) throws(RepositoryError) -> Bool in throw error }
    }
  }

  /// Returns a closure that throws Foundation's errors as a ``RepositoryError``.
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

/// A conjunct: one of the parts of a predicate that `&&` joins, all of which must hold for a record.
struct Conjunct<Item>: Sendable {
  typealias Evaluation = @Sendable (Item) throws(RepositoryError) -> Bool

  /// Constraint that the conjunct puts on one key path, or `.residual` if it puts none on a key path.
  let constraint: Constraint
  /// True if a record meets the conjunct if and only if it meets the constraint.
  ///
  /// If `isExact` is false, a record may meet the constraint and not the conjunct, so `evaluate` must test each record that meets the
  /// constraint. A conjunct with the constraint `.residual` is never exact.
  let isExact: Bool
  private let compiled: CompiledOnce

  init(constraint: Constraint, isExact: Bool, evaluate: @escaping Evaluation) {
    (self.constraint, self.isExact) = (constraint, isExact)
    compiled = CompiledOnce { evaluate }
  }

  /// Creates an exact conjunct, which is compiled when it is first evaluated.
  ///
  /// If an index answers the conjunct, the conjunct is never compiled. For a query that an index answers, compiling would be most of the
  /// cost.
  init(exact constraint: Constraint, compile: @escaping @Sendable () -> Evaluation) {
    (self.constraint, isExact) = (constraint, true)
    compiled = CompiledOnce(compile)
  }

  /// Closure that returns whether a record meets the conjunct.
  ///
  /// `evaluate` throws only if the constraint of the conjunct is `.residual`. Each access to `evaluate` loads the closure, so read it once
  /// for many records.
  var evaluate: Evaluation { compiled.evaluation }

  private final class CompiledOnce: Sendable {
    private let compile: @Sendable () -> Evaluation
    /// Object of type ``Made`` with the compiled closure, or no object before the conjunct was compiled.
    ///
    /// The declared type of `made` has no generic parameter. With a generic parameter, every query would look up type metadata.
    private let made = LazyReference<any AnyObject & Sendable>()

    /// An object that holds the compiled closure of a conjunct.
    ///
    /// Without the object, each read of a closure in generic storage would wrap the closure in another one.
    private final class Made: Sendable {
      let evaluation: Evaluation
      init(_ evaluation: @escaping Evaluation) { self.evaluation = evaluation }
    }

    init(_ compile: @escaping @Sendable () -> Evaluation) { self.compile = compile }

    /// Closure of the conjunct, which is compiled at the first access.
    ///
    /// The access to `evaluation` takes no lock. If two threads compile the conjunct at the same time, both get the closure that was stored
    /// first.
    var evaluation: Evaluation { unsafeDowncast(made.load() ?? made.storeIfNil(Made(compile())), to: Made.self).evaluation }
  }
}

/// A condition on the index value of the property at one key path.
enum Constraint: Sendable {
  /// The property's index value equals one given value.
  ///
  /// The index value of an optional property that is `nil` is ``IndexValue/null``.
  case equal(ItemPath, IndexValue)
  /// The property's index value lies between two bounds, where a missing bound excludes no value.
  ///
  /// Ranges of `Double`, `Float` and `Date` always have both bounds, so that they exclude NaN. With `orNotANumber`, a record with the value
  /// ``IndexValue/notANumber`` meets the constraint too. A date that is NaN is neither before nor after another date, so `<=` and `>=` hold
  /// for a date that is NaN.
  case range(ItemPath, lower: Bound?, upper: Bound?, orNotANumber: Bool)
  /// The property's index value is one of at least two different values, which are sorted.
  case oneOf(ItemPath, [IndexValue])
  /// No record meets the constraint.
  case never
  /// Every record meets the constraint.
  ///
  /// No conjunct has the constraint `.always`, because a part of the predicate that every record meets is left out.
  case always
  /// No index can answer the condition, so every record is tested.
  case residual
}

/// The lower or upper end of a range of index values.
struct Bound: Hashable, Sendable {
  let value: IndexValue
  let isInclusive: Bool
}
