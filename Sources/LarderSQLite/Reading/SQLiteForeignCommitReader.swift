internal import Foundation
internal import Larder

/// Reads what was committed after a revision, within a transaction that the caller has begun.
///
/// Keeps its statements, because a shared store asks before every commit. In a store that was ever opened `.shared`, an index by revision
/// makes the cost that of what has changed; elsewhere a table is scanned.
///
/// What such an index says is compared with the records, because nobody else would notice a change that a damaged one hides: when a store is
/// opened `.shared`, all of it; when it is used, that each entry leads to its record, and that the newest commit is among what it finds.
final class SQLiteForeignReader {
  private let connection: SQLiteConnection
  /// Whether the tables have indexes by revision.
  private let usesIndexes: Bool
  private var collections: [String] = []
  /// SQLite's number of the tables' state that ``collections`` is of.
  private var schemaNumber: Int64?
  private var statements: [String: SQLiteStatement] = [:]

  init(_ connection: SQLiteConnection, usesIndexes: Bool = false) {
    self.connection = connection
    self.usesIndexes = usesIndexes
  }

  /// Returns what the collections are now; `nil` when they are as at the last call.
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
      if usesIndexes { try checkNewest(in: records, row) }
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
    let before = records.count
    let statement = try statement("SELECT id, revision, version, crc, value FROM \(SQLiteLayout.quoted(name)) WHERE revision > ?1")
    try statement.bind(Int64(bitPattern: revision.number), at: 1)
    while try statement.step() {
      records.append(try record(statement, in: name, value: Data(statement.bytes(4))))
    }
    try statement.reset()
    try checkCount(name, after: revision, found: records.count - before)
  }

  private func readTombstones(after revision: Revision, into records: inout [StoredRecord]) throws(RepositoryError) {
    let before = records.count
    let statement = try statement("SELECT id, revision, version, crc, collection FROM \(SQLiteLayout.tombstones) WHERE revision > ?1")
    try statement.bind(Int64(bitPattern: revision.number), at: 1)
    while try statement.step() {
      records.append(try record(statement, in: statement.text(4), value: nil))
    }
    try statement.reset()
    try checkCount(SQLiteLayout.tombstones, after: revision, found: records.count - before)
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

  // MARK: The indexes

  /// Refuses entries that lead nowhere: SQLite passes over them.
  private func checkCount(_ table: String, after revision: Revision, found: Int) throws(RepositoryError) {
    guard usesIndexes else { return }
    let statement = try statement("SELECT count(*) FROM \(SQLiteLayout.quoted(table)) WHERE revision > ?1")
    try statement.bind(Int64(bitPattern: revision.number), at: 1)
    guard try statement.number() == Int64(found) else { throw connection.damagedIndex(table) }
  }

  /// Refuses an answer without the newest commit, which has always written something, unless its tombstones were forgotten.
  private func checkNewest(in records: [StoredRecord], _ row: SQLiteStoreRow) throws(RepositoryError) {
    guard row.tombstonesSince < row.commit, !records.contains(where: { $0.revision.number == row.commit }) else { return }
    throw connection.damagedIndex("one of the collections")
  }

  /// Compares the whole index of a table with the table.
  ///
  /// Cost: a scan of both.
  static func checkIndex(of table: String, on connection: SQLiteConnection) throws(RepositoryError) {
    func sum(_ term: String) -> String {
      "SELECT count(*) || ' ' || coalesce(sum(revision % 2147483647 * (1 + length(id))\(term)), 0) FROM \(SQLiteLayout.quoted(table))"
    }
    let index = SQLiteLayout.quoted(SQLiteLayout.revisionIndex(table))
    // The index has no checksums: only for a sum with them SQLite must read the table.
    let statement = try connection.prepare("SELECT (\(sum("")) INDEXED BY \(index)) = (\(sum(" + 0 * crc")) NOT INDEXED)")
    let isSame = try statement.number() == 1
    try statement.finalize()
    guard isSame else { throw connection.damagedIndex(table) }
  }

  /// Returns where all records are.
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

extension SQLiteConnection {
  fileprivate func damagedIndex(_ table: String) -> RepositoryError {
    damaged("the index by revision of \(table) does not say what the records say; the command REINDEX of SQLite makes it anew from them")
  }
}
