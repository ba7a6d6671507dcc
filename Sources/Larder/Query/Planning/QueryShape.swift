internal import Foundation

/// A query without its closures, and without the type of its records: what a plan is made for.
struct QueryShape: Sendable {
  /// A part of the predicates; see ``Conjunct``.
  struct Condition: Sendable {
    let constraint: Constraint
    let isExact: Bool
  }

  /// A property that the query sorts by; see ``SortColumn``.
  struct OrderColumn: Sendable {
    let keyPath: ItemPath
    let isReversed: Bool
  }

  /// A place that records are asked to be near.
  struct Area: Sendable {
    let latitude: Double
    let longitude: Double
    /// The greatest distance, included; `nil` for any.
    let radius: Distance?
  }

  var conditions: [Condition] = []
  /// The error of a predicate that cannot be evaluated.
  var failure: RepositoryError?
  var filterCount = 0
  /// The places to be near; the last one gives order and distances.
  var areas: [Area] = []
  var boxes: [BoundingBox] = []
  var words: TextQuery?
  var order: [OrderColumn] = []
  /// The limit; `nil` for none.
  var maximum: Int?
  /// The offset.
  var skipped = 0
  /// Whether a record of the collection that does not decode is an error, rather than left out.
  var isStrict = false

  /// The place that gives order and distances.
  var near: Area? { areas.last }

  /// Whether the place of a record must be looked at.
  var isPlaced: Bool { !areas.isEmpty || !boxes.isEmpty }

  /// The number of records that decide the answer, when they come in its order; `nil` for all.
  var needed: Int? { needed(behind: skipped) }

  /// Returns how many records decide the answer, when they come in its order and so many are left out first; `nil` for all.
  func needed(behind skipped: Int) -> Int? { maximum.map { $0.addingReportingOverflow(skipped).overflow ? Int.max : $0 + skipped } }

  /// Whether no record can meet the query.
  var isImpossible: Bool { maximum == 0 || conditions.contains { if case .never = $0.constraint { true } else { false } } }

  /// Refuses a query that cannot be evaluated.
  /// - Throws: `.unsupported` for a predicate, a place or a number that cannot be.
  func check() throws(RepositoryError) {
    if let failure { throw failure }
    guard (maximum ?? 0) >= 0, skipped >= 0 else {
      throw RepositoryError(
        .unsupported, "expected a limit and an offset that are not negative, found limit \(maximum ?? 0) and offset \(skipped)")
    }
    for near in areas {
      guard near.longitude.isFinite, abs(near.latitude) <= 90, (near.radius?.meters ?? 0) >= 0 else {
        throw RepositoryError(.unsupported, "near needs a latitude from -90 to 90, a finite longitude, and no negative distance")
      }
    }
    for box in boxes {
      guard box.south <= box.north, box.west.isFinite, box.east.isFinite else {
        throw RepositoryError(.unsupported, "within needs a box whose south is not above its north, between finite longitudes")
      }
    }
  }
}
