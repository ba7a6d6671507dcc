/// A page of a query's results, with the cursor for the next page.
public struct Page<Item: Sendable>: Sendable {
  /// Results in the order of the query.
  public let items: [Item]
  /// Results with the distance, rank and extract of each.
  public let matches: [Match<Item>]
  /// Cursor to pass to ``LocalRepository/page(_:after:limit:)`` for the next page, or `nil` on the last page.
  public let next: PageCursor?

  init(matches: [Match<Item>], next: PageCursor?) {
    items = matches.map { $0.item }
    (self.matches, self.next) = (matches, next)
  }
}

/// The position of a record in the order of a query.
///
/// The next page begins behind it.
///
/// It stores the sorted values and the id, not a count. So records may be inserted and deleted between two pages: the next page begins with
/// the first record behind the position, and a record that keeps its place appears exactly once. You may store a cursor and use it in
/// another launch. It contains the sorted values of one record, so protect it as you protect the record.
public struct PageCursor: Hashable, Sendable, Codable {
  let values: [IndexValue]
  let key: String
  /// Order of the query as text, so that a cursor is refused by a query with another order.
  let order: [String]

  private enum CodingKeys: String, CodingKey {
    case values = "v"
    case key = "k"
    case order = "o"
  }
}

extension PageCursor {
  /// Creates the cursor behind the last result of a page.
  ///
  /// `earlier` is the cursor of the page before, of the same query.
  ///
  /// - Throws: `.unsupported` for an order by a property that is not ``IndexableValue``, whose values cannot be stored.
  init<Item>(_ last: QueryCandidate<Item>, after earlier: PageCursor?, _ query: Query<Item>) throws(RepositoryError) {
    key = last.slot.key.text
    // Reused, so that a further page does not make the same texts again.
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

  /// Checks that a query can be paged, and that a cursor belongs to its order.
  ///
  /// - Throws: `.unsupported` for a query without a lasting order, and for a cursor of another order.
  static func check<Item>(_ cursor: PageCursor?, _ query: Query<Item>) throws(RepositoryError) {
    // Ranks depend on all records, so a position by rank would move with every write.
    if query.shape.words != nil, query.order.isEmpty, query.shape.near == nil {
      throw RepositoryError(.unsupported, "expected a lasting order, found ranks, which change with every write; add sorted(by:)")
    }
    for column in query.order where column.value == nil { throw notIndexable(column.description) }
    // A stored cursor may have been altered, so the number of its values is checked, too.
    if let cursor, cursor.order != order(query) || cursor.values.count != (query.order.isEmpty ? cursor.order.count : query.order.count) {
      throw RepositoryError(.unsupported, "expected a cursor of this query's order, found one of another; begin with the first page")
    }
  }

  /// Returns true if a candidate comes after the cursor.
  ///
  /// `start` is the cursor's key, which the caller creates once for all candidates.
  func isBefore<Item>(_ candidate: QueryCandidate<Item>, _ order: ResultOrder<Item>, _ start: RecordKey) -> Bool {
    let others: [IndexValue] =
      order.columns.isEmpty ? candidate.distance.map { [IndexValue($0)] } ?? [] : order.columns.map { $0.value?(candidate.item) ?? .null }
    for (position, (mine, other)) in zip(values, others).enumerated() where mine != other {
      // Without columns the values are distances, which always ascend.
      let isReversed = order.columns.indices.contains(position) && order.columns[position].isReversed
      return isReversed ? other < mine : mine < other
    }
    return order.keys.isBefore(start, candidate.slot.key)
  }

  /// Returns the values at which an index entry at the cursor begins: the equal values of a span, then the cursor's values.
  func values(after prefix: [IndexValue], _ order: [QueryShape.OrderColumn], _ columns: [IndexDefinition.Column]) -> [IndexValue] {
    var start = prefix
    for column in columns.dropFirst(prefix.count) {
      // The position in the index ends at the first column that the query does not sort by.
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
