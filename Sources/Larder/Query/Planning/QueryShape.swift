internal import Foundation

/// A query without its closures and without the type of its records: the input of the planner.
struct QueryShape: Sendable {
  /// A part of the query's predicates.
  ///
  /// See ``Conjunct``.
  struct Condition: Sendable {
    let constraint: Constraint
    let isExact: Bool
  }

  /// A property that the query sorts by, and its direction.
  ///
  /// See ``SortColumn``.
  struct OrderColumn: Sendable {
    let keyPath: ItemPath
    let isReversed: Bool
  }

  /// A place that records must be near.
  struct Area: Sendable {
    let latitude: Double
    let longitude: Double
    /// Greatest distance, inclusive, or `nil` for any distance.
    let radius: Distance?
  }

  var conditions: [Condition] = []
  /// Error of the first predicate that could not be compiled.
  var failure: RepositoryError?
  var filterCount = 0
  /// Places that records must be near, of which the last one gives the order and the distances.
  var areas: [Area] = []
  var boxes: [BoundingBox] = []
  var words: TextQuery?
  var order: [OrderColumn] = []
  /// Greatest number of results: the query's limit, or `nil` for none.
  var maximum: Int?
  /// Number of results that the query skips: its offset.
  var skipped = 0
  /// True if a record of the collection that does not decode is an error and not skipped.
  var isStrict = false

  /// Place that gives the order and the distances.
  var near: Area? { areas.last }

  /// True if the query has conditions on the place of a record.
  var isPlaced: Bool { !areas.isEmpty || !boxes.isEmpty }

  /// Number of records that decide the answer if they come in the query's order: offset plus limit, or `nil` for all.
  var needed: Int? { needed(behind: skipped) }

  /// Returns the number of records that decide the answer if they come in the query's order and `skipped` of them are left out.
  ///
  /// The sum may overflow, because both numbers come from the app.
  func needed(behind skipped: Int) -> Int? { maximum.map { $0.addingReportingOverflow(skipped).overflow ? Int.max : $0 + skipped } }

  /// True if no record can meet the query.
  var isImpossible: Bool { maximum == 0 || conditions.contains { if case .never = $0.constraint { true } else { false } } }

  /// Checks that the query's predicates, places, limit and offset can be evaluated.
  ///
  /// - Throws: `.unsupported` for a predicate, a place, a limit or an offset that is not valid.
  func check() throws(RepositoryError) {
    if let failure { throw failure }
    guard (maximum ?? 0) >= 0, skipped >= 0 else {
      throw RepositoryError(
        .unsupported, "expected a limit and an offset that are not negative, found limit \(maximum ?? 0) and offset \(skipped)")
    }
    for near in areas {
      // `abs(latitude) <= 90` is false for NaN, so NaN is refused, too.
      guard near.longitude.isFinite, abs(near.latitude) <= 90, (near.radius?.meters ?? 0) >= 0 else {
        throw RepositoryError(.unsupported, "near needs a latitude from -90 to 90, a finite longitude, and no negative distance")
      }
    }
    for box in boxes {
      // NaN fails the comparison of south and north, too.
      guard box.south <= box.north, box.west.isFinite, box.east.isFinite else {
        throw RepositoryError(.unsupported, "within needs a box whose south is not above its north, between finite longitudes")
      }
    }
  }
}
