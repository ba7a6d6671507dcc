@_spi(Wire) internal import LarderSync

/// The rows of records, many in a statement: a push of 500 records needs some ten round trips and not a thousand.
enum RecordRow {
  static let columns = "collection, id, revision, version, stamp, writer, value"
  /// The number of rows of a statement; ten parameters each are below the limits of all databases.
  private static let most = 256

  /// Returns the record of a row of ``columns``.
  static func record(_ row: SQLRow) -> SyncRecord {
    SyncRecord(
      collection: row.text(0), id: row.text(1), revision: row.integer(2), version: row.integer(3), stamp: row.integer(4),
      writer: row.text(5),
      value: row.utf8(6))
  }

  /// Returns a receipt with the records of its conflicts as they are now.
  static func filled(_ receipt: SyncReceipt, _ connection: any SQLConnection, scope: String) throws(StoreError) -> SyncReceipt {
    var places: Set<RecordPlace> = []
    for case .conflict(let references) in receipt.outcomes { places.formUnion(references.map(\.place)) }
    if places.isEmpty { return receipt }
    var found: [RecordPlace: SyncRecord?] = [:]
    var room = SyncReceipt.conflictBytes
    try visit(connection, columns, scope, places) { row in
      let record = record(row)
      let size = record.value?.count ?? 0
      // Kept as nil, so that a record which does not fit differs from one that was never there.
      found.updateValue(size <= room ? record : nil, forKey: record.place)
      if size <= room { room -= size }
    }
    return receipt.filled { reference in
      guard let record = found[reference.place] else { return reference }
      return record
    }
  }

  /// Returns the newest revisions of records and tombstones.
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

/// The newest revision of a record or tombstone.
struct StoredRevision {
  /// The base at which a push is accepted; 0 for a tombstone.
  var base: Int
  /// The device that wrote it.
  var writer: String
  /// The bytes that count for the writer; 0 for a revision that counts for nobody.
  var bytes: Int
}

extension SyncRecord {
  /// The place of the record within its scope.
  var place: RecordPlace { RecordPlace(collection: collection, id: id) }
  /// The bytes that the record counts for its writer.
  var storedBytes: Int { collection.utf8.count + id.utf8.count + (value?.count ?? 0) }
}
