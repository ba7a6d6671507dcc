// Query/ holds queries: the public values here, Predicate/ (a #Predicate as closures and constraints), Planning/ (the choice of an index),
// Running/ (the run of the plan). Invariant: a query reads the records and the indexes of exactly one commit, and returns the same on every
// backend, with or without indexes. Called by LocalRepository, RepositorySnapshot, Transaction and LiveResults.

public import Foundation

/// A query of a repository: the conditions that records must meet, the order of the results, and their limit.
///
/// ```swift
/// // Conditions, an order and a limit
/// let best = Query<Spot>().where(#Predicate { $0.country == "JP" && $0.rating >= 4 }).sorted(by: \.rating, .reverse).limit(20)
/// let found = try await spots.fetch(best)
///
/// // Places near a point, for a repository with a `.geo` index
/// let around = Query<Beach>().near(latitude: 35.13, longitude: 139.61, within: .kilometers(25))
///
/// // Words, for a repository with a `.fullText` index
/// let named = Query<Beach>().matching("jogashima").limit(20)
/// ```
///
/// A query is a value that does nothing by itself, and each call returns a changed copy. Create it on any thread, keep it, and pass it to
/// ``LocalRepository/fetch(_:)``, to a ``RepositorySnapshot`` or a ``Transaction``, or follow it with ``LocalRepository/results(of:)``.
///
/// Conditions add up: a record must meet all of them. Results are in the order of `sorted`. Without it, `near` orders by distance,
/// `matching` by rank, and any other query by id. Records that are equal in this order are sorted by id.
///
/// Creating a query costs a few microseconds. Keep a query that you run often: its predicates are analyzed only once. With a declared
/// ``RepositoryIndex`` that fits, a fetch reads only the records that it returns. Without one it reads all records. Call
/// ``LocalRepository/explain(_:)`` to see the plan.
///
/// ## When to use another call
///
/// - Use ``LocalRepository/find(by:)`` for a record whose id you have.
/// - Use ``LocalRepository/page(_:after:limit:)`` to read results in pages.
/// - Use ``LocalRepository/grouped(by:_:)``, `min`, `max` and `sum` to compute one value from many records.
///
/// ## Avoid
///
/// - Do not use ``filter(_:)`` for a condition that a predicate can express. No index can help a closure.
/// - Do not use ``offset(_:)`` for paging. Records can be inserted and deleted between two fetches.
/// - Do not use `near`, `within` or `matching` without their index. The fetch then throws `.unsupported`.
/// - Do not rely on a result to have every record. Records that do not decode are left out, unless the query is ``strict()``.
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
  /// Part of the query that the planner reads.
  ///
  /// It is stored beside the closures, so that a query that runs often is converted once.
  var shape = QueryShape()
  /// Parts of the predicates, compiled when the query was made.
  var conjuncts: [Conjunct<Item>] = []
  private(set) var filters: [@Sendable (Item) -> Bool] = []
  var order: [SortColumn<Item>] = [] {
    didSet { shape.order = order.map { QueryShape.OrderColumn(keyPath: $0.keyPath, isReversed: $0.isReversed) } }
  }

  /// Creates a query for all records.
  public init() {}

  /// Returns the query with a predicate that records must meet.
  ///
  /// A declared index is used for equality, ranges, `contains` over constants, conjunctions of these, and order. A predicate never traps.
  /// If it cannot be evaluated for a record (an overflow, a subscript out of range), the fetch throws `.unsupported` with the reason.
  public func `where`(_ predicate: Predicate<Item>) -> Self {
    do throws(RepositoryError) {
      return adding(try CompiledPredicate.conjuncts(of: predicate))
    } catch {
      // `where` does not throw, so the fetch reports the error of the first predicate that could not be compiled.
      return changed { $0.shape.failure = $0.shape.failure ?? error }
    }
  }

  /// Returns the query with one more condition.
  func adding(_ conjunct: Conjunct<Item>) -> Self { adding([conjunct]) }

  private func adding(_ added: [Conjunct<Item>]) -> Self {
    // A copy and not `changed`: its closure would look up the types of the query once more.
    var query = self
    for conjunct in added {
      query.shape.conditions.append(QueryShape.Condition(constraint: conjunct.constraint, isExact: conjunct.isExact))
    }
    // Assigned, not appended, for the usual single predicate: no second array is allocated.
    if query.conjuncts.isEmpty { query.conjuncts = added } else { query.conjuncts += added }
    return query
  }

  /// Returns the query with a closure that must return `true` for a record.
  ///
  /// The closure runs for each record that meets the other conditions, and no index can help. Use `where` when it can express the same.
  public func filter(_ isIncluded: @escaping @Sendable (Item) -> Bool) -> Self {
    changed { query in
      query.filters.append(isIncluded)
      query.shape.filterCount += 1
    }
  }

  /// Returns the query for records near a place, nearest first.
  ///
  /// It needs a `.geo` index.
  ///
  /// Distances are great circles on a sphere with Earth's mean radius. Without `within`, all records with a place match, and a limit
  /// returns the k nearest. If you call it again, records must be near both places, and the last call gives the order and the distances.
  /// - Parameters:
  ///   - latitude: Degrees north, from -90 to 90.
  ///   - longitude: Degrees east, of which whole turns are ignored.
  ///   - within: Greatest distance, inclusive.
  public func near(latitude: Double, longitude: Double, within: Distance? = nil) -> Self {
    changed { $0.shape.areas.append(.init(latitude: latitude, longitude: longitude, radius: within)) }
  }

  /// Returns the query for records whose place is in a box or on its edge.
  ///
  /// It needs a `.geo` index.
  ///
  /// If you call it again, records must be in both boxes.
  public func within(_ box: BoundingBox) -> Self { changed { $0.shape.boxes.append(box) } }

  /// Returns the query for records that have all the given words, best match first.
  ///
  /// It needs a `.fullText` index.
  ///
  /// The last word also matches as a prefix, unless white space follows it. Records that hold it as a word of its own come first. Case and
  /// diacritics are ignored. A text without words matches nothing. If you call it again, records must have the words of both texts.
  public func matching(_ words: String) -> Self {
    changed { query in
      let added = TextQuery(words)
      query.shape.words = query.shape.words.map { $0.intersection(added) } ?? added
    }
  }

  /// Returns the query for at most `count` records.
  ///
  /// With a negative number the fetch throws `.unsupported`.
  public func limit(_ count: Int) -> Self { changed { $0.shape.maximum = count } }

  /// Returns the query without its first `count` records.
  ///
  /// With a negative number the fetch throws `.unsupported`.
  ///
  /// Records can be inserted and deleted between two fetches, so use ``LocalRepository/page(_:after:limit:)`` for paging.
  public func offset(_ count: Int) -> Self { changed { $0.shape.skipped = count } }

  /// Returns the query in strict form: it throws `.decodingFailed` while any record of the collection does not decode.
  ///
  /// Without it, such records are in no result. Whether one of them would meet the query cannot be determined, so any of them counts. The
  /// error has their number and the hashes of their keys. ``RepositorySnapshot/undecodable`` lists them. Strictness applies to every call
  /// that takes a query: of a repository, a snapshot and a transaction, to live results and pages, and to a deletion, which then deletes
  /// nothing. Cost: every record that is not decoded yet is decoded, and records written since the last call are checked.
  public func strict() -> Self { changed { $0.shape.isStrict = true } }

  func changed(_ change: (inout Self) -> Void) -> Self {
    var query = self
    change(&query)
    return query
  }

  /// Returns the query for records in which an optional property has a value.
  func present<Value: IndexableValue>(_ keyPath: any KeyPath<Item, Value?> & Sendable) -> Self {
    let constraint = Constraint.range(keyPath, lower: Bound(value: .null, isInclusive: false), upper: nil, orNotANumber: false)
    return adding(
      Conjunct(constraint: constraint, isExact: true) { (item) throws(RepositoryError) -> Bool in item[keyPath: keyPath] != nil })
  }
}

extension Query {
  /// Returns the query sorted by a property.
  ///
  /// A further call sorts records that are equal in this one, and the id decides last.
  ///
  /// Text sorts as Swift's `String` does, and NaN comes last. If the type is also ``IndexableValue``, its index value decides.
  public func sorted<Value: Comparable & Sendable>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(keyPath, order)) }
  }

  /// Returns the query sorted by an optional property, with `nil` before every value.
  public func sorted<Value: Comparable & Sendable>(
    by keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(keyPath, order)) }
  }

  /// Returns the query sorted by a property, in the order of its index values.
  ///
  /// Use it for Booleans (`false` comes first), for enumerations, which sort by their raw value, and for optionals of these, where `nil`
  /// comes first.
  public func sorted<Value: IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }

  /// Returns the query sorted by a property, in the order of its index values, which is that of its values.
  public func sorted<Value: Comparable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }

  /// Returns the query sorted by an optional property, in the order of its index values, with `nil` before every value.
  public func sorted<Value: Comparable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }
}

// Overloads that no program can call. The compiler chooses them where no other overload fits, and then shows their message.
extension Query {
  /// Refuses to compile a trailing closure in the place of a predicate, and names the call that takes one.
  ///
  /// The first parameter keeps this overload away from calls that pass a predicate. Without it, the compiler would explain a type error in
  /// a predicate by this overload.
  @available(
    *, unavailable,
    message: "a condition is a predicate, which can use an index: write where(#Predicate { … }); for a closure, write filter { … }"
  )
  @_disfavoredOverload
  public func `where`(_ unused: Void = (), _ isIncluded: @escaping @Sendable (Item) -> Bool) -> Self { filter(isIncluded) }

  /// Refuses to compile a sort by a property whose type has no order, and names the conformances that give it one.
  @available(
    *, unavailable,
    message: "an order needs a property whose type is Comparable or IndexableValue; add one: 'enum Kind: String, Codable, IndexableValue'"
  )
  @_disfavoredOverload
  public func sorted(by keyPath: any PartialKeyPath<Item> & Sendable, _ order: SortOrder = .forward) -> Self { self }
}
