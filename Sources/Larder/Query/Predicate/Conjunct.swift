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
