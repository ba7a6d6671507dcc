internal import Dispatch
internal import Foundation
internal import Larder

/// A scan of every record and tombstone in one read transaction, which compares every checksum, the order of the keys, and the digest.
///
/// Rows are read on the calling thread, in blocks of 256 KiB, and compared and packed on another core while the next ones are read.
final class SQLiteScan {
  /// State of the store as found by the scan, and before its end the row of `larder_store`.
  private(set) var row: SQLiteStoreRow
  /// The row of `larder_store` as stored, which may be of an earlier commit.
  let storedRow: SQLiteStoreRow
  let collections: [String]
  var recordCount: Int { counts.records }
  var tombstoneCount: Int { counts.tombstones }
  /// Damage found by a scan that does not stop at the first, at most a thousand entries.
  private(set) var problems: [RepositoryError] = []

  private let connection: SQLiteConnection
  private let stopsAtDamage: Bool
  /// Limits of records.
  ///
  /// Without them no record is refused.
  private let limits: StoreOptions.Limits?
  /// Tables that are still to be read, the next one last.
  private var tables: [String]
  private var statement: SQLiteStatement?
  /// Collection of the table that is being read, or `nil` for the tombstones.
  private var collection: String?
  /// Whether the statement stands on a row that did not fit into the last block.
  private var holdsRow = false
  /// True until the statement reaches the end of its table, where a further step would begin anew.
  private var isWithinTable = false
  /// Error that ended the reading of a table, to be reported after the rows before it.
  private var failure: RepositoryError?
  private var counts = (records: 0, tombstones: 0)
  private var order = AscendingKeys()
  private var sum: SQLiteStoreRow
  private var newest: NewestCommit
  /// Blocks, tombstones and errors that were read and not returned yet, in order.
  private var ahead: [Step] = []
  private let queue = DispatchQueue(label: "larder.sqlite-scan")

  private enum Step {
    case rows(SQLiteRowBlock.Checking)
    case tombstones([StoredRecord])
    case problem(RepositoryError)
  }

  /// Number of blocks that are read ahead of the one that is returned.
  private static let breadth = 3
  private static let blockSize = 256 << 10
  private static let problemLimit = 1_000

  /// Begins the read transaction, and checks the tables and the row of `larder_store`.
  init(_ connection: SQLiteConnection, stopsAtDamage: Bool = true, limits: StoreOptions.Limits? = nil) throws(RepositoryError) {
    self.connection = connection
    self.stopsAtDamage = stopsAtDamage
    self.limits = limits
    try connection.execute("BEGIN", while: .reading)
    do {
      collections = try SQLiteLayout.collections(on: connection)
      storedRow = try SQLiteStoreRow(on: connection)
    } catch {
      // An open read transaction would keep a writer from emptying its log.
      try Self.end(connection)
      throw error
    }
    (row, newest) = (storedRow, NewestCommit(after: storedRow.commit))
    sum = SQLiteStoreRow(id: row.id)
    // Popped from the end: the collections in order, and then the tombstones.
    tables = [SQLiteLayout.tombstones] + collections.reversed()
  }

  private static func end(_ connection: SQLiteConnection) throws(RepositoryError) {
    // SQLite has ended the transaction itself after some failures, and a COMMIT would throw another error.
    if connection.isInTransaction { try connection.execute("COMMIT", while: .reading) }
  }

  /// Returns the next records, or compares the digest and returns `nil` after the last.
  func next() throws(RepositoryError) -> [LoadedRecords]? {
    while true {
      // Filled before the oldest block is awaited, so that reading and checking overlap.
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

  /// Reads the next block or tombstones, or returns `nil` behind the last table.
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
        // A single block of a small store needs no other core: nothing is read beside its check.
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

  /// Reads rows until the block is full, the table ends, or a row is damaged.
  ///
  /// The rows before a damaged one have checksums to compare, too. The loop works on local variables, because it decides how long opening
  /// takes.
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
        // Not checked to be text: bytes of another type would have another checksum, or be the same bytes.
        let value = row.bytes(4)
        // The row stays with the statement for the next block: `holdsRow` is still true.
        guard block.hasSpace(for: key.count + value.count) else { break }
        // A key out of order cannot be found by a lookup, though its row's checksum matches.
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

  /// Reads up to 2,048 tombstones.
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

  /// A check that keys ascend, among tombstones within each collection.
  private struct AscendingKeys {
    private var group: String?
    private var bytes: [UInt8] = []
    private var isEmpty = true

    /// Whether a key comes after the last one of its group, and stores it for the next call.
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
      // An empty key has no address to compare.
      guard count > 0, let start = next.baseAddress else { return bytes.count < next.count }
      let order = memcmp(bytes, start, count)
      return order == 0 ? bytes.count < next.count : order < 0
    }
  }

  /// Ends the transaction, and compares the digest of all rows with the one that the store recorded.
  private func finish() throws(RepositoryError) {
    try Self.end(connection)
    // The row of `larder_store` is behind: the digest to compare is the half that a row of the newest commit carries.
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
    // The statement goes first: one that stands on a row keeps the transaction from ending.
    if stopsAtDamage {
      statement = nil
      try Self.end(connection)
      throw error
    }
    // A limit, because every row of a large store may be damaged.
    if problems.count < Self.problemLimit { problems.append(error) }
  }
}

/// The newest commit of a store whose row in `larder_store` is behind it, and the half of the digest that one of its rows carries.
struct NewestCommit {
  /// The newest commit, or `nil` where no row is newer than that of `larder_store`.
  private(set) var commit: UInt64?
  /// Upper half of the store's digest after the newest commit, or 0 where none of its rows carries it.
  private(set) var digest: UInt32 = 0
  /// Highest revision that cannot be the newest commit.
  private var ceiling: Int64

  init(after commit: UInt64) { ceiling = Int64(clamping: commit) }

  /// Compares a row's revision with the newest commit so far, and stores a newer one with its half of the digest.
  ///
  /// In a store that was closed, no row gets further than the comparison.
  @inline(__always)
  mutating func note(_ revision: Int64, _ checksum: SQLiteChecksum) {
    if revision > ceiling { noteNewer(revision, checksum.digest) }
  }

  @inline(never)
  private mutating func noteNewer(_ revision: Int64, _ found: UInt32) {
    // One below the commit, so that further rows of the same commit are looked at: any of them may carry the digest.
    if commit != UInt64(bitPattern: revision) { (commit, digest, ceiling) = (UInt64(bitPattern: revision), 0, revision - 1) }
    if found != 0 { digest = found }
  }
}
