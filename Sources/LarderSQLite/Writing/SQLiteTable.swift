internal import Foundation
internal import Larder

/// The prepared statements of one table: a collection, or the tombstones of all collections.
///
/// Both kinds have the same first four columns. The fifth is the value in a collection and the collection's name among the tombstones,
/// where it also belongs to the key.
final class SQLiteTable {
  private let selectOne: SQLiteStatement
  private let upsertOne: SQLiteStatement
  private let deleteOne: SQLiteStatement
  private let holdsTombstones: Bool

  /// Prepares the statements of a table that exists.
  init(_ name: String, _ connection: SQLiteConnection) throws(RepositoryError) {
    holdsTombstones = name == SQLiteLayout.tombstones
    let table = SQLiteLayout.quoted(name)
    let key = holdsTombstones ? "id = ?1 AND collection = ?2" : "id = ?1"
    selectOne = try connection.prepare("SELECT crc FROM \(table) WHERE \(key)")
    upsertOne = try connection.prepare(
      """
      INSERT INTO \(table) (\(SQLiteLayout.columns(of: name))) VALUES (?1, ?2, ?3, ?4, ?5) \
      ON CONFLICT (\(holdsTombstones ? "collection, id" : "id")) DO UPDATE SET revision = ?2, version = ?3, crc = ?4\
      \(holdsTombstones ? "" : ", value = ?5")
      """)
    deleteOne = try connection.prepare("DELETE FROM \(table) WHERE \(key)")
  }

  /// Returns the stored checksum of a record; `nil` when the table does not hold it.
  func checksum(of address: RecordAddress) throws(RepositoryError) -> UInt32? {
    try bind(address, to: selectOne)
    return try selectOne.number().map { SQLiteChecksum(column: $0).crc }
  }

  /// Inserts a record, or replaces the one with its key.
  func upsert(_ record: StoredRecord, _ checksum: SQLiteChecksum) throws(RepositoryError) {
    try upsertOne.bind(record.key, at: 1)
    try upsertOne.bind(Int64(bitPattern: record.revision.number), at: 2)
    try upsertOne.bind(Int64(record.schemaVersion), at: 3)
    try upsertOne.bind(checksum.column, at: 4)
    if let value = record.value, !holdsTombstones { try upsertOne.bind(value, at: 5) }
    if holdsTombstones { try upsertOne.bind(record.collection, at: 5) }
    try upsertOne.run()
  }

  func delete(_ address: RecordAddress) throws(RepositoryError) {
    try bind(address, to: deleteOne)
    try deleteOne.run()
  }

  func finalize() throws(RepositoryError) {
    for statement in [selectOne, upsertOne, deleteOne] { try statement.finalize() }
  }

  private func bind(_ address: RecordAddress, to statement: SQLiteStatement) throws(RepositoryError) {
    try statement.bind(address.key, at: 1)
    if holdsTombstones { try statement.bind(address.collection, at: 2) }
  }
}
