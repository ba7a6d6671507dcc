internal import Foundation
internal import Larder

/// A reader of the commits that other processes made after a revision, within a transaction that the caller has begun.
///
/// The reader keeps its prepared statements, because a shared store reads the commits of other processes before each commit of its own. In
/// a store that was ever opened `.shared`, an index by revision limits the cost to the changed records. In a store that was never opened
/// `.shared`, each read scans every table.
///
/// A damaged index could hide a change without any other sign, so the index is compared with the records. When a store is opened `.shared`,
/// each whole index is compared with its table. Each later read through an index throws `.corrupted` if an index entry leads to no record,
/// or if no row of the newest commit was found.
final class SQLiteForeignCommitReader {
  private let connection: SQLiteConnection
  /// Whether the tables have indexes by revision.
  ///
  /// The rows found through an index by revision are checked, because a damaged index could hide a change.
  private let usesIndexes: Bool
  private var collections: [String] = []
  /// SQLite's `schema_version` at the time when ``collections`` was read.
  private var schemaNumber: Int64?
  private var statements: [String: SQLiteStatement] = [:]

  init(_ connection: SQLiteConnection, usesIndexes: Bool = false) {
    self.connection = connection
    self.usesIndexes = usesIndexes
  }

  /// Reads the names of the collections, or returns `nil` when the schema has not changed since the last call.
  func newCollections() throws(RepositoryError) -> [String]? {
    let number = try statement("PRAGMA schema_version").number()
    guard number != schemaNumber else { return nil }
    let found = try SQLiteLayout.collections(on: connection)
    // No store drops the table of a collection. Without this check, all records of a dropped table would look deleted.
    if let missing = collections.first(where: { !found.contains($0) }) {
      throw connection.damaged(
        "expected the table \"\(missing)\", found none of the format: another program has changed it; restore a backup")
    }
    collections = found
    schemaNumber = number
    return collections
  }

  /// Reads the records and tombstones after a revision, up to the commit in `larder_store`, or returns `nil` without a newer commit.
  ///
  /// Call ``newCollections()``, which reads the names of the tables, before `read(after:row:)` in the same transaction.
  func read(after revision: Revision, row: SQLiteStoreRow) throws(RepositoryError) -> ForeignCommits? {
    guard row.commit != revision.number else { return nil }
    // If an older copy has replaced the file, the newest commit in the file is older than the last revision that was read. A replaced file
    // must not look like a file without new commits.
    guard row.commit > revision.number else { throw connection.wentBack(to: row.commit, from: revision) }
    return try finalizingAfterFailure { () throws(RepositoryError) in
      let records = try records(after: revision)
      if usesIndexes { try checkNewest(in: records, row) }
      return try commits(records, upTo: row.commit, after: revision, row)
    }
  }

  /// Reads the records and tombstones after a revision, up to the newest commit, or returns `nil` without a newer commit.
  ///
  /// Use this function where the row of `larder_store` may be older than the newest commit. Call ``newCollections()``, which reads the
  /// names of the tables, before `readNewest(after:row:)` in the same transaction.
  func readNewest(after revision: Revision, row: SQLiteStoreRow) throws(RepositoryError) -> ForeignCommits? {
    try finalizingAfterFailure { () throws(RepositoryError) in
      // If the row of `larder_store` is older than the revision, the commit of that revision must still have left a record or tombstone. If
      // the commit of the revision has left neither a record nor a tombstone, an older copy has replaced the file.
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
    // Checkpoints may have deleted some tombstones of the requested commits. If tombstones may be missing, the caller finds deleted records
    // by comparing all keys.
    let addresses = row.tombstonesSince > revision.number ? try addresses() : nil
    return ForeignCommits(commit: Revision(commit), records: records, addresses: addresses)
  }

  private func finalizingAfterFailure<Result>(_ body: () throws(RepositoryError) -> Result) throws(RepositoryError) -> Result {
    do throws(RepositoryError) {
      return try body()
    } catch {
      statements = [:]  // an SQLite statement that still stands on a row keeps the transaction from ending
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
    // Decoding a key replaces bytes that are not UTF-8, which changes the checksum or the length of the key.
    guard try record.checksum == SQLiteChecksum(column: statement.integer(3)).crc, key.byteCount == keyBytes.count else {
      throw connection.damagedRow(record)
    }
    return record
  }

  /// Reads the addresses of all records in the store.
  ///
  /// The address of a record consists of its collection and its key.
  private func addresses() throws(RepositoryError) -> Set<RecordAddress> {
    var addresses: Set<RecordAddress> = []
    for name in collections {
      let statement = try statement("SELECT id FROM \(SQLiteLayout.quoted(name))")
      while try statement.step() { addresses.insert(RecordAddress(collection: name, key: RecordKey(try statement.text(0)))) }
    }
    return addresses
  }

  // MARK: The indexes by revision

  /// Throws `.corrupted` if an index by revision has entries that lead to no record, which SQLite skips without an error.
  private func checkCount(_ table: String, after revision: Revision, found: Int) throws(RepositoryError) {
    guard usesIndexes else { return }
    // SQLite counts rows from the index by revision alone, so the count includes the index entries without a record.
    let statement = try statement("SELECT count(*) FROM \(SQLiteLayout.quoted(table)) WHERE revision > ?1")
    try statement.bind(Int64(bitPattern: revision.number), at: 1)
    guard try statement.number() == Int64(found) else { throw connection.damagedIndex(table) }
  }

  /// Throws `.corrupted` if an index returned no record or tombstone of the newest commit.
  ///
  /// Every commit writes a record or tombstone. The newest commit has left no row only if it wrote nothing but tombstones, and a checkpoint
  /// has deleted those tombstones since.
  private func checkNewest(in records: [StoredRecord], _ row: SQLiteStoreRow) throws(RepositoryError) {
    guard row.tombstonesSince < row.commit, !records.contains(where: { $0.revision.number == row.commit }) else { return }
    throw connection.damagedIndex("one of the collections")
  }

  /// Compares a table's whole index by revision with the table.
  ///
  /// The comparison scans the whole index and the whole table.
  static func checkIndex(of table: String, on connection: SQLiteConnection) throws(RepositoryError) {
    func sum(_ term: String) -> String {
      "SELECT count(*) || ' ' || coalesce(sum(revision % 2147483647 * (1 + length(id))\(term)), 0) FROM \(SQLiteLayout.quoted(table))"
    }
    let index = SQLiteLayout.quoted(SQLiteLayout.revisionIndex(table))
    // The index has no column `crc`, so SQLite must read the table for the sum that contains this column.
    let statement = try connection.prepare("SELECT (\(sum("")) INDEXED BY \(index)) = (\(sum(" + 0 * crc")) NOT INDEXED)")
    let isSame = try statement.number() == 1
    try statement.finalize()
    guard isSame else { throw connection.damagedIndex(table) }
  }
}

extension SQLiteConnection {
  /// Returns the error for a store whose newest commit is older than a commit that was read before.
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
