/// A query whose predicates are compiled and whose numbers are checked: what a plan is made for, and what a record is tested with.
struct PreparedQuery<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let conjuncts: [Conjunct<Item>]
  let filters: [@Sendable (Item) -> Bool]
  let near: (latitude: Double, longitude: Double, within: Distance?)?
  let box: BoundingBox?
  let words: String?
  let order: [SortColumn<Item>]
  let maximum: Int?
  let skipped: Int

  /// - Throws: `.unsupported` for a predicate, a place or a number that cannot be.
  init(_ query: Query<Item>) throws(RepositoryError) {
    var conjuncts: [Conjunct<Item>] = []
    for predicate in query.predicates { conjuncts += try predicate.get().conjuncts }
    self.conjuncts = conjuncts
    filters = query.filters
    near = query.near
    box = query.box
    words = query.words
    order = query.order
    maximum = query.maximum
    skipped = query.skipped
    guard (query.maximum ?? 0) >= 0, query.skipped >= 0 else {
      throw RepositoryError(.unsupported, "a limit or offset is not a negative number")
    }
    if let near {
      guard near.longitude.isFinite, abs(near.latitude) <= 90, (near.within?.meters ?? 0) >= 0 else {
        throw RepositoryError(.unsupported, "near needs a latitude from -90 to 90, a finite longitude, and no negative distance")
      }
    }
    if let box {
      guard box.south <= box.north, box.west.isFinite, box.east.isFinite else {
        throw RepositoryError(.unsupported, "a box reaches from south to north, between finite longitudes")
      }
    }
  }

  /// How many records decide the answer, when they come in its order; `nil` for all.
  var needed: Int? { maximum.map { $0.addingReportingOverflow(skipped).overflow ? Int.max : $0 + skipped } }

  /// Whether no record can meet the query.
  var isImpossible: Bool {
    conjuncts.contains { $0.constraint == .never } || maximum == 0
  }
}

/// A record that a query is looking at.
struct QueryCandidate<Item: Sendable>: Sendable {
  let slot: RecordSlot
  let item: Item
  /// Metres from the place of `near`.
  var distance: Double?
  /// How well it matches; more is better.
  var score: Double?
}

/// The order of a query's results: total, because at last the id decides.
struct ResultOrder<Item: Sendable>: Sendable {
  let columns: [SortColumn<Item>]
  let keys: KeyOrder

  /// Whether the left one comes first.
  func isBefore(_ left: QueryCandidate<Item>, _ right: QueryCandidate<Item>) -> Bool {
    for column in columns {
      let order = column.compare(left.item, right.item)
      if order != 0 { return order < 0 }
    }
    if columns.isEmpty {
      if let first = left.distance, let second = right.distance, first != second { return first < second }
      if let first = left.score, let second = right.score, first != second { return first > second }
    }
    return keys.isBefore(left.slot.key, right.slot.key)
  }
}
