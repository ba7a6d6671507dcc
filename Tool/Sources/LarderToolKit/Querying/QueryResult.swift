internal import Foundation
internal import Larder

/// Records that a query selected, with their values as JSON.
package struct QueryResult: Sendable {
  let rows: [RecordQuery.Row]
  let fields: [FieldPath]?
  /// Number of records that meet the conditions, before limit and offset apply.
  package let matchCount: Int
  /// Number of records in the collection whose values are not JSON.
  ///
  /// The query treats them as null.
  package let unreadable: Int

  /// Number of records in the result, after limit and offset.
  package var count: Int { rows.count }

  /// Table of the records.
  ///
  /// Its columns are the selected fields, or else the key and every member of the values.
  package var table: TextTable {
    // Computed once. In the loop below, the time would grow with the square of the rows.
    let names = fields == nil ? names : []
    let titles = fields?.map(\.text) ?? names
    var table = TextTable((fields == nil ? ["$key"] : []) + titles)
    for row in rows {
      let values = fields.map { $0.map { $0.value(in: row.value, of: row.record) } } ?? names.map { row.value[$0] }
      let isObject = row.value.objectValue != nil || fields != nil
      var cells = values.map(Self.cell)
      // A value that is not an object has no members, and is shown as a whole in the last column.
      if !isObject, let last = cells.indices.last { cells[last] = Self.cell(row.value) }
      table.add((fields == nil ? [TextTable.Cell(row.record.key.text)] : []) + cells)
    }
    return table
  }

  private var names: [String] {
    // `RecordKey` compares bytes. As `String`, two Unicode spellings of a name would share a column.
    var names: Set<RecordKey> = []
    var hasOther = false
    for row in rows {
      if let object = row.value.objectValue { for name in object.names { names.insert(RecordKey(name)) } } else { hasOther = true }
    }
    return names.sorted().map(\.text) + (hasOther ? ["$value"] : [])
  }

  private static func cell(_ value: JSONValue?) -> TextTable.Cell {
    switch value {
    case nil: TextTable.Cell("")
    case .string(let text): TextTable.Cell(text)
    case .number(let number): TextTable.Cell(number: number.text)
    case .some(let value): TextTable.Cell(value.text)
    }
  }

  /// The records as JSON, one object for each line.
  ///
  /// With selected fields, `value` has those that exist under their paths. Otherwise it is the record's value.
  package var jsonLines: [String] {
    rows.map { row in
      var line = JSONObject()
      line["key"] = JSONValue(row.record.key.text)
      line["revision"] = JSONValue(row.record.revision.number)
      line["version"] = JSONValue(row.record.schemaVersion)
      line["value"] = row.value
      if let fields {
        var value = JSONObject()
        for field in fields { value[field.text] = field.value(in: row.value, of: row.record) }
        line["value"] = .object(value)
      }
      return JSONValue.object(line).text
    }
  }
}
