@_spi(Wire) internal import LarderWire

/// Reads and writes of record rows, many in one statement: a push of 500 records needs some ten round trips and not a thousand.
enum RecordRow {
  static let columns = "collection, id, revision, version, stamp, writer, value"
  /// Maximum number of rows in one statement.
  ///
  /// Ten parameters each stay below the limits of all databases.
  private static let most = 256

  /// Returns the record in a row with the columns of ``columns``.
  static func record(_ row: SQLRow) -> SyncRecord {
    SyncRecord(
      collection: row.text(0), id: row.text(1), revision: row.integer(2), version: row.integer(3), stamp: row.integer(4),
      writer: row.text(5),
      value: row.utf8(6))
  }

  /// Returns a receipt whose conflicts have their records as they are now.
  static func filled(_ receipt: SyncReceipt, _ connection: any SQLConnection, scope: String) throws(StoreError) -> SyncReceipt {
    var places: Set<RecordPlace> = []
    for case .conflict(let references) in receipt.outcomes { places.formUnion(references.map(\.place)) }
    if places.isEmpty { return receipt }
    var found: [RecordPlace: SyncRecord?] = [:]
    // The receipt is part of every page for the device, so the bytes of its values are limited.
    var room = SyncReceipt.conflictBytes
    try visit(connection, columns, scope, places) { row in
      let record = record(row)
      let size = record.value?.count ?? 0
      // Kept as nil, so that a record that does not fit differs from one that never existed.
      found.updateValue(size <= room ? record : nil, forKey: record.place)
      if size <= room { room -= size }
    }
    return receipt.filled { reference in
      guard let record = found[reference.place] else { return reference }
      return record
    }
  }

  /// Returns the newest revisions of records and tombstones at the given places.
  static func revisions(
    _ connection: any SQLConnection, scope: String, at places: Set<RecordPlace>
  ) throws(StoreError) -> [RecordPlace: StoredRevision] {
    var found: [RecordPlace: StoredRevision] = [:]
    try visit(connection, "collection, id, revision, writer, deleted_at, size", scope, places) { row in
      found[RecordPlace(collection: row.text(0), id: row.text(1))] = StoredRevision(
        base: row.values[4] == .null ? row.integer(2) : 0, writer: row.text(3), bytes: row.integer(5))
    }
    return found
  }

  private static func visit(
    _ connection: any SQLConnection, _ columns: String, _ scope: String, _ places: Set<RecordPlace>, _ body: (SQLRow) -> Void
  ) throws(StoreError) {
    // Grouped, so that each IN list has single values, as in the subset of SQL that all databases share.
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

  /// Writes records or tombstones, each at a different place.
  ///
  /// PostgreSQL refuses a statement that updates one row twice.
  static func write(_ records: [SyncRecord], _ connection: any SQLConnection, scope: String, now: Int) throws(StoreError) {
    var (rest, size) = (records[...], most)
    while !rest.isEmpty {
      // Powers of two, so that few different statements are prepared.
      while size > rest.count { size /= 2 }
      let marks = Array(repeating: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", count: size).joined(separator: ", ")
      try connection.execute(
        "INSERT INTO larder_records (scope, collection, id, revision, version, stamp, writer, value, deleted_at, size) "
          + "VALUES \(marks) ON CONFLICT (scope, collection, id) DO UPDATE SET revision = excluded.revision, "
          + "version = excluded.version, stamp = excluded.stamp, writer = excluded.writer, value = excluded.value, "
          + "deleted_at = excluded.deleted_at, size = excluded.size",
        rest.prefix(size).flatMap { record in
          [
            .text(scope), .text(record.collection), .text(record.id), .integer(record.revision), .integer(record.version),
            .integer(record.stamp), .text(record.writer), record.value.map(SQLValue.utf8) ?? .null,
            record.value == nil ? .integer(now) : .null, .integer(record.storedBytes),
          ]
        })
      rest = rest.dropFirst(size)
    }
  }
}

/// Newest revision of a record or tombstone.
struct StoredRevision {
  /// Base that a push must name to be accepted, which is 0 for a tombstone.
  var base: Int
  /// Device that wrote the revision.
  var writer: String
  /// Bytes that count for the writer, or 0 for a revision that counts for no device.
  var bytes: Int
}

extension SyncRecord {
  /// Place of the record within its scope.
  var place: RecordPlace { RecordPlace(collection: collection, id: id) }
  /// Bytes that the record counts for its writer: those of its names and its value.
  var storedBytes: Int { collection.utf8.count + id.utf8.count + (value?.count ?? 0) }
}
