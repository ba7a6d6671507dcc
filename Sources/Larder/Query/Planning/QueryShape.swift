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
