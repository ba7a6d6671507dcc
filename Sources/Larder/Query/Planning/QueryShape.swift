internal import Foundation

/// A query without its closures and without the type of its records, from which the planner makes a plan.
struct QueryShape: Sendable {
  /// One of the query's conditions, all of which a record in the result meets.
  ///
  /// ``Conjunct`` is the same condition with the closure that tests a record.
  struct Condition: Sendable {
    let constraint: Constraint
    let isExact: Bool
  }

  /// A property by which the query sorts, with its direction.
  ///
  /// ``SortColumn`` is the same property with the closures that compare records.
  struct OrderColumn: Sendable {
    let keyPath: ItemPath
    let isReversed: Bool
  }

  /// A place to which records must be near.
  struct Area: Sendable {
    let latitude: Double
    let longitude: Double
    /// Greatest distance from the place, inclusive, or `nil` for any distance.
    let radius: Distance?
  }

  var conditions: [Condition] = []
  /// Error of the first predicate that could not be compiled, which the fetch throws.
  var failure: RepositoryError?
  var filterCount = 0
  /// Places to which records must be near.
  ///
  /// The last place in `areas` determines the order and the distances of the results.
  var areas: [Area] = []
  var boxes: [BoundingBox] = []
  var words: TextQuery?
  var order: [OrderColumn] = []
  /// Limit of the query, the greatest number of results, or `nil` for no limit.
  var maximum: Int?
  /// Offset of the query, the number of leading results that are left out.
  var skipped = 0
  /// True if the query throws while a record of the collection does not decode.
  ///
  /// If `isStrict` is false, the query leaves out records that do not decode.
  var isStrict = false

  /// Place that determines the order and the distances of the results, or `nil` for a query without `near`.
  var near: Area? { areas.last }

  /// True if the query has conditions on the geographic place of a record.
  var isPlaced: Bool { !areas.isEmpty || !boxes.isEmpty }

  /// Number of records that the query needs if they come in the query's order: offset plus limit, or `nil` for all.
  var needed: Int? { needed(behind: skipped) }

  /// Returns the number of records that the query needs if they come in the query's order and `skipped` of them are left out.
  ///
  /// The app chooses the limit and the offset, so their sum may overflow. If the sum overflows, the function returns `Int.max`.
  func needed(behind skipped: Int) -> Int? { maximum.map { $0.addingReportingOverflow(skipped).overflow ? Int.max : $0 + skipped } }

  /// True if no record can meet the query, because its limit is 0 or a condition is never met.
  var isImpossible: Bool { maximum == 0 || conditions.contains { if case .never = $0.constraint { true } else { false } } }

  /// Checks that the query's predicates, places, limit and offset are valid.
  ///
  /// - Throws: `.unsupported` for a predicate, a place, a limit or an offset that is not valid.
  func check() throws(RepositoryError) {
    if let failure { throw failure }
    guard (maximum ?? 0) >= 0, skipped >= 0 else {
      throw RepositoryError(
        .unsupported, "expected a limit and an offset that are not negative, found limit \(maximum ?? 0) and offset \(skipped)")
    }
    for near in areas {
      // `abs(latitude) <= 90` is false for NaN, so a NaN latitude is refused too.
      guard near.longitude.isFinite, abs(near.latitude) <= 90, (near.radius?.meters ?? 0) >= 0 else {
        throw RepositoryError(.unsupported, "near needs a latitude from -90 to 90, a finite longitude, and no negative distance")
      }
    }
    for box in boxes {
      // A comparison with NaN is false, so a box with NaN as its south or north is refused too.
      guard box.south <= box.north, box.west.isFinite, box.east.isFinite else {
        throw RepositoryError(.unsupported, "within needs a box whose south is not above its north, between finite longitudes")
      }
    }
  }
}

/// A property by which a query sorts, with its direction and the closures that compare records by the property.
struct SortColumn<Item: Sendable>: Sendable {
  let keyPath: any PartialKeyPath<Item> & Sendable
  let isReversed: Bool
  /// Returns the property's value as an index value, or `nil` if the property's type is not ``IndexableValue``.
  let value: (@Sendable (Item) -> IndexValue)?
  /// Reads the property's index value from a decoded record in place, without copying the record.
  ///
  /// `valueInPlace` is `nil` for a column that was not made for an ``IndexableValue`` type. The type of the closure does not depend on the
  /// type of the records, so passing the closure to other functions needs no type metadata look-up.
  let valueInPlace: (@Sendable (any DecodedRecord) -> IndexValue?)?
  /// Compares two records by a property whose type has no index values.
  private let order: @Sendable (Item, Item) -> Int

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.init(keyPath, order, isIndexable: Value.self is any IndexableValue.Type) { left, right in
      Self.compare(left[keyPath: keyPath], right[keyPath: keyPath])
    }
  }

  init<Value: Comparable & Sendable>(_ keyPath: any KeyPath<Item, Value?> & Sendable, _ order: SortOrder) {
    self.init(keyPath, order, isIndexable: Value.self is any IndexableValue.Type) { left, right in
      // `nil` sorts before every value, as it does in an index.
      guard let right = right[keyPath: keyPath] else { return left[keyPath: keyPath] == nil ? 0 : 1 }
      guard let left = left[keyPath: keyPath] else { return -1 }
      return Self.compare(left, right)
    }
  }

  /// Creates a column that compares the property's index values, as an index does.
  init<Value: IndexableValue>(indexed keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    let read = PropertyReader(keyPath)
    value = { read($0).indexValue }
    // The downcast is unchecked, so the types are compared first: a repository with another type may have decoded the record.
    let type = ObjectIdentifier(DecodedValue<Item>.self)
    valueInPlace = { record in
      ObjectIdentifier(Swift.type(of: record)) == type ? unsafeDowncast(record, to: DecodedValue<Item>.self).indexValue(read) : nil
    }
    // The closure `order` of an indexed column is never called, because `compare` uses `value` if `value` is set.
    self.order = { _, _ in 0 }
  }

  private init<Value>(
    _ keyPath: any KeyPath<Item, Value> & Sendable, _ order: SortOrder, isIndexable: Bool,
    _ compare: @escaping @Sendable (Item, Item) -> Int
  ) {
    self.keyPath = keyPath
    isReversed = order == .reverse
    // If the property's type has index values, the column compares index values and not the property's values. A sort in memory by index
    // values gives the same order as an index.
    if isIndexable { value = { IndexValue(of: $0[keyPath: keyPath]) } } else { value = nil }
    valueInPlace = nil
    self.order = compare
  }

  /// Compares two values of a property whose type has no index values.
  private static func compare<Value: Comparable>(_ left: Value, _ right: Value) -> Int {
    if left < right { return -1 }
    if right < left { return 1 }
    // A value that differs from itself, such as the NaN of a `CGFloat`, is not less than any value. Such a value sorts after all others, as
    // in an index, because a sort needs a place for every value.
    switch (left == left, right == right) {
    case (true, false): return -1
    case (false, true): return 1
    case (true, true), (false, false): return 0
    }
  }

  /// Compares two records by the property, in the direction of the column.
  ///
  /// The result is negative if `left` comes first, and 0 if the property is equal in both records.
  func compare(_ left: Item, _ right: Item) -> Int {
    let ascending = value.map { $0(left).compared(to: $0(right)).rawValue } ?? order(left, right)
    return isReversed ? -ascending : ascending
  }
}

extension DecodedValue {
  /// Returns the index value of a property of the decoded record.
  ///
  /// `indexValue(_:)` is not inlined, because in the caller the type metadata look-up would take longer than reading the property.
  @inline(never) fileprivate func indexValue<Value: IndexableValue>(_ read: PropertyReader<Item, Value>) -> IndexValue {
    read(item).indexValue
  }
}

extension SortColumn: CustomStringConvertible {
  var description: String { keyPath.propertyName + (isReversed ? " desc" : "") }
}
