// Querying/ selects and sorts the records of one collection by their fields.
// Invariant: records that are equal in every sort order stay in key order. Called by the command `query`.

package import Larder

/// Query over the records of one collection: conditions, sort orders, limit, offset and fields.
package struct RecordQuery: Sendable {
  /// Conditions of the query.
  ///
  /// A record must meet all of them.
  package var conditions: [QueryExpression] = []
  /// Fields to sort by, the most important first.
  package var orders: [QueryOrder] = []
  /// Maximum number of records to return.
  ///
  /// `nil` for all.
  package var limit: Int?
  /// Number of matching records to skip before the first one that is returned.
  package var offset = 0
  /// Fields to show.
  ///
  /// `nil` for all.
  package var fields: [FieldPath]?

  /// Creates a query that selects every record.
  package init() {}

  /// Record with its value as JSON.
  ///
  /// The value is null if the stored bytes are not JSON.
  package struct Row: Sendable {
    let record: StoredRecord
    let value: JSONValue
  }

  /// Returns the records that meet all conditions, sorted and cut to the limit.
  package func run(_ records: [StoredRecord]) -> QueryResult {
    var unreadable = 0
    var rows: [Row] = []
    for record in records where record.value != nil {
      let json = record.json
      // Counted before the conditions, so that a record is reported also if it fails them for being unreadable.
      if json == nil { unreadable += 1 }
      let row = Row(record: record, value: json ?? .null)
      if conditions.allSatisfy({ $0.matches(row.value, of: record) }) { rows.append(row) }
    }
    if !orders.isEmpty { sort(&rows) }
    let part = rows.dropFirst(offset).prefix(limit ?? .max)
    return QueryResult(rows: Array(part), fields: fields, matchCount: rows.count, unreadable: unreadable)
  }

  private func sort(_ rows: inout [Row]) {
    // Each sort field is looked up once for each record, and not in every comparison.
    let columns = rows.map { row in orders.map { $0.path.value(in: row.value, of: row.record) ?? .null } }
    let positions = rows.indices.sorted { left, right in
      for (index, order) in orders.enumerated() {
        switch ValueOrder.sorting(columns[left][index], columns[right][index]) {
        case .less: return !order.isDescending
        case .greater: return order.isDescending
        case .equal: continue
        }
      }
      // Records with equal fields keep their order, which is that of the keys.
      return left < right
    }
    rows = positions.map { rows[$0] }
  }
}
