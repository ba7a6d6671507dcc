/// A query whose predicates are compiled and whose numbers are checked: what a plan is made for, and what a record is tested with.
struct PreparedQuery<Item: Codable & Identifiable & Sendable>: Sendable where Item.ID: Hashable & Codable & Sendable {
  let shape: QueryShape
  let conjuncts: [Conjunct<Item>]
  let filters: [@Sendable (Item) -> Bool]
  let order: [SortColumn<Item>]

  /// - Throws: `.unsupported` for a predicate, a place or a number that cannot be.
  init(_ query: Query<Item>) throws(RepositoryError) {
    try query.shape.check()
    shape = query.shape
    conjuncts = query.conjuncts
    filters = query.filters
    order = query.order
  }

  var near: QueryShape.Area? { shape.near }
  var words: TextQuery? { shape.words }
  var maximum: Int? { shape.maximum }
  var skipped: Int { shape.skipped }
  var needed: Int? { shape.needed }
  var isImpossible: Bool { shape.isImpossible }
}

/// A record that a query is looking at; two references, whatever the record holds.
struct QueryCandidate<Item: Sendable>: Sendable {
  let slot: RecordSlot
  let value: DecodedValue<Item>
  /// Metres from the place of `near`.
  var distance: Double?
  /// How well it matches; more is better.
  var score: Double?

  init(slot: RecordSlot, value: DecodedValue<Item>, distance: Double? = nil, score: Double? = nil) {
    (self.slot, self.value, self.distance, self.score) = (slot, value, distance, score)
  }

  var item: Item { value.item }
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
      if let first = left.distance, let second = right.distance {
        if first != second { return first < second }
      } else if let first = left.score, let second = right.score, first != second {
        return first > second
      }
    }
    return keys.isBefore(left.slot.key, right.slot.key)
  }
}
