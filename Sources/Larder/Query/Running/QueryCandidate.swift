/// A record that may be a result of a query: two references, whatever the record holds.
struct QueryCandidate<Item: Sendable>: Sendable {
  let slot: RecordSlot
  let value: DecodedValue<Item>
  /// The distance from the place of `near`, in metres.
  var distance: Double?
  /// The rank of its words; more is better.
  var score: Double?

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
