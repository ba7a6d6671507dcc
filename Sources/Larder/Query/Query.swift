public import Foundation

// Query/ holds queries: the public values here, Predicate/ (a #Predicate as closures and constraints), Planning/ (the choice of an index),
// Running/ (the run of the plan). Invariant: a query sees the records and the indexes of exactly one commit, and gives the same on every
// backend, whatever is indexed. Called by LocalRepository, RepositorySnapshot, Transaction and LiveResults.

public import Foundation

/// A question to a repository: the conditions that records must meet, their order, and how many are wanted.
///
/// ```swift
/// let best = Query<Spot>().where(#Predicate { $0.country == "JP" && $0.rating >= 4 }).sorted(by: \.rating, .reverse).limit(20)
/// ```
///
/// Conditions add up: a record must meet all of them. A query is a value that does nothing by itself: give it to
/// ``LocalRepository/fetch(_:)``, to a ``RepositorySnapshot`` or a ``Transaction``, or follow it with ``LocalRepository/results(of:)``.
/// Without an order of its own it gives `near` by distance, `matching` by rank, and everything else by id.
///
/// Making a query costs a few microseconds; a query that is kept and asked again costs less, since its predicates are analyzed once.
/// With a declared ``RepositoryIndex`` that fits, a fetch looks at the records that it returns and no others; without one it looks at all
/// records. ``LocalRepository/explain(_:)`` returns the plan.
///
/// ## Topics
///
/// ### Conditions
/// - ``where(_:)``
/// - ``QueryComparison``
/// - ``filter(_:)``
/// - ``strict()``
///
/// ### Places and words
/// - ``near(latitude:longitude:within:)``
/// - ``within(_:)``
/// - ``matching(_:)``
///
/// ### Limits
/// - ``limit(_:)``
/// - ``offset(_:)``
///
/// ### Answers
/// - ``Match``
/// - ``Page``
/// - ``PageCursor``
/// - ``QueryPlan``
public struct Query<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  /// The part that plans are made for; kept beside the closures, so that a query that is asked often pays once.
  var shape = QueryShape()
  /// The predicates, compiled when they were given.
  var conjuncts: [Conjunct<Item>] = []
  private(set) var filters: [@Sendable (Item) -> Bool] = []
  var order: [SortColumn<Item>] = [] {
    didSet { shape.order = order.map { QueryShape.OrderColumn(keyPath: $0.keyPath, isReversed: $0.isReversed) } }
  }

  /// Makes a query for all records.
  public init() {}

  /// Returns the query for those records for which the predicate holds.
  ///
  /// A declared index is used where it can be: for equality, ranges, `contains` over constants, conjunctions of these, and order. A
  /// predicate never traps: where one cannot be evaluated (an overflow, a subscript out of range), the fetch throws `.unsupported` with
  /// the reason.
  public func `where`(_ predicate: Predicate<Item>) -> Self {
    do throws(RepositoryError) {
      return adding(try CompiledPredicate.conjuncts(of: predicate))
    } catch {
      return changed { $0.shape.failure = $0.shape.failure ?? error }
    }
  }

  /// Returns the query with one condition more.
  func adding(_ conjunct: Conjunct<Item>) -> Self { adding([conjunct]) }

  private func adding(_ added: [Conjunct<Item>]) -> Self {
    // A copy and no closure, which would look up the types of the query once more.
    var query = self
    for conjunct in added {
      query.shape.conditions.append(QueryShape.Condition(constraint: conjunct.constraint, isExact: conjunct.isExact))
    }
    if query.conjuncts.isEmpty { query.conjuncts = added } else { query.conjuncts += added }
    return query
  }

  /// Returns the query for those records for which the closure returns `true`.
  ///
  /// It is called for each record that meets the other conditions, and no index can help: prefer `where` when it can say the same.
  public func filter(_ isIncluded: @escaping @Sendable (Item) -> Bool) -> Self {
    changed { query in
      query.filters.append(isIncluded)
      query.shape.filterCount += 1
    }
  }

  /// Returns the query for those records near a place, nearest first; needs a `.geo` index.
  ///
  /// Distances are great circles on a sphere with Earth's mean radius. Without `within` it asks for all of them, and a limit makes it the
  /// k nearest. Called again, it asks for records that are near both places; the last call gives the order and the distances.
  /// - Parameters:
  ///   - latitude: Degrees north, from -90 to 90.
  ///   - longitude: Degrees east; whole turns are taken off.
  ///   - within: The greatest distance, included.
  public func near(latitude: Double, longitude: Double, within: Distance? = nil) -> Self {
    changed { $0.shape.areas.append(.init(latitude: latitude, longitude: longitude, radius: within)) }
  }

  /// Returns the query for those records whose place is in a box, edges included; needs a `.geo` index.
  ///
  /// Called again, it asks for records in both boxes.
  public func within(_ box: BoundingBox) -> Self { changed { $0.shape.boxes.append(box) } }

  /// Returns the query for those records that have all these words, the best match first; needs a `.fullText` index.
  ///
  /// The last word may be the beginning of one, unless white space follows it; records that hold it as a word of its own come first. Case
  /// and diacritics make no difference. A text without words matches nothing. Called again, it asks for the words of both texts.
  public func matching(_ words: String) -> Self {
    changed { query in
      let added = TextQuery(words)
      query.shape.words = query.shape.words.map { $0.intersection(added) } ?? added
    }
  }

  /// Returns the query for at most so many records; a negative number makes the fetch throw `.unsupported`.
  public func limit(_ count: Int) -> Self { changed { $0.shape.maximum = count } }

  /// Returns the query without so many records at the beginning; a negative number makes the fetch throw `.unsupported`.
  ///
  /// Records come and go between two fetches: prefer ``LocalRepository/page(_:after:limit:)`` for paging.
  public func offset(_ count: Int) -> Self { changed { $0.shape.skipped = count } }

  /// Returns the query that leaves out no record: every answer throws `.decodingFailed` while a record of the collection does not decode.
  ///
  /// Without it, such records are in no result. Whether one would have met the query cannot be told, so any of them counts. The error has
  /// their number and the hashes of their keys; ``RepositorySnapshot/undecodable`` lists them. It holds for everything that takes a query:
  /// of a repository, a snapshot and a transaction; live results and pages; a deletion, which then deletes nothing. Cost: a decode of every
  /// record that was not touched yet, and a look at what was written since.
  public func strict() -> Self { changed { $0.shape.isStrict = true } }

  func changed(_ change: (inout Self) -> Void) -> Self {
    var query = self
    change(&query)
    return query
  }

  /// Returns the query for those records in which an optional property has a value.
  func present<Value: IndexableValue>(_ keyPath: any KeyPath<Item, Value?> & Sendable) -> Self {
    let constraint = Constraint.range(keyPath, lower: Bound(value: .null, isInclusive: false), upper: nil, orNotANumber: false)
    return adding(
      Conjunct(constraint: constraint, isExact: true) { (item) throws(RepositoryError) -> Bool in item[keyPath: keyPath] != nil })
  }
}

extension Query {
  /// Returns the query in an order; the next call orders what is equal in this one, and at last the id decides.
  ///
  /// Texts order as Swift's `String` does, a NaN comes last; for a type that is ``IndexableValue`` too, its index value decides.
  public func sorted<Value: Comparable & Sendable>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(keyPath, order)) }
  }

  /// Returns the query in the order of an optional property, in which `nil` is less than everything.
  public func sorted<Value: Comparable & Sendable>(
    by keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(keyPath, order)) }
  }

  /// Returns the query in the order that an index of the property has: of truth values, where `false` comes first, of enumerations by
  /// their raw value, and of optionals of them, where `nil` comes first.
  public func sorted<Value: IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }

  /// Returns the query in the order that an index of the property has; the same as that of its values.
  public func sorted<Value: Comparable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }

  /// Returns the query in the order that an index of the optional property has, in which `nil` is less than everything.
  public func sorted<Value: Comparable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }
}

// Overloads that no program can call: the compiler chooses them where no other one fits, and then shows their message.
extension Query {
  /// Refuses to compile a trailing closure in the place of a predicate, and names the call that takes one.
  ///
  /// The first parameter keeps it from the calls that pass a predicate: the compiler would explain a typing error in one by this overload.
  @available(
    *, unavailable,
    message: "a condition is a predicate, which can use an index: write where(#Predicate { … }); for a closure, write filter { … }"
  )
  @_disfavoredOverload
  public func `where`(_ unused: Void = (), _ isIncluded: @escaping @Sendable (Item) -> Bool) -> Self { filter(isIncluded) }

  /// Refuses to compile an order by a property whose type has none, and names the conformances that give it one.
  @available(
    *, unavailable,
    message: "an order needs a property whose type is Comparable or IndexableValue; add one: 'enum Kind: String, Codable, IndexableValue'"
  )
  @_disfavoredOverload
  public func sorted(by keyPath: any PartialKeyPath<Item> & Sendable, _ order: SortOrder = .forward) -> Self { self }
}
