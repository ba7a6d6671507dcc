/// A page of a query's results, with the cursor for the next page.
public struct Page<Item: Sendable>: Sendable {
  /// Records on the page, in the order of the query.
  public let items: [Item]
  /// Records on the page, each with its distance, rank and text extract.
  public let matches: [Match<Item>]
  /// Cursor to pass to ``LocalRepository/page(_:after:limit:)`` for the next page, or `nil` on the last page.
  public let next: PageCursor?

  init(matches: [Match<Item>], next: PageCursor?) {
    items = matches.map { $0.item }
    (self.matches, self.next) = (matches, next)
  }
}

/// The position of a record in the order of a query, after which the next page begins.
///
/// A cursor stores the id of the page's last record and the values by which the query sorts, not a count. You may insert and delete records
/// between two pages. After such changes, the next page begins with the first record after the position of the cursor. A record whose
/// sorted values do not change appears on exactly one page. You may store a cursor and use it in another launch of the app. A cursor
/// contains values of one record, so protect it as you protect the record.
public struct PageCursor: Hashable, Sendable, Codable {
  let values: [IndexValue]
  let key: String
  /// Order of the query as text.
  ///
  /// A query with another order refuses the cursor, because a position in one order is no position in another order.
  let order: [String]

  private enum CodingKeys: String, CodingKey {
    case values = "v"
    case key = "k"
    case order = "o"
  }
}

extension PageCursor {
  /// Creates the cursor at the last result of a page, from which the next page begins.
  ///
  /// - Parameter earlier: Cursor of the previous page of the same query, or `nil` for the first page.
  /// - Throws: `.unsupported` for an order by a property that is not ``IndexableValue``, whose values cannot be stored.
  init<Item>(_ last: QueryCandidate<Item>, after earlier: PageCursor?, _ query: Query<Item>) throws(RepositoryError) {
    key = last.slot.key.text
    // The text of the order is copied from the earlier cursor, so that the text is made once for all pages.
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

  /// Checks that a query can be read in pages, and that a cursor was made by a query with the same order.
  ///
  /// - Throws: `.unsupported` for a query without a lasting order, and for a cursor of another order.
  static func check<Item>(_ cursor: PageCursor?, _ query: Query<Item>) throws(RepositoryError) {
    // The rank of a record depends on all records of the collection. The position of a record in the order of ranks would therefore change
    // with every write.
    if query.shape.words != nil, query.order.isEmpty, query.shape.near == nil {
      throw RepositoryError(.unsupported, "expected a lasting order, found ranks, which change with every write; add sorted(by:)")
    }
    for column in query.order where column.value == nil { throw notIndexable(column.description) }
    // The app may have stored the cursor, and its bytes may have been altered. The number of the cursor's values is checked, because an
    // altered cursor may have too few or too many values.
    if let cursor, cursor.order != order(query) || cursor.values.count != (query.order.isEmpty ? cursor.order.count : query.order.count) {
      throw RepositoryError(.unsupported, "expected a cursor of this query's order, found one of another; begin with the first page")
    }
  }

  /// Returns true if a candidate (a record that meets the query) comes after the cursor in the order of the query.
  ///
  /// - Parameter start: Record key of the cursor, which the caller creates once for all candidates.
  func isBefore<Item>(_ candidate: QueryCandidate<Item>, in order: ResultOrder<Item>, start: RecordKey) -> Bool {
    let others: [IndexValue] =
      order.columns.isEmpty ? candidate.distance.map { [IndexValue($0)] } ?? [] : order.columns.map { $0.value?(candidate.item) ?? .null }
    for (position, (mine, other)) in zip(values, others).enumerated() where mine != other {
      // If the query has no sort columns, the compared values are distances, and distances always ascend.
      let isReversed = order.columns.indices.contains(position) && order.columns[position].isReversed
      return isReversed ? other < mine : mine < other
    }
    return order.keys.isBefore(start, candidate.slot.key)
  }

  /// Returns the values of the index entry from which a page continues: `prefix`, then values of the cursor.
  func values(after prefix: [IndexValue], _ order: [QueryShape.OrderColumn], _ columns: [IndexDefinition.Column]) -> [IndexValue] {
    var start = prefix
    for column in columns.dropFirst(prefix.count) {
      // The cursor has values only for properties by which the query sorts. The start values therefore end at the first index column after
      // the prefix by which the query does not sort.
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
