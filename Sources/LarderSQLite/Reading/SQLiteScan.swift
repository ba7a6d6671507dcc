internal import Dispatch
internal import Foundation
internal import Larder

/// A scan of every record and tombstone in one read transaction; compares every checksum, the order of the keys, and the sum of all rows.
///
/// Rows are read here, in blocks of 256 KiB, and compared and packed on another core while the next ones are read.
final class SQLiteScan {
  /// The state of the store; before the end of the scan, as its row has it.
  private(set) var row: SQLiteStoreRow
  /// The row as `larder_store` has it.
  let storedRow: SQLiteStoreRow
  let collections: [String]
  var recordCount: Int { counts.records }
  var tombstoneCount: Int { counts.tombstones }
  /// The damage found by a scan that does not stop at the first; at most a thousand entries.
  private(set) var problems: [RepositoryError] = []

  private let connection: SQLiteConnection
  private let stopsAtDamage: Bool
  /// The limits of records; without them, none is refused.
  private let limits: StoreOptions.Limits?
  /// The tables that are still to be read, the next one last.
  private var tables: [String]
  private var statement: SQLiteStatement?
  /// The collection of the table that is read; `nil` for the tombstones.
  private var collection: String?
  /// Whether the statement is at a row that did not fit into the last block.
  private var holdsRow = false
  /// Whether the statement has not reached the end of its table; a step beyond that would begin anew.
  private var isWithinTable = false
  /// The error behind the rows of the last block, which ends its table.
  private var failure: RepositoryError?
  private var counts = (records: 0, tombstones: 0)
  private var order = AscendingKeys()
  private var sum: SQLiteStoreRow
  private var newest: NewestCommit
  /// The steps that were read and not returned yet, in order.
  private var ahead: [Step] = []
  private let queue = DispatchQueue(label: "larder.sqlite-scan")

  private enum Step {
    case rows(SQLiteRowBlock.Checking)
    case tombstones([StoredRecord])
    case problem(RepositoryError)
  }

  /// The number of blocks that are read ahead of those that are returned.
  private static let breadth = 3
  private static let blockSize = 256 << 10
  private static let problemLimit = 1_000

  /// Begins the transaction; checks the layout and the store's own row.
  init(_ connection: SQLiteConnection, stopsAtDamage: Bool = true, limits: StoreOptions.Limits? = nil) throws(RepositoryError) {
    self.connection = connection
    self.stopsAtDamage = stopsAtDamage
    self.limits = limits
    try connection.execute("BEGIN", while: .reading)
    do {
      collections = try SQLiteLayout.collections(on: connection)
      storedRow = try SQLiteStoreRow(on: connection)
    } catch {
      try Self.end(connection)
      throw error
    }
    (row, newest) = (storedRow, NewestCommit(after: storedRow.commit))
    sum = SQLiteStoreRow(id: row.id)
    tables = [SQLiteLayout.tombstones] + collections.reversed()
  }

  private static func end(_ connection: SQLiteConnection) throws(RepositoryError) {
    if connection.isInTransaction { try connection.execute("COMMIT", while: .reading) }
  }

  /// Returns the next records; `nil` after the last, once their sum was compared.
  func next() throws(RepositoryError) -> [LoadedRecords]? {
    while true {
      while ahead.count < Self.breadth, let step = read() { ahead.append(step) }
      if ahead.isEmpty {
        try finish()
        return nil
      }
      switch ahead.removeFirst() {
      case .problem(let error): try note(error)
      case .tombstones(let records): return records.map { .record($0) }
      case .rows(let checking):
        let checked = checking.result()
        for record in checked.damaged { try note(connection.damagedRow(record)) }
        if checked.pack.count > 0 { return [.pack(checked.pack)] }
      }
    }
  }

  /// Reads on; `nil` behind the last table.
  private func read() -> Step? {
    if let error = failure.take() {
      statement = nil
      return .problem(error)
    }
    do {
      if statement == nil {
        guard let table = tables.popLast() else { return nil }
        collection = table == SQLiteLayout.tombstones ? nil : table
        order = AscendingKeys()
        (holdsRow, isWithinTable) = (false, true)
        statement = try connection.prepare("SELECT \(SQLiteLayout.columns(of: table)) FROM \(SQLiteLayout.quoted(table))")
      }
      guard let statement else { return .tombstones([]) }
      let step: Step
      if let collection {
        let block = try block(statement, collection)
        // What nothing is read beside needs no other core.
        step = .rows(SQLiteRowBlock.Checking(block, limits, on: isWithinTable || !ahead.isEmpty ? queue : nil))
      } else {
        step = .tombstones(try tombstones(statement))
      }
      if !isWithinTable { self.statement = nil }
      return step
    } catch {
      statement = nil
      return .problem(error)
    }
  }

  /// Reads rows until the block is full or the table ends, or up to an error: the rows before it have checksums to compare, too.
  ///
  /// The loop works on local variables, because it decides how long opening takes.
  private func block(_ statement: SQLiteStatement, _ collection: String) throws(RepositoryError) -> SQLiteRowBlock {
    var block = try SQLiteRowBlock.Draft(collection, capacity: Self.blockSize, file: connection.path)
    var (sum, order, count, newest) = (sum, order, counts.records, newest)
    var holdsRow = holdsRow
    let row = statement.row
    defer { (self.sum, self.order, counts.records, self.newest, self.holdsRow) = (sum, order, count, newest, holdsRow) }
    do throws(RepositoryError) {
      while true {
        if !holdsRow {
          guard try statement.step() else {
            isWithinTable = false
            break
          }
        }
        holdsRow = true
        let key = try statement.bytes(0)
        // Bytes of another type than text would have another checksum, or be the same bytes.
        let value = row.bytes(4)
        guard block.hasSpace(for: key.count + value.count) else { break }
        guard order.follows(key) else { throw connection.damaged("expected ascending keys in \"\(collection)\", found one out of order") }
        let (revision, checksum) = (row.integer(1), SQLiteChecksum(column: row.integer(3)))
        newest.note(revision, checksum)
        block.append(key, value, revision: revision, schemaVersion: row.integer(2), crc: checksum.crc)
        sum.add(checksum.crc)
        count += 1
        holdsRow = false
      }
    } catch {
      failure = error
    }
    return block.finish()
  }

  /// Reads some tombstones.
  private func tombstones(_ statement: SQLiteStatement) throws(RepositoryError) -> [StoredRecord] {
    var records: [StoredRecord] = []
    while records.count < 2_048 {
      guard try statement.step() else {
        isWithinTable = false
        break
      }
      let name = try statement.text(4)
      let keyBytes = try statement.bytes(0)
      guard order.follows(keyBytes, in: name) else {
        throw connection.damaged("expected ascending keys in \"\(name)\", found one out of order")
      }
      // Bytes that are not UTF-8 are repaired to other bytes here, which the length or the checksum below reveals.
      let key = RecordKey(utf8: keyBytes)
      let checksum = SQLiteChecksum(column: statement.row.integer(3))
      let record = StoredRecord(
        collection: name, key: key, revision: Revision(UInt64(bitPattern: statement.row.integer(1))),
        schemaVersion: Int(clamping: statement.row.integer(2)), value: nil)
      sum.add(checksum.crc)
      newest.note(Int64(bitPattern: record.revision.number), checksum)
      counts.tombstones += 1
      if record.checksum == checksum.crc && key.byteCount == keyBytes.count && record.revision.number <= UInt64(Int64.max) {
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
    mutating func follows(_ next: UnsafeRawBufferPointer, in group: String? = nil) -> Bool {
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
    if let commit = newest.commit {
      guard newest.digest != 0, newest.digest == sum.carriedDigest else {
        return try note(
          connection.damaged("records are missing or out of date: expected those of commit \(commit), found others"))
      }
      row = sum
      (row.commit, row.records, row.tombstones) = (commit, recordCount, tombstoneCount)
      (row.tombstonesSince, row.isBuffered) = (storedRow.tombstonesSince, storedRow.isBuffered)
      return
    }
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

/// The newest commit of a store where the row of `larder_store` is behind it, and what one of its rows carries of the digest.
struct NewestCommit {
  /// The commit; `nil` where no row is newer than that of `larder_store`.
  private(set) var commit: UInt64?
  /// The upper half of the digest of the store after it; 0 where none of its rows carries it.
  private(set) var digest: UInt32 = 0
  /// The highest revision of rows that do not matter.
  private var ceiling: Int64

  init(after commit: UInt64) { ceiling = Int64(clamping: commit) }

  /// Notes a row; in a store that was closed none gets further than the comparison.
  @inline(__always)
  mutating func note(_ revision: Int64, _ checksum: SQLiteChecksum) {
    if revision > ceiling { noteNewer(revision, checksum.digest) }
  }

  @inline(never)
  private mutating func noteNewer(_ revision: Int64, _ found: UInt32) {
    // Further rows of the same commit matter, too.
    if commit != UInt64(bitPattern: revision) { (commit, digest, ceiling) = (UInt64(bitPattern: revision), 0, revision - 1) }
    if found != 0 { digest = found }
  }
}
