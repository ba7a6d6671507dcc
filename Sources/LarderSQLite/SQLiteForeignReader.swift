internal import Foundation
internal import Larder

/// Reads what was committed after a revision, within a transaction that the caller has begun.
///
/// Keeps its statements, because a shared store asks before every commit. In a store that was ever opened `.shared`, an index by revision
/// makes the cost that of what has changed; elsewhere a table is scanned.
final class SQLiteForeignReader {
  private let connection: SQLiteConnection
  private var collections: [String] = []
  /// SQLite's number of the tables' state that ``collections`` is of.
  private var schemaNumber: Int64?
  private var statements: [String: SQLiteStatement] = [:]

  init(_ connection: SQLiteConnection) { self.connection = connection }

  /// What the collections are now; `nil` when they are as at the last call.
  func newCollections() throws(RepositoryError) -> [String]? {
    let number = try statement("PRAGMA schema_version").number()
    guard number != schemaNumber else { return nil }
    collections = try SQLiteLayout.collections(on: connection)
    schemaNumber = number
    return collections
  }

  /// Everything after a revision, when the store's own row is this one; `nil` when there was no commit.
  ///
  /// ``newCollections()`` must have been called in the same transaction.
  func read(after revision: Revision, row: SQLiteStoreRow) throws(RepositoryError) -> ForeignCommits? {
    guard row.commit != revision.number else { return nil }
    guard row.commit > revision.number else { throw connection.damaged("the store has gone back to an earlier commit") }
    do throws(RepositoryError) {
      var records: [StoredRecord] = []
      for name in collections { try read(name, after: revision, into: &records) }
      try readTombstones(after: revision, into: &records)
      let addresses = row.tombstonesSince > revision.number ? try addresses() : nil
      return ForeignCommits(commit: Revision(row.commit), records: records, addresses: addresses)
    } catch {
      statements = [:]  // one may stand on a row, and would keep the transaction from ending
      throw error
    }
  }

  func finalize() throws(RepositoryError) {
    for statement in statements.values { try statement.finalize() }
    statements = [:]
  }

  private func statement(_ sql: String) throws(RepositoryError) -> SQLiteStatement {
    if let statement = statements[sql] { return statement }
    let statement = try connection.prepare(sql)
    statements[sql] = statement
    return statement
  }

  private func read(_ name: String, after revision: Revision, into records: inout [StoredRecord]) throws(RepositoryError) {
    let statement = try statement("SELECT id, revision, version, crc, value FROM \(SQLiteLayout.quoted(name)) WHERE revision > ?1")
    try statement.bind(Int64(bitPattern: revision.number), at: 1)
    while try statement.step() {
      records.append(try record(statement, in: name, value: Data(statement.bytes(4))))
    }
    try statement.reset()
  }

  private func readTombstones(after revision: Revision, into records: inout [StoredRecord]) throws(RepositoryError) {
    let statement = try statement("SELECT id, revision, version, crc, collection FROM \(SQLiteLayout.tombstones) WHERE revision > ?1")
    try statement.bind(Int64(bitPattern: revision.number), at: 1)
    while try statement.step() {
      records.append(try record(statement, in: statement.text(4), value: nil))
    }
    try statement.reset()
  }

  private func record(_ statement: SQLiteStatement, in name: String, value: Data?) throws(RepositoryError) -> StoredRecord {
    let keyBytes = try statement.bytes(0)
    let key = RecordKey(String(decoding: keyBytes, as: UTF8.self))
    let record = StoredRecord(
      collection: name, key: key, revision: Revision(UInt64(bitPattern: try statement.integer(1))),
      schemaVersion: Int(try statement.integer(2)), value: value)
    guard try Int64(record.checksum) == statement.integer(3), key.byteCount == keyBytes.count else {
      throw connection.damaged("the checksum of a record in \"\(name)\" does not match", keyHash: key.hash)
    }
    return record
  }

  /// Where all records are.
  private func addresses() throws(RepositoryError) -> Set<RecordAddress> {
    var addresses: Set<RecordAddress> = []
    for name in collections {
      let statement = try statement("SELECT id FROM \(SQLiteLayout.quoted(name))")
      while try statement.step() { addresses.insert(RecordAddress(collection: name, key: RecordKey(try statement.text(0)))) }
      try statement.reset()
    }
    return addresses
  }
}
