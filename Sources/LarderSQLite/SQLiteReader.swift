internal import Foundation
internal import Larder

/// Reads every record and tombstone in one read transaction, and compares every checksum, the order of the keys, and the sum of it all.
///
/// Values are copied into arenas of 256 KiB that the returned `Data` slices share: a row costs no allocation but that of its key.
final class SQLiteReader {
  let row: SQLiteStoreRow
  let collections: [String]
  private(set) var recordCount = 0
  private(set) var tombstoneCount = 0
  /// What is wrong, where the reader does not stop at the first damage; at most a thousand.
  private(set) var problems: [RepositoryError] = []

  private let connection: SQLiteConnection
  private let stopsAtDamage: Bool
  private var sources: [(collection: String?, sql: String)]
  private var statement: SQLiteStatement?
  private var collection: String?
  /// Whether the statement stands on a row that did not fit into the last chunk.
  private var holdsRow = false
  /// Whether the statement has not reached the end of its table; a step beyond that would begin anew.
  private var isWithinTable = false
  private var previousKey: (collection: String, bytes: [UInt8])?
  private var sum: SQLiteStoreRow

  private static let arenaSize = 256 << 10
  private static let problemLimit = 1_000

  /// Begins to read: checks the layout and the store's own row.
  init(_ connection: SQLiteConnection, stopsAtDamage: Bool = true) throws(RepositoryError) {
    self.connection = connection
    self.stopsAtDamage = stopsAtDamage
    try connection.execute("BEGIN", while: .reading)
    do {
      collections = try SQLiteLayout.collections(on: connection)
      row = try SQLiteStoreRow(on: connection)
    } catch {
      try Self.end(connection)
      throw error
    }
    sum = SQLiteStoreRow(id: row.id)
    sources = collections.map { ($0, "SELECT id, revision, version, crc, value FROM \(SQLiteLayout.quoted($0))") }
    sources.append((nil, "SELECT id, revision, version, crc, collection FROM larder_tombstones"))
    sources.reverse()
  }

  private static func end(_ connection: SQLiteConnection) throws(RepositoryError) {
    if connection.isInTransaction { try connection.execute("COMMIT", while: .reading) }
  }

  /// The next records, or `nil` after the last, when all that was read has been found complete.
  func next() throws(RepositoryError) -> [StoredRecord]? {
    while true {
      if statement == nil {
        guard let source = sources.popLast() else {
          try finish()
          return nil
        }
        do { statement = try connection.prepare(source.sql) } catch { try note(error) }
        collection = source.collection
        previousKey = nil
        (holdsRow, isWithinTable) = (false, true)
      }
      guard let statement else { continue }
      do {
        let records = try chunk(statement)
        if !isWithinTable {
          try statement.reset()
          self.statement = nil
        }
        if !records.isEmpty { return records }
      } catch {
        self.statement = nil
        try note(error)
      }
    }
  }

  /// A row whose value lies in the arena, or is too large for one.
  private struct Row {
    let collection: String
    let key: RecordKey
    let revision: Int64
    let version: Int64
    let crc: Int64
    let value: Value
    enum Value { case none, own(Data), arena(Range<Int>) }
  }

  /// Reads rows until the arena is full or the table ends.
  private func chunk(_ statement: SQLiteStatement) throws(RepositoryError) -> [StoredRecord] {
    guard let arena = malloc(Self.arenaSize) else { throw RepositoryError(.inputOutput, "out of memory", file: connection.path) }
    var used = 0
    var rows: [Row] = []
    do {
      var isFull = false
      while !isFull {
        if !holdsRow { holdsRow = try statement.step() }
        guard holdsRow else {
          isWithinTable = false
          break
        }
        let value: Row.Value
        if collection == nil {
          value = .none
          isFull = rows.count == 1_000
        } else {
          let bytes = try statement.bytes(4)
          if bytes.count > Self.arenaSize {
            value = .own(Data(bytes))
            isFull = true
          } else if used + bytes.count > Self.arenaSize {
            break
          } else {
            if let start = bytes.baseAddress { (arena + used).copyMemory(from: start, byteCount: bytes.count) }
            value = .arena(used..<used + bytes.count)
            used += bytes.count
          }
        }
        rows.append(try row(statement, value))
        holdsRow = false
      }
    } catch {
      free(arena)
      throw error
    }
    let data = Data(bytesNoCopy: arena, count: used, deallocator: .free)
    var records: [StoredRecord] = []
    records.reserveCapacity(rows.count)
    for row in rows {
      let value: Data? =
        switch row.value {
        case .none: nil
        case .own(let data): data
        case .arena(let range): data[range]
        }
      let record = StoredRecord(
        collection: row.collection, key: row.key, revision: Revision(UInt64(bitPattern: row.revision)),
        schemaVersion: Int(row.version), value: value)
      sum.add(row.crc)
      if value == nil { tombstoneCount += 1 } else { recordCount += 1 }
      if Int64(record.checksum) == row.crc && row.revision >= 0 {
        records.append(record)
      } else {
        let what = value == nil ? "a tombstone" : "a record"
        try note(connection.damaged("the checksum of \(what) in \"\(row.collection)\" does not match", keyHash: row.key.hash))
      }
    }
    return records
  }

  private func row(_ statement: SQLiteStatement, _ value: Row.Value) throws(RepositoryError) -> Row {
    let collection = if let collection { collection } else { try statement.text(4) }
    let bytes = try statement.bytes(0)
    if let previousKey, previousKey.collection == collection, !isAscending(previousKey.bytes, bytes) {
      throw connection.damaged("keys in \"\(collection)\" are out of order")
    }
    // The array is reused: one allocation for a table, not one for a row.
    previousKey?.collection = collection
    if previousKey == nil { previousKey = (collection, []) }
    previousKey?.bytes.replaceSubrange(0..., with: bytes)
    return Row(
      collection: collection, key: RecordKey(try statement.text(0)), revision: try statement.integer(1),
      version: try statement.integer(2), crc: try statement.integer(3), value: value)
  }

  private func isAscending(_ left: [UInt8], _ right: UnsafeRawBufferPointer) -> Bool {
    left.withUnsafeBytes { left in
      let count = min(left.count, right.count)
      guard count > 0, let first = left.baseAddress, let second = right.baseAddress else { return left.count < right.count }
      let order = memcmp(first, second, count)
      return order == 0 ? left.count < right.count : order < 0
    }
  }

  /// Ends the transaction and compares the sum of all that was read with the store's own row.
  private func finish() throws(RepositoryError) {
    try Self.end(connection)
    if recordCount != row.records || tombstoneCount != row.tombstones || sum.digest != row.digest {
      let found = "found \(recordCount) records and \(tombstoneCount) tombstones, expected \(row.records) and \(row.tombstones)"
      try note(connection.damaged("records are missing or out of date: " + found))
    }
  }

  private func note(_ error: RepositoryError) throws(RepositoryError) {
    if stopsAtDamage {
      statement = nil
      try Self.end(connection)
      throw error
    }
    if problems.count < Self.problemLimit { problems.append(error) }
  }
}
