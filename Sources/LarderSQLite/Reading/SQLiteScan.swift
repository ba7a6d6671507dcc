internal import Foundation
internal import Larder

/// A scan of every record and tombstone in one read transaction; compares every checksum, the order of the keys, and the sum of all rows.
///
/// Values are copied into arenas of 256 KiB that the returned `Data` slices share: a row costs no allocation but that of its key.
final class SQLiteScan {
  let row: SQLiteStoreRow
  let collections: [String]
  var recordCount: Int { counts.records }
  var tombstoneCount: Int { counts.tombstones }
  /// The damage found by a scan that does not stop at the first; at most a thousand entries.
  private(set) var problems: [RepositoryError] = []

  private let connection: SQLiteConnection
  private let stopsAtDamage: Bool
  /// The tables that are still to be read, the next one last.
  private var tables: [String]
  private var statement: SQLiteStatement?
  private var collection: String?
  /// Whether the statement is at a row that did not fit into the last chunk.
  private var holdsRow = false
  /// Whether the statement has not reached the end of its table; a step beyond that would begin anew.
  private var isWithinTable = false
  private var counts = (records: 0, tombstones: 0)
  private var order = AscendingKeys()
  private var sum: SQLiteStoreRow

  private static let arenaSize = 256 << 10
  private static let problemLimit = 1_000

  /// Begins the transaction; checks the layout and the store's own row.
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
    tables = [SQLiteLayout.tombstones] + collections.reversed()
  }

  private static func end(_ connection: SQLiteConnection) throws(RepositoryError) {
    if connection.isInTransaction { try connection.execute("COMMIT", while: .reading) }
  }

  /// Returns the next records; `nil` after the last, once their sum was compared.
  func next() throws(RepositoryError) -> [StoredRecord]? {
    while true {
      if statement == nil {
        guard let table = tables.popLast() else {
          try finish()
          return nil
        }
        let sql = "SELECT \(SQLiteLayout.columns(of: table)) FROM \(SQLiteLayout.quoted(table))"
        do { statement = try connection.prepare(sql) } catch { try note(error) }
        collection = table == SQLiteLayout.tombstones ? nil : table
        order = AscendingKeys()
        (holdsRow, isWithinTable) = (false, true)
      }
      guard let statement else { continue }
      do {
        let records = try chunk(statement)
        if !isWithinTable { self.statement = nil }
        if !records.isEmpty { return records }
      } catch {
        self.statement = nil
        try note(error)
      }
    }
  }

  /// Reads rows until the arena is full or the table ends.
  ///
  /// The loop works on local variables, because it decides how long opening takes.
  private func chunk(_ statement: SQLiteStatement) throws(RepositoryError) -> [StoredRecord] {
    guard let arena = malloc(Self.arenaSize) else {
      throw RepositoryError(.inputOutput, "there is no memory for reading records: free some memory, and try again", file: connection.path)
    }
    // A slice is taken only after its bytes were written, and later writes go behind it: no byte is written after it was handed out.
    let storage = Data(bytesNoCopy: arena, count: Self.arenaSize, deallocator: .free)
    var used = 0
    var (sum, order, counts) = (sum, order, counts)
    var holdsRow = holdsRow
    let (collection, row) = (collection, statement.row)
    var records: [StoredRecord] = []
    records.reserveCapacity(2_048)
    defer { (self.sum, self.order, self.counts, self.holdsRow) = (sum, order, counts, holdsRow) }
    while records.count < 2_048 {
      if !holdsRow {
        guard try statement.step() else {
          isWithinTable = false
          break
        }
      }
      holdsRow = true
      var value: Data?
      if collection != nil {
        // Bytes of another type than text would have another checksum, or be the same bytes.
        let bytes = row.bytes(4)
        if bytes.count > Self.arenaSize {
          value = Data(bytes)
        } else {
          if used + bytes.count > Self.arenaSize { break }
          if let start = bytes.baseAddress { (arena + used).copyMemory(from: start, byteCount: bytes.count) }
          value = storage[used..<used + bytes.count]
          used += bytes.count
        }
      }
      let name = if let collection { collection } else { try statement.text(4) }
      let keyBytes = try statement.bytes(0)
      guard order.follows(keyBytes, in: collection == nil ? name : nil) else {
        throw connection.damaged("expected ascending keys in \"\(name)\", found one out of order")
      }
      // Bytes that are not UTF-8 are repaired to other bytes here, which the length or the checksum below reveals.
      let key = RecordKey(utf8: keyBytes)
      let crc = row.integer(3)
      let record = StoredRecord(
        collection: name, key: key, revision: Revision(UInt64(bitPattern: row.integer(1))),
        schemaVersion: Int(row.integer(2)), value: value)
      holdsRow = false
      sum.add(crc)
      if value == nil { counts.tombstones += 1 } else { counts.records += 1 }
      if Int64(record.checksum) == crc && key.byteCount == keyBytes.count && record.revision.number <= UInt64(Int64.max) {
        records.append(record)
      } else {
        try note(connection.damagedRow(record))
      }
    }
    return records
  }

  /// A check that keys ascend.
  private struct AscendingKeys {
    private var group: String?
    private var bytes: [UInt8] = []
    private var isEmpty = true

    /// Whether the next key comes after the last one of its group; remembers it.
    mutating func follows(_ next: UnsafeRawBufferPointer, in group: String?) -> Bool {
      defer {
        isEmpty = false
        if bytes.count == next.count {
          bytes.withUnsafeMutableBytes { $0.copyMemory(from: next) }
        } else {
          bytes.replaceSubrange(0..., with: next)  // reuses its storage
        }
      }
      if isEmpty || group != self.group {
        self.group = group
        return true
      }
      let count = min(bytes.count, next.count)
      guard count > 0, let start = next.baseAddress else { return bytes.count < next.count }
      let order = memcmp(bytes, start, count)
      return order == 0 ? bytes.count < next.count : order < 0
    }
  }

  /// Ends the transaction and compares the sum of all that was read with the store's own row.
  private func finish() throws(RepositoryError) {
    try Self.end(connection)
    if recordCount != row.records || tombstoneCount != row.tombstones || sum.digest != row.digest {
      try note(
        connection.damaged(
          "records are missing or out of date: expected \(row.records) records and \(row.tombstones) tombstones, "
            + "found \(recordCount) and \(tombstoneCount)"))
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
