// Querying/ finds records of one collection by their fields.
// Invariant: records that are equal in every order asked for stand in key order. Called by the command `query`.

package import Larder

/// A query over the records of one collection.
package struct RecordQuery: Sendable {
  /// The conditions, all of which must be met.
  package var conditions: [QueryExpression] = []
  /// The fields to sort by, the most important first.
  package var orders: [QueryOrder] = []
  /// The most records to return; `nil` for all.
  package var limit: Int?
  /// The number of records to pass over first.
  package var offset = 0
  /// The fields to show; `nil` for all.
  package var fields: [FieldPath]?

  /// Makes a query for everything.
  package init() {}

  /// A record with its value as JSON; null for a value that is not JSON.
  package struct Row: Sendable {
    let record: StoredRecord
    let value: JSONValue
  }

  /// Returns the records of a collection that the query asks for.
  package func run(_ records: [StoredRecord]) -> QueryResult {
    var unreadable = 0
    var rows: [Row] = []
    for record in records where record.value != nil {
      let json = record.json
      if json == nil { unreadable += 1 }
      let row = Row(record: record, value: json ?? .null)
      if conditions.allSatisfy({ $0.matches(row.value, of: record) }) { rows.append(row) }
    }
    if !orders.isEmpty { sort(&rows) }
    let part = rows.dropFirst(offset).prefix(limit ?? .max)
    return QueryResult(rows: Array(part), fields: fields, matchCount: rows.count, unreadable: unreadable)
  }

  private func sort(_ rows: inout [Row]) {
    let columns = rows.map { row in orders.map { $0.path.value(in: row.value, of: row.record) ?? .null } }
    let positions = rows.indices.sorted { left, right in
      for (index, order) in orders.enumerated() {
        switch ValueOrder.sorting(columns[left][index], columns[right][index]) {
        case .less: return !order.isDescending
        case .greater: return order.isDescending
        case .equal: continue
        }
      }
      return left < right
    }
    rows = positions.map { rows[$0] }
  }
}
