internal import LarderSync

/// The row of a record.
enum RecordRow {
  static let columns = "collection, id, revision, version, stamp, writer, value"

  /// Returns the record of a row of ``columns``.
  static func record(_ row: SQLRow) -> SyncRecord {
    SyncRecord(
      collection: row.text(0), id: row.text(1), revision: row.integer(2), version: row.integer(3), stamp: row.integer(4),
      writer: row.text(5),
      value: row.utf8(6))
  }

  /// Returns the record as it is; one that was never there, or is forgotten, has revision 0.
  static func read(_ connection: any SQLConnection, scope: String, collection: String, id: String) throws(StoreError) -> SyncRecord {
    let row = try connection.row(
      "SELECT \(columns) FROM larder_records WHERE scope = ? AND collection = ? AND id = ?", [.text(scope), .text(collection), .text(id)])
    return row.map(record) ?? SyncRecord(collection: collection, id: id, revision: 0)
  }

  /// Writes a record, or its tombstone.
  static func write(_ record: SyncRecord, _ connection: any SQLConnection, scope: String, now: Int) throws(StoreError) {
    try connection.execute(
      "INSERT INTO larder_records (scope, collection, id, revision, version, stamp, writer, value, deleted_at) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (scope, collection, id) DO UPDATE SET revision = excluded.revision, "
        + "version = excluded.version, stamp = excluded.stamp, writer = excluded.writer, value = excluded.value, "
        + "deleted_at = excluded.deleted_at",
      [
        .text(scope), .text(record.collection), .text(record.id), .integer(record.revision), .integer(record.version),
        .integer(record.stamp),
        .text(record.writer), record.value.map(SQLValue.utf8) ?? .null, record.value == nil ? .integer(now) : .null,
      ])
  }
}
