// Predicate/ turns Foundation's `#Predicate` into closures that never trap, and into conjuncts that a plan can look up in indexes.
// Invariant: for every record the closures return the result of Foundation's `evaluate`. Where that would trap or throw, they throw
// `RepositoryError.Code.unsupported`. A conjunct's constraint holds for every record that the conjunct lets through (and if it is exact,
// for no other). Key paths into computed properties run the code of the properties: its effects, traps included, are its author's. Called
// by Query, once for each predicate. The planner reads the conjuncts.
import Foundation

/// A predicate compiled to closures, with its conjuncts for the planner.
struct CompiledPredicate<Item>: Sendable {
  /// Returns true if the predicate holds for a record, or throws `.unsupported` with the reason.
  ///
  /// The reason never contains values.
  let evaluate: @Sendable (Item) throws(RepositoryError) -> Bool
  /// Parts of the predicate that must all hold, in the order written.
  ///
  /// Evaluated in this order up to the first that is false, they are equivalent to the predicate. A part that an index answers may be left
  /// out: parts with a constraint never throw, so an index removes errors but adds none.
  let conjuncts: [Conjunct<Item>]

  /// Compiles a predicate.
  ///
  /// - Throws: `.unsupported`, with the name of the construct, if a part could trap and cannot be checked.
  init(_ predicate: Predicate<Item>) throws(RepositoryError) {
    let scope = Scope(item: predicate.variable)
    evaluate = Self.reporting(try scope.compile(expression: predicate.expression).run)
    var parts: [Conjunct<Item>] = []
    try Self.split(predicate.expression, in: scope, into: &parts)
    conjuncts = parts
  }

  /// Returns only the parts, which are all that a query needs, at half the cost.
  ///
  /// - Throws: as ``init(_:)``.
  static func conjuncts(of predicate: Predicate<Item>) throws(RepositoryError) -> [Conjunct<Item>] {
    var parts: [Conjunct<Item>] = []
    try split(predicate.expression, in: Scope(item: predicate.variable), into: &parts)
    return parts
  }

  /// Appends the parts of an expression in the order written.
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
    // A part that holds for every record needs neither a plan nor a test.
    if case .always = finding?.constraint { return }
    // Compiled on first use only: an index usually answers an exact part.
    if let finding, finding.isExact {
      parts.append(Conjunct(exact: finding.constraint) { later(expression, in: scope) })
      return
    }
    let run = reporting(try scope.compile(expression: expression).run)
    parts.append(Conjunct(constraint: finding?.constraint ?? .residual, isExact: false, evaluate: run))
  }

  /// Compiles a part that is a plain comparison, for which compiling does not throw.
  private static func later(_ expression: any StandardPredicateExpression<Bool>, in scope: Scope<Item>) -> Conjunct<Item>.Evaluation {
    do throws(RepositoryError) {
      return reporting(try scope.compile(expression: expression).run)
    } catch {
      // Reached only by a defect of the analysis. The fetch then reports the error, and the app does not end.
      return { (_) throws(RepositoryError) -> Bool in throw error }
    }
  }

  /// Wraps errors of Foundation in a ``RepositoryError``.
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

/// A conjunct: one of the parts of a predicate that must all hold.
struct Conjunct<Item>: Sendable {
  typealias Evaluation = @Sendable (Item) throws(RepositoryError) -> Bool

  /// Constraint of the part on one key path, or `.residual` if it has none.
  let constraint: Constraint
  /// True if exactly the records that meet the constraint meet the part.
  ///
  /// Otherwise the constraint lets through more records, and `evaluate` must test each. Never true for a residual.
  let isExact: Bool
  private let compiled: CompiledOnce

  init(constraint: Constraint, isExact: Bool, evaluate: @escaping Evaluation) {
    (self.constraint, self.isExact) = (constraint, isExact)
    compiled = CompiledOnce { evaluate }
  }

  /// Creates an exact part, which is compiled when it is first evaluated.
  ///
  /// If an index answers it, it is never compiled, and compiling is most of the cost of such a query.
  init(exact constraint: Constraint, compile: @escaping @Sendable () -> Evaluation) {
    (self.constraint, isExact) = (constraint, true)
    compiled = CompiledOnce(compile)
  }

  /// Closure that tests a record, and throws only for a residual.
  ///
  /// Read it once for many records, because each access loads it.
  var evaluate: Evaluation { compiled.evaluation }

  private final class CompiledOnce: Sendable {
    private let compile: @Sendable () -> Evaluation
    /// Compiled closure in a ``Made``, once there is one.
    ///
    /// The declared type has no generic parameter, because one would be looked up for every query.
    private let made = LazyReference<any AnyObject & Sendable>()

    /// An object that holds the compiled closure of a part.
    ///
    /// A closure in generic storage is wrapped once more each time that it is read.
    private final class Made: Sendable {
      let evaluation: Evaluation
      init(_ evaluation: @escaping Evaluation) { self.evaluation = evaluation }
    }

    init(_ compile: @escaping @Sendable () -> Evaluation) { self.compile = compile }

    /// Closure of the part, which is compiled at the first access.
    ///
    /// No lock is held: two readers may both compile, and both get the closure that was stored first.
    var evaluation: Evaluation { unsafeDowncast(made.load() ?? made.storeIfNil(Made(compile())), to: Made.self).evaluation }
  }
}

/// A condition on the index value at one key path.
enum Constraint: Sendable {
  /// Equality with one value, where `nil` is ``IndexValue/null``.
  case equal(ItemPath, IndexValue)
  /// A value between the bounds, of which a missing one is open.
  ///
  /// Ranges of `Double`, `Float` and `Date` have both bounds, so that they exclude NaN. With `orNotANumber` a record whose value is
  /// ``IndexValue/notANumber`` meets the constraint, too: a date that is NaN is neither before nor after another, so `<=` and `>=` hold for
  /// it.
  case range(ItemPath, lower: Bound?, upper: Bound?, orNotANumber: Bool)
  /// One of at least two different values, which are sorted.
  case oneOf(ItemPath, [IndexValue])
  /// A constraint that no record meets.
  case never
  /// A constraint that every record meets. No conjunct has it, because a conjunct that always holds is left out.
  case always
  /// A constraint that no index can answer.
  case residual
}

/// One end of a range of index values.
struct Bound: Hashable, Sendable {
  let value: IndexValue
  let isInclusive: Bool
}
