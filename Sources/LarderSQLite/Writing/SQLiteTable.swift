internal import Foundation
internal import Larder

/// The statements of one collection.
final class SQLiteTable {
  private let selectOne: SQLiteStatement
  private let upsertOne: SQLiteStatement
  private let deleteOne: SQLiteStatement

  init(_ name: String, _ connection: SQLiteConnection) throws(RepositoryError) {
    let table = SQLiteLayout.quoted(name)
    selectOne = try connection.prepare("SELECT crc FROM \(table) WHERE id = ?1")
    upsertOne = try connection.prepare(
      """
      INSERT INTO \(table) VALUES (?1, ?2, ?3, ?4, ?5) \
      ON CONFLICT (id) DO UPDATE SET revision = ?2, version = ?3, crc = ?4, value = ?5
      """)
    deleteOne = try connection.prepare("DELETE FROM \(table) WHERE id = ?1")
  }

  func checksum(of key: RecordKey) throws(RepositoryError) -> Int64? {
    try selectOne.bind(key, at: 1)
    return try selectOne.number()
  }

  func upsert(_ record: StoredRecord, _ crc: Int64, _ value: Data) throws(RepositoryError) {
    try upsertOne.bind(record.key, at: 1)
    try upsertOne.bind(Int64(bitPattern: record.revision.number), at: 2)
    try upsertOne.bind(Int64(record.schemaVersion), at: 3)
    try upsertOne.bind(crc, at: 4)
    try upsertOne.bind(value, at: 5)
    try upsertOne.run()
  }

  func delete(_ key: RecordKey) throws(RepositoryError) {
    try deleteOne.bind(key, at: 1)
    try deleteOne.run()
  }

  func finalize() throws(RepositoryError) {
    for statement in [selectOne, upsertOne, deleteOne] { try statement.finalize() }
  }
}

/// The statements of the tombstones of all collections.
final class SQLiteTombstones {
  private let selectOne: SQLiteStatement
  private let upsertOne: SQLiteStatement
  private let deleteOne: SQLiteStatement

  init(_ connection: SQLiteConnection) throws(RepositoryError) {
    selectOne = try connection.prepare("SELECT crc FROM larder_tombstones WHERE collection = ?1 AND id = ?2")
    upsertOne = try connection.prepare(
      """
      INSERT INTO larder_tombstones VALUES (?1, ?2, ?3, ?4, ?5) \
      ON CONFLICT (collection, id) DO UPDATE SET revision = ?3, version = ?4, crc = ?5
      """)
    deleteOne = try connection.prepare("DELETE FROM larder_tombstones WHERE collection = ?1 AND id = ?2")
  }

  func checksum(of address: RecordAddress) throws(RepositoryError) -> Int64? {
    try bind(address, to: selectOne)
    return try selectOne.number()
  }

  func upsert(_ record: StoredRecord, _ crc: Int64) throws(RepositoryError) {
    try bind(record.address, to: upsertOne)
    try upsertOne.bind(Int64(bitPattern: record.revision.number), at: 3)
    try upsertOne.bind(Int64(record.schemaVersion), at: 4)
    try upsertOne.bind(crc, at: 5)
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
    try statement.bind(address.collection, at: 1)
    try statement.bind(address.key, at: 2)
  }
}
