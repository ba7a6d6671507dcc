internal import LarderSync

/// The rows of records, many in a statement: a push of 500 records needs some ten round trips and not a thousand.
enum RecordRow {
  static let columns = "collection, id, revision, version, stamp, writer, value"
  /// The number of rows of a statement; nine parameters each are below the limits of all databases.
  private static let most = 256

  /// Returns the record of a row of ``columns``.
  static func record(_ row: SQLRow) -> SyncRecord {
    SyncRecord(
      collection: row.text(0), id: row.text(1), revision: row.integer(2), version: row.integer(3), stamp: row.integer(4),
      writer: row.text(5),
      value: row.utf8(6))
  }

  /// Returns the records as they are, without those that were never there, or are forgotten, and without those whose values are too much.
  ///
  /// - Parameter valueBytes: The most bytes of all values together.
  static func records(
    _ connection: any SQLConnection, scope: String, at places: Set<RecordPlace>, valueBytes: Int
  ) throws(StoreError) -> [RecordPlace: SyncRecord] {
    var found: [RecordPlace: SyncRecord] = [:]
    var room = valueBytes
    try visit(connection, columns, scope, places) { row in
      let record = record(row)
      let size = record.value?.count ?? 0
      guard size <= room else { return }
      room -= size
      found[RecordPlace(collection: record.collection, id: record.id)] = record
    }
    return found
  }

  /// Returns the revisions of the records that are there; a tombstone counts as none.
  static func revisions(
    _ connection: any SQLConnection, scope: String, at places: Set<RecordPlace>
  ) throws(StoreError) -> [RecordPlace: Int] {
    var found: [RecordPlace: Int] = [:]
    try visit(connection, "collection, id, revision, deleted_at", scope, places) { row in
      if row.values[3] == .null { found[RecordPlace(collection: row.text(0), id: row.text(1))] = row.integer(2) }
    }
    return found
  }

  private static func visit(
    _ connection: any SQLConnection, _ columns: String, _ scope: String, _ places: Set<RecordPlace>, _ body: (SQLRow) -> Void
  ) throws(StoreError) {
    for (collection, part) in Dictionary(grouping: places, by: { Array($0.collection.utf8) }) {
      let name = SQLValue.text(String(decoding: collection, as: UTF8.self))
      for list in InList.lists(of: part.map { .text($0.id) }) {
        try connection.execute(
          "SELECT \(columns) FROM larder_records WHERE scope = ? AND collection = ? AND id IN (\(list.marks))",
          [.text(scope), name] + list.values
        ) { (row) throws(StoreError) in
          body(row)
          return true
        }
      }
    }
  }

  /// Writes records, or their tombstones; none of them twice.
  static func write(_ records: [SyncRecord], _ connection: any SQLConnection, scope: String, now: Int) throws(StoreError) {
    var (rest, size) = (records[...], most)
    while !rest.isEmpty {
      while size > rest.count { size /= 2 }
      let marks = Array(repeating: "(?, ?, ?, ?, ?, ?, ?, ?, ?)", count: size).joined(separator: ", ")
      try connection.execute(
        "INSERT INTO larder_records (scope, collection, id, revision, version, stamp, writer, value, deleted_at) "
          + "VALUES \(marks) ON CONFLICT (scope, collection, id) DO UPDATE SET revision = excluded.revision, "
          + "version = excluded.version, stamp = excluded.stamp, writer = excluded.writer, value = excluded.value, "
          + "deleted_at = excluded.deleted_at",
        rest.prefix(size).flatMap { record in
          [
            .text(scope), .text(record.collection), .text(record.id), .integer(record.revision), .integer(record.version),
            .integer(record.stamp), .text(record.writer), record.value.map(SQLValue.utf8) ?? .null,
            record.value == nil ? .integer(now) : .null,
          ]
        })
      rest = rest.dropFirst(size)
    }
  }
}
