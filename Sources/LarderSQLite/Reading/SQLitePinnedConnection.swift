internal import Foundation
internal import Larder

/// A connection with an open read transaction, and the statements that read records in it.
final class SQLitePinnedConnection {
  private let connection: SQLiteConnection
  /// Statements by their SQL, and by the name of a collection the one that reads a record, whose SQL takes long to make.
  private var statements: [String: SQLiteStatement] = [:]
  /// Complete indexes in the read transaction, with the numbers of their tables.
  private var indexes: [StoredIndexID: Int64]
  /// Length of the values after which a block of records ends.
  private static let blockSize = 1 << 20

  /// - Parameter commit: The commit at which the read transaction must begin, or `nil` if no other process can commit.
  init(_ path: String, _ indexes: [StoredIndexID: Int64], at commit: Revision?) throws(RepositoryError) {
    self.indexes = indexes
    guard let connection = try SQLiteConnection(path: path, .readOnly) else {
      throw RepositoryError(.dataMissing, "the database was removed while the store was open: put it back, and open it again", file: path)
    }
    // The connection must leave the write-ahead log as it is, even if it is the last one.
    connection.keepLogOnClose()
    self.connection = connection
    try pin(at: commit)
  }

  private func pin(at commit: Revision?) throws(RepositoryError) {
    try connection.execute("BEGIN", while: .reading)
    // SQLite begins the read transaction at the first read, and not at BEGIN.
    let row = try SQLiteStoreRow(on: connection)
    // Every commit to a shared store writes the row of `larder_store`, so the row shows the commit of the read transaction.
    if let commit, row.commit != commit.number { throw .superseded(commit, connection.path) }
  }

  func pinAgain(keeping current: [StoredIndexID: Int64], at commit: Revision?) throws(RepositoryError) {
    // After a read of a damaged page, a COMMIT would throw the error of the damage again.
    try connection.execute("ROLLBACK", while: .reading)
    try pin(at: commit)
    indexes = indexes.filter { current[$0.key] == $0.value }
  }

  func collections() throws(RepositoryError) -> [String] { try SQLiteLayout.collections(on: connection) }

  func record(_ key: RecordKey, of collection: String) throws(RepositoryError) -> StoredRecord? {
    if statements[collection] == nil {
      let table = SQLiteLayout.quoted(collection)
      statements[collection] = try connection.prepare("SELECT \(SQLiteLayout.columns(of: collection)) FROM \(table) WHERE id = ?1")
    }
    let statement = try statement(collection)
    try statement.bind(key, at: 1)
    guard try statement.step() else { return nil }
    let record = try record(statement, of: collection)
    try statement.reset()
    return record
  }

  func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
    let table = SQLiteLayout.quoted(collection)
    let condition = key == nil ? "" : "WHERE id > ?1 "
    let statement = try statement("SELECT \(SQLiteLayout.columns(of: collection)) FROM \(table) \(condition)ORDER BY id LIMIT ?2")
    if let key { try statement.bind(key, at: 1) }
    try statement.bind(Int64(limit), at: 2)
    var (records, size): ([StoredRecord], Int) = ([], 0)
    while try statement.step() {
      let record = try record(statement, of: collection)
      records.append(record)
      size += record.value?.count ?? 0
      if size > Self.blockSize {
        try statement.reset()
        break
      }
    }
    return records
  }

  /// Returns the record of the statement's current row, after a comparison of its checksum.
  private func record(_ statement: SQLiteStatement, of collection: String) throws(RepositoryError) -> StoredRecord {
    do throws(RepositoryError) {
      let row = statement.row
      let checksum = SQLiteChecksum(column: row.integer(3))
      let record = StoredRecord(
        collection: collection, key: RecordKey(utf8: try statement.bytes(0)), revision: Revision(UInt64(bitPattern: row.integer(1))),
        schemaVersion: Int(clamping: row.integer(2)), value: Data(row.bytes(4)))
      guard record.checksum == checksum.crc else { throw connection.damagedRow(record) }
      return record
    } catch {
      // A statement that stands on a row would keep `pinAgain(keeping:)` from ending the transaction.
      do throws(RepositoryError) { try statement.reset() } catch {}
      throw error
    }
  }

  // MARK: Indexes

  func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] {
    let statement = try statement(SQLiteIndexes.selectRow)
    return try SQLiteIndexes.boundaries(of: index, try number(of: index), statement, on: connection)
  }

  func keys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    let table = SQLiteIndexes.keyTable(try number(of: index))
    var last: Data?
    if !lower.isEmpty {
      // A damaged key may lead SQLite's search past the first keys of the range. The search then ends directly behind the damaged key.
      let before = try statement("SELECT key, crc FROM \(table) WHERE key < ?1 ORDER BY key DESC LIMIT 1")
      try before.bindBlob(lower, at: 1)
      try forEachKey(before, of: index, after: nil) { key in
        last = key
        return true
      }
    }
    let statement = try statement("SELECT key, crc FROM \(table) WHERE key >= ?1 ORDER BY key")
    try statement.bindBlob(lower, at: 1)
    var keys: [Data] = []
    // The range ends here and not in SQL, where a damaged key could end it early.
    try forEachKey(statement, of: index, after: last) { key in
      if let upper, !key.precedes(upper) { return false }
      keys.append(key)
      return true
    }
    return keys
  }

  /// Calls `body` with each key of a statement, after the comparison of its checksum, until `body` returns false.
  private func forEachKey(
    _ statement: SQLiteStatement, of index: StoredIndexID, after last: Data?, _ body: (Data) -> Bool
  ) throws(RepositoryError) {
    var last = last
    do throws(RepositoryError) {
      while try SQLiteIndexes.step(statement, in: index, on: connection) {
        let key = try SQLiteIndexes.key(statement, after: last, of: index, on: connection)
        guard body(key) else { return try statement.reset() }
        last = key
      }
    } catch {
      // A statement that stands on a row would keep `pinAgain(keeping:)` from ending the transaction.
      do throws(RepositoryError) { try statement.reset() } catch {}
      throw error
    }
  }

  /// Returns the number of keys in a range, whose checksums are not compared.
  func keyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    let table = SQLiteIndexes.keyTable(try number(of: index))
    let statement = try statement("SELECT count(*) FROM \(table) WHERE key >= ?1\(upper == nil ? "" : " AND key < ?2")")
    try statement.bindBlob(lower, at: 1)
    if let upper { try statement.bindBlob(upper, at: 2) }
    return Int(clamping: try statement.number() ?? 0)
  }

  private func number(of index: StoredIndexID) throws(RepositoryError) -> Int64 {
    guard let number = indexes[index] else { throw .storesNoIndexes(connection.path) }
    return number
  }

  private func statement(_ sql: String) throws(RepositoryError) -> SQLiteStatement {
    if let statement = statements[sql] { return statement }
    let statement = try connection.prepare(sql)
    statements[sql] = statement
    return statement
  }
}

extension RepositoryError {
  /// Returns the error for a read of records that the database has only as of a newer commit.
  static func superseded(_ commit: Revision, _ path: String) -> RepositoryError {
    RepositoryError(.superseded, "the database has the records of a newer commit than \(commit); take a new snapshot", file: path)
  }
}
