internal import Foundation
internal import Larder

/// The records that a query has found.
package struct QueryResult: Sendable {
  let rows: [RecordQuery.Row]
  let fields: [FieldPath]?
  /// The number of records that meet the conditions, before limit and offset.
  package let matchCount: Int
  /// The number of records whose values are not JSON; they count as null.
  package let unreadable: Int

  /// The number of records that are shown.
  package var count: Int { rows.count }

  /// The records as a table: the key, then the fields asked for, or those of the values by name.
  package var table: TextTable {
    let names = fields == nil ? names : []
    let titles = fields?.map(\.text) ?? names
    var table = TextTable((fields == nil ? ["$key"] : []) + titles)
    for row in rows {
      let values = fields.map { $0.map { $0.value(in: row.value, of: row.record) } } ?? names.map { row.value[$0] }
      let isObject = row.value.objectValue != nil || fields != nil
      var cells = values.map(Self.cell)
      // A value that is no object has no fields: it stands as it is.
      if !isObject, let last = cells.indices.last { cells[last] = Self.cell(row.value) }
      table.add((fields == nil ? [TextTable.Cell(row.record.key.text)] : []) + cells)
    }
    return table
  }

  private var names: [String] {
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

  /// The records as JSON, each on a line.
  ///
  /// With fields, `value` has those that are there under their paths; otherwise it is the record's value.
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
