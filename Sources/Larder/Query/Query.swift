// Query/ defines, plans and runs queries. The folder itself has the public types. Predicate/ compiles a #Predicate to closures and
// constraints, Planning/ chooses an index, and Running/ runs the plan.
// Invariant: a query reads the records and the indexes of exactly one commit. A query returns the same results on every backend, with or
// without indexes.
// Called by LocalRepository, RepositorySnapshot, Transaction and LiveResults.

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
/// A query is a value that does nothing by itself, and each of its methods returns a changed copy. Create a query on any thread, keep it,
/// and pass it to ``LocalRepository/fetch(_:)``, to a ``RepositorySnapshot`` or to a ``Transaction``. To follow the results of a query,
/// pass it to ``LocalRepository/results(of:)``.
///
/// The conditions of a query add up: a record must meet all of them. Results come in the order of `sorted`. Without `sorted`, `near` orders
/// by distance, `matching` by rank, and any other query by id. Records that are equal in the query's order are sorted by id.
///
/// Creating a query costs a few microseconds. Keep a query that you run often, because its predicates are analyzed when it is created. With
/// a declared ``RepositoryIndex`` that answers all conditions and the order, a fetch reads only the records that it returns. Without an
/// index that fits the query, a fetch reads all records. Call ``LocalRepository/explain(_:)`` to see the plan.
///
/// ## When to use another call
///
/// - Use ``LocalRepository/find(by:)`` for a record whose id you have.
/// - Use ``LocalRepository/page(_:after:limit:)`` to read the results in pages.
/// - Use ``LocalRepository/grouped(by:_:)``, `min`, `max` and `sum` to compute one value from many records.
///
/// ## Avoid
///
/// - Do not use ``filter(_:)`` for a condition that a predicate can express, because no index can answer a closure.
/// - Do not use ``offset(_:)`` for paging, because records can be inserted and deleted between two fetches.
/// - Do not use `near`, `within` or `matching` without the index that they need. A query with `near` or `within` throws `.unsupported`
///   without a `.geo` index, and a query with `matching` without a `.fullText` index.
/// - Do not expect the results to include every record. Records that do not decode are left out, unless the query is ``strict()``.
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
  /// Query without its closures, from which the planner makes a plan.
  ///
  /// The shape is stored beside the closures, so that it is made once for a query and not at every fetch.
  var shape = QueryShape()
  /// Conditions of the query's predicates, all of which must hold, analyzed when the query is created.
  var conjuncts: [Conjunct<Item>] = []
  private(set) var filters: [@Sendable (Item) -> Bool] = []
  var order: [SortColumn<Item>] = [] {
    didSet { shape.order = order.map { QueryShape.OrderColumn(keyPath: $0.keyPath, isReversed: $0.isReversed) } }
  }

  /// Creates a query for all records.
  public init() {}

  /// Returns the query with a predicate that records must meet.
  ///
  /// A declared index is used for equality, ranges, `contains` over constants, conjunctions of these, and order. Evaluating a predicate
  /// never traps, except in the code of a computed property. If the predicate cannot be evaluated for a record (an integer overflow, a
  /// subscript out of range), the fetch throws `.unsupported` with the reason.
  public func `where`(_ predicate: Predicate<Item>) -> Self {
    do throws(RepositoryError) {
      return adding(try CompiledPredicate.conjuncts(of: predicate))
    } catch {
      // `where` cannot throw, so the query stores the error of the first predicate that could not be compiled, and the fetch throws the
      // error.
      return changed { $0.shape.failure = $0.shape.failure ?? error }
    }
  }

  /// Returns the query with one more condition.
  func adding(_ conjunct: Conjunct<Item>) -> Self { adding([conjunct]) }

  private func adding(_ added: [Conjunct<Item>]) -> Self {
    // The query is copied directly and not by `changed`, because the closure for `changed` would look up the query's type metadata once
    // more.
    var query = self
    for conjunct in added {
      query.shape.conditions.append(QueryShape.Condition(constraint: conjunct.constraint, isExact: conjunct.isExact))
    }
    // For the usual single predicate, the array of conjuncts is assigned and not appended to, so that no second array is allocated.
    if query.conjuncts.isEmpty { query.conjuncts = added } else { query.conjuncts += added }
    return query
  }

  /// Returns the query with a closure that must return `true` for each record of the result.
  ///
  /// The closure of `filter` runs for each record that meets the other conditions, and no index can answer the closure. Use `where` for a
  /// condition that a predicate can express.
  public func filter(_ isIncluded: @escaping @Sendable (Item) -> Bool) -> Self {
    changed { query in
      query.filters.append(isIncluded)
      query.shape.filterCount += 1
    }
  }

  /// Returns the query for records near a place, nearest first.
  ///
  /// A query with `near` needs a `.geo` index. Distances are measured along great circles on a sphere with Earth's mean radius. Without
  /// `within`, all records with a place match, and a query with the limit k returns the k nearest records. If you call `near` again,
  /// records must be near both places, and the last call determines the order and the distances.
  /// - Parameters:
  ///   - latitude: Degrees north, from -90 to 90.
  ///   - longitude: Degrees east. Multiples of 360 degrees are ignored.
  ///   - within: Greatest distance from the place, inclusive.
  public func near(latitude: Double, longitude: Double, within: Distance? = nil) -> Self {
    changed { $0.shape.areas.append(.init(latitude: latitude, longitude: longitude, radius: within)) }
  }

  /// Returns the query for records whose place is in a box or on its edge.
  ///
  /// A query with `within` needs a `.geo` index. If you call `within` again, records must be in both boxes.
  public func within(_ box: BoundingBox) -> Self { changed { $0.shape.boxes.append(box) } }

  /// Returns the query for records that have all the given words, best match first.
  ///
  /// A query with `matching` needs a `.fullText` index. The last word of the text also matches as a prefix, unless white space follows it.
  /// Records that have the last word as a whole word come before records that only have it as a prefix. Case and diacritics are ignored. A
  /// text without words matches no record. If you call `matching` again, records must have the words of both texts.
  public func matching(_ words: String) -> Self {
    changed { query in
      let added = TextQuery(words)
      query.shape.words = query.shape.words.map { $0.intersection(added) } ?? added
    }
  }

  /// Returns the query for at most `count` records.
  ///
  /// If `count` is negative, the fetch throws `.unsupported`.
  public func limit(_ count: Int) -> Self { changed { $0.shape.maximum = count } }

  /// Returns the query without its first `count` records.
  ///
  /// If `count` is negative, the fetch throws `.unsupported`. For paging use ``LocalRepository/page(_:after:limit:)``, because records can
  /// be inserted and deleted between two fetches.
  public func offset(_ count: Int) -> Self { changed { $0.shape.skipped = count } }

  /// Returns the query in strict form, which throws `.decodingFailed` while any record of the collection does not decode.
  ///
  /// A query without `strict()` leaves out records that do not decode. A strict query throws if any record does not decode, because the
  /// query cannot determine whether that record meets the conditions. The error has the number of the records that do not decode, and the
  /// hashes of the first eight of their keys. ``RepositorySnapshot/undecodable`` lists all records that do not decode. `strict()` applies
  /// to every call that takes a query: of a repository, a snapshot or a transaction, and to live results, pages and deletions. A strict
  /// deletion that throws deletes nothing. Cost: every record that is not decoded yet is decoded, and records written since the last call
  /// are checked.
  public func strict() -> Self { changed { $0.shape.isStrict = true } }

  func changed(_ change: (inout Self) -> Void) -> Self {
    var query = self
    change(&query)
    return query
  }

  /// Returns the query for records in which an optional property is not `nil`.
  func present<Value: IndexableValue>(_ keyPath: any KeyPath<Item, Value?> & Sendable) -> Self {
    let constraint = Constraint.range(keyPath, lower: Bound(value: .null, isInclusive: false), upper: nil, orNotANumber: false)
    return adding(
      Conjunct(constraint: constraint, isExact: true) { (item) throws(RepositoryError) -> Bool in item[keyPath: keyPath] != nil })
  }
}

extension Query {
  /// Returns the query sorted by a property.
  ///
  /// If you call `sorted` again, the further property orders records that are equal in the earlier properties. The id orders records that
  /// are equal in all sorted properties. Text is ordered by the bytes of its composed form. NaN counts as greater than every number. If the
  /// property's type is also ``IndexableValue``, its index values are compared.
  public func sorted<Value: Comparable & Sendable>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(keyPath, order)) }
  }

  /// Returns the query sorted by an optional property, where `nil` is less than every other value.
  public func sorted<Value: Comparable & Sendable>(
    by keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(keyPath, order)) }
  }

  /// Returns the query sorted by a property, in the order of its index values.
  ///
  /// Use `sorted` by index values for Booleans, where `false` is less than `true`, and for enumerations, which are ordered by their raw
  /// values. In optionals of Booleans and enumerations, `nil` is less than every other value.
  public func sorted<Value: IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }

  /// Returns the query sorted by a property, in the order of its index values, even if the type's own `<` has another order.
  public func sorted<Value: Comparable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }

  /// Returns the query sorted by an optional property, in the order of its index values, where `nil` is less than every other value.
  public func sorted<Value: Comparable & IndexableValue>(
    by keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder = .forward
  ) -> Self {
    changed { $0.order.append(SortColumn(indexed: keyPath, order)) }
  }
}

// The overloads in this extension are `unavailable`, so a call of one never compiles. The compiler selects an unavailable overload if no
// other overload fits, and prints the overload's message, which names the right call.
extension Query {
  /// Refuses to compile a trailing closure in the place of a predicate, and names the call that accepts a closure.
  ///
  /// The parameter `unused` keeps the compiler from selecting this unavailable overload for a call with a predicate. Without `unused`, a
  /// type error within a predicate would be reported with the message of the unavailable overload.
  @available(
    *, unavailable,
    message: "a condition is a predicate, which can use an index: write where(#Predicate { … }); for a closure, write filter { … }"
  )
  @_disfavoredOverload
  public func `where`(_ unused: Void = (), _ isIncluded: @escaping @Sendable (Item) -> Bool) -> Self { filter(isIncluded) }

  /// Refuses to compile a sort by a property whose type has no order, and names the protocols that give a type an order.
  @available(
    *, unavailable,
    message: "an order needs a property whose type is Comparable or IndexableValue; add one: 'enum Kind: String, Codable, IndexableValue'"
  )
  @_disfavoredOverload
  public func sorted(by keyPath: any PartialKeyPath<Item> & Sendable, _ order: SortOrder = .forward) -> Self { self }
}
