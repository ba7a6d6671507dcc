internal import Foundation
internal import Larder

/// A reader of the commits of other processes after a revision, within a transaction that the caller has begun.
///
/// Keeps its statements, because a shared store reads before every commit. In a store that was ever opened `.shared`, an index by revision
/// makes the cost that of the changes. In other stores each table is scanned.
///
/// A damaged index could hide a change without any other sign, so the index is compared with the records. When a store is opened `.shared`,
/// the whole index is compared. At each use, every entry must lead to its record, and the newest commit must be among the results.
final class SQLiteForeignCommitReader {
  private let connection: SQLiteConnection
  /// Whether the tables have indexes by revision, whose results need checking.
  private let usesIndexes: Bool
  private var collections: [String] = []
  /// SQLite's `schema_version` for which ``collections`` was read.
  private var schemaNumber: Int64?
  private var statements: [String: SQLiteStatement] = [:]

  init(_ connection: SQLiteConnection, usesIndexes: Bool = false) {
    self.connection = connection
    self.usesIndexes = usesIndexes
  }

  /// Reads the names of the collections, or returns `nil` when they have not changed since the last call.
  func newCollections() throws(RepositoryError) -> [String]? {
    let number = try statement("PRAGMA schema_version").number()
    guard number != schemaNumber else { return nil }
    let found = try SQLiteLayout.collections(on: connection)
    // No store drops the table of a collection. Without this check, all its records would look deleted.
    if let missing = collections.first(where: { !found.contains($0) }) {
      throw connection.damaged(
        "expected the table \"\(missing)\", found none of the format: another program has changed it; restore a backup")
    }
    collections = found
    schemaNumber = number
    return collections
  }

  /// Reads the records and tombstones after a revision, up to the commit of the store's row, or returns `nil` when there is none.
  ///
  /// ``newCollections()`` must have been called in the same transaction.
  func read(after revision: Revision, row: SQLiteStoreRow) throws(RepositoryError) -> ForeignCommits? {
    guard row.commit != revision.number else { return nil }
    // A file that an older copy has replaced must not look like one without news.
    guard row.commit > revision.number else { throw connection.wentBack(to: row.commit, from: revision) }
    return try finalizingAfterFailure { () throws(RepositoryError) in
      let records = try records(after: revision)
      if usesIndexes { try checkNewest(in: records, row) }
      return try commits(records, upTo: row.commit, after: revision, row)
    }
  }

  /// Reads the records and tombstones after a revision, up to the newest commit, or returns `nil` when there is none.
  ///
  /// The store's row may be behind the newest commit. ``newCollections()`` must have been called in the same transaction.
  func readNewest(after revision: Revision, row: SQLiteStoreRow) throws(RepositoryError) -> ForeignCommits? {
    try finalizingAfterFailure { () throws(RepositoryError) in
      // The commit itself has left a record or tombstone, unless the store's row is of it. Without both, the file is older than the last
      // one read.
      let isBehind = row.commit < revision.number
      let found = try records(after: isBehind ? Revision(revision.number - 1) : revision)
      let newest = max(row.commit, found.lazy.map(\.revision.number).max() ?? 0)
      guard newest != revision.number else { return nil }
      guard newest > revision.number else { throw connection.wentBack(to: newest, from: revision) }
      return try commits(found.filter { $0.revision > revision }, upTo: newest, after: revision, row)
    }
  }

  private func records(after revision: Revision) throws(RepositoryError) -> [StoredRecord] {
    var records: [StoredRecord] = []
    for table in collections + [SQLiteLayout.tombstones] { try read(table, after: revision, into: &records) }
    return records
  }

  private func commits(
    _ records: [StoredRecord], upTo commit: UInt64, after revision: Revision, _ row: SQLiteStoreRow
  ) throws(RepositoryError) -> ForeignCommits {
    // Deletions whose tombstones are gone are found by comparing all keys.
    let addresses = row.tombstonesSince > revision.number ? try addresses() : nil
    return ForeignCommits(commit: Revision(commit), records: records, addresses: addresses)
  }

  private func finalizingAfterFailure<Result>(_ body: () throws(RepositoryError) -> Result) throws(RepositoryError) -> Result {
    do throws(RepositoryError) {
      return try body()
    } catch {
      statements = [:]  // a statement on a row would keep the transaction from ending
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

  private func read(_ table: String, after revision: Revision, into records: inout [StoredRecord]) throws(RepositoryError) {
    let holdsTombstones = table == SQLiteLayout.tombstones
    let before = records.count
    let statement = try statement("SELECT \(SQLiteLayout.columns(of: table)) FROM \(SQLiteLayout.quoted(table)) WHERE revision > ?1")
    try statement.bind(Int64(bitPattern: revision.number), at: 1)
    while try statement.step() {
      let name = holdsTombstones ? try statement.text(4) : table
      records.append(try record(statement, in: name, value: holdsTombstones ? nil : Data(statement.bytes(4))))
    }
    try checkCount(table, after: revision, found: records.count - before)
  }

  private func record(_ statement: SQLiteStatement, in name: String, value: Data?) throws(RepositoryError) -> StoredRecord {
    let keyBytes = try statement.bytes(0)
    let key = RecordKey(String(decoding: keyBytes, as: UTF8.self))
    let record = StoredRecord(
      collection: name, key: key, revision: Revision(UInt64(bitPattern: try statement.integer(1))),
      schemaVersion: Int(clamping: try statement.integer(2)), value: value)
    // The length differs where bytes that are not UTF-8 were repaired.
    guard try record.checksum == SQLiteChecksum(column: statement.integer(3)).crc, key.byteCount == keyBytes.count else {
      throw connection.damagedRow(record)
    }
    return record
  }

  /// Reads the addresses of all records, which are collection and key.
  private func addresses() throws(RepositoryError) -> Set<RecordAddress> {
    var addresses: Set<RecordAddress> = []
    for name in collections {
      let statement = try statement("SELECT id FROM \(SQLiteLayout.quoted(name))")
      while try statement.step() { addresses.insert(RecordAddress(collection: name, key: RecordKey(try statement.text(0)))) }
    }
    return addresses
  }

  // MARK: The indexes by revision

  /// Throws `.corrupted` for index entries that lead to no record, which SQLite passes over.
  private func checkCount(_ table: String, after revision: Revision, found: Int) throws(RepositoryError) {
    guard usesIndexes else { return }
    // Counting reads the index alone, so that it counts the entries without a record too.
    let statement = try statement("SELECT count(*) FROM \(SQLiteLayout.quoted(table)) WHERE revision > ?1")
    try statement.bind(Int64(bitPattern: revision.number), at: 1)
    guard try statement.number() == Int64(found) else { throw connection.damagedIndex(table) }
  }

  /// Throws `.corrupted` for results without the newest commit.
  ///
  /// Every commit writes a record or tombstone, and only deleted tombstones leave none.
  private func checkNewest(in records: [StoredRecord], _ row: SQLiteStoreRow) throws(RepositoryError) {
    guard row.tombstonesSince < row.commit, !records.contains(where: { $0.revision.number == row.commit }) else { return }
    throw connection.damagedIndex("one of the collections")
  }

  /// Compares the whole index by revision of a table with the table.
  ///
  /// Cost: a scan of both.
  static func checkIndex(of table: String, on connection: SQLiteConnection) throws(RepositoryError) {
    func sum(_ term: String) -> String {
      "SELECT count(*) || ' ' || coalesce(sum(revision % 2147483647 * (1 + length(id))\(term)), 0) FROM \(SQLiteLayout.quoted(table))"
    }
    let index = SQLiteLayout.quoted(SQLiteLayout.revisionIndex(table))
    // The index has no column `crc`, so SQLite must read the table for a sum with that column.
    let statement = try connection.prepare("SELECT (\(sum("")) INDEXED BY \(index)) = (\(sum(" + 0 * crc")) NOT INDEXED)")
    let isSame = try statement.number() == 1
    try statement.finalize()
    guard isSame else { throw connection.damagedIndex(table) }
  }
}

extension SQLiteConnection {
  /// Returns the error for a store whose newest commit is older than one that was read before.
  func wentBack(to commit: UInt64, from revision: Revision) -> RepositoryError {
    damaged("expected commit \(revision) or a newer one, found commit \(commit): an older copy has replaced the file; open the store again")
  }

  /// Returns the error for a row whose checksum does not match.
  func damagedRow(_ record: StoredRecord) -> RepositoryError {
    let kind = record.value == nil ? "tombstone" : "record"
    return damaged(
      "the checksum of a \(kind) in \"\(record.collection)\" does not match its row: restore a backup", keyHash: record.key.hash)
  }

  fileprivate func damagedIndex(_ table: String) -> RepositoryError {
    damaged("the index by revision of \(table) differs from its records: remake it with SQLite's command REINDEX")
  }
}
