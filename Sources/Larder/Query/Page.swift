/// Some results of a query in order, and the cursor to go on from.
public struct Page<Item: Sendable>: Sendable {
  /// The results.
  public let items: [Item]
  /// The results with what the query has found out about each: distance, rank, highlighted text.
  public let matches: [Match<Item>]
  /// The cursor for the results that follow, by ``LocalRepository/page(_:after:limit:)``; `nil` on the last page.
  public let next: PageCursor?

  init(matches: [Match<Item>], next: PageCursor?) {
    items = matches.map { $0.item }
    (self.matches, self.next) = (matches, next)
  }
}

/// The position of a record in the order of a query, behind which the next page begins.
///
/// It names the position by the sorted values and the id, not by a count: whatever is inserted or deleted meanwhile, the next page begins
/// with the first record behind it, and no record that stays where it is appears twice or is left out. It may be stored, and used in
/// another launch. It holds the sorted values of one record: treat it as private as the record.
public struct PageCursor: Hashable, Sendable, Codable {
  let values: [IndexValue]
  let key: String
  /// The order of the query, so that a cursor is not used with another one.
  let order: [String]

  private enum CodingKeys: String, CodingKey {
    case values = "v"
    case key = "k"
    case order = "o"
  }
}

extension PageCursor {
  /// Makes the cursor behind the last result of a page; the cursor before it was one of the same query.
  /// - Throws: `.unsupported` for an order whose values cannot be written down.
  init<Item>(_ last: QueryCandidate<Item>, after earlier: PageCursor?, _ query: Query<Item>) throws(RepositoryError) {
    key = last.slot.key.text
    order = earlier?.order ?? Self.order(query)
    if query.order.isEmpty, let distance = last.distance {
      values = [IndexValue(distance)]
    } else {
      var values: [IndexValue] = []
      for column in query.order {
        guard let value = column.value else { throw Self.notIndexable(column.description) }
        values.append(value(last.item))
      }
      self.values = values
    }
  }

  /// Refuses a cursor, or a query that cannot have one.
  /// - Throws: `.unsupported` for a query that has no lasting order, or another one than the cursor.
  static func check<Item>(_ cursor: PageCursor?, _ query: Query<Item>) throws(RepositoryError) {
    if query.shape.words != nil, query.order.isEmpty, query.shape.near == nil {
      throw RepositoryError(.unsupported, "expected a lasting order, found ranks, which change with every write; add sorted(by:)")
    }
    for column in query.order where column.value == nil { throw notIndexable(column.description) }
    if let cursor, cursor.order != order(query) || cursor.values.count != (query.order.isEmpty ? cursor.order.count : query.order.count) {
      throw RepositoryError(.unsupported, "expected a cursor of this query's order, found one of another; begin with the first page")
    }
  }

  /// Whether a candidate comes after the cursor, whose key the caller makes, once for all of them.
  func isBefore<Item>(_ candidate: QueryCandidate<Item>, _ order: ResultOrder<Item>, _ start: RecordKey) -> Bool {
    let others: [IndexValue] =
      order.columns.isEmpty ? candidate.distance.map { [IndexValue($0)] } ?? [] : order.columns.map { $0.value?(candidate.item) ?? .null }
    for (position, (mine, other)) in zip(values, others).enumerated() where mine != other {
      let isReversed = order.columns.indices.contains(position) && order.columns[position].isReversed
      return isReversed ? other < mine : mine < other
    }
    return order.keys.isBefore(start, candidate.slot.key)
  }

  /// Returns the values with which an index entry at the cursor begins, behind the equal ones of a span.
  func values(after prefix: [IndexValue], _ order: [QueryShape.OrderColumn], _ columns: [IndexDefinition.Column]) -> [IndexValue] {
    var start = prefix
    for column in columns.dropFirst(prefix.count) {
      guard let position = order.firstIndex(where: { $0.keyPath.isSame(as: column.keyPath) }), position < values.count else { break }
      start.append(values[position])
    }
    return start
  }

  private static func order<Item>(_ query: Query<Item>) -> [String] {
    query.order.isEmpty ? (query.shape.near.map { ["near \($0.latitude) \($0.longitude)"] } ?? []) : query.order.map { $0.description }
  }

  private static func notIndexable(_ column: String) -> RepositoryError {
    RepositoryError(.unsupported, "expected an order by properties that are IndexableValue, found \(column); sort pages by others")
  }
}
