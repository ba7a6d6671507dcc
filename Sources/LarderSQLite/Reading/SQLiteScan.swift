internal import Dispatch
internal import Foundation
internal import Larder

/// A scan of every record and tombstone in one read transaction, which compares every checksum, the order of the keys, and the digest.
///
/// The calling thread reads rows in blocks of 256 KiB. Another core compares the checksums of a block's rows while the next blocks are
/// read.
final class SQLiteScan {
  /// The row of `larder_store` that matches the scanned records.
  ///
  /// Before the end of the scan, `row` is the stored row of `larder_store`.
  private(set) var row: SQLiteStoreRow
  /// The row of `larder_store` as stored, which may belong to an earlier commit than the newest one.
  let storedRow: SQLiteStoreRow
  let collections: [String]
  var recordCount: Int { counts.records }
  var tombstoneCount: Int { counts.tombstones }
  /// Damage found by a scan that does not stop at the first problem, at most a thousand entries.
  private(set) var problems: [RepositoryError] = []

  private let connection: SQLiteConnection
  private let stopsAtDamage: Bool
  /// Limits that every record must keep.
  ///
  /// If `limits` is `nil`, no record is refused for exceeding a limit.
  private let limits: StoreOptions.Limits?
  /// Names of the tables that are still to be read.
  ///
  /// The last element of `tables` is the table that is read next.
  private var tables: [String]
  private var statement: SQLiteStatement?
  /// Name of the collection whose table is being read, or `nil` for the tombstones.
  private var collection: String?
  /// Whether the statement's current row did not fit into the last block, and begins the next block.
  private var holdsRow = false
  /// True until the statement reaches the end of its table.
  ///
  /// After the end of the table, a further step of the statement would read the table from its start again.
  private var isWithinTable = false
  /// Error that ended the reading of a table.
  ///
  /// The error is reported after the rows that were read before it.
  private var failure: RepositoryError?
  private var counts = (records: 0, tombstones: 0)
  private var order = AscendingKeys()
  private var sum: SQLiteStoreRow
  private var newest: NewestCommit
  /// Blocks, tombstones and errors that were read and not yet returned, in the order of reading.
  private var ahead: [Step] = []
  private let queue = DispatchQueue(label: "larder.sqlite-scan")

  private enum Step {
    case rows(SQLiteRowBlock.Checking)
    case tombstones([StoredRecord])
    case problem(RepositoryError)
  }

  /// Number of blocks that are read ahead, counting the block that is returned next.
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
      // A read transaction that stays open would keep another process from emptying its write-ahead log, so it ends before the error is
      // thrown.
      try Self.end(connection)
      throw error
    }
    (row, newest) = (storedRow, NewestCommit(after: storedRow.commit))
    sum = SQLiteStoreRow(id: row.id)
    // Tables are taken from the end of `tables`: first the collections in order, and then the tombstones.
    tables = [SQLiteLayout.tombstones] + collections.reversed()
  }

  private static func end(_ connection: SQLiteConnection) throws(RepositoryError) {
    // After some failures SQLite has ended the transaction itself. A ROLLBACK without a transaction would throw a second error that hides
    // the first one. A COMMIT would throw the error of a damaged index again, although the scan goes on without that index.
    if connection.isInTransaction { try connection.execute("ROLLBACK", while: .reading) }
  }

  /// Returns the next records, or compares the digest and returns `nil` after the last record.
  func next() throws(RepositoryError) -> [LoadedRecords]? {
    while true {
      // New blocks are read before this thread waits for the check of the oldest block, so that reading and checking run at the same time.
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

  /// Reads the next block of records or tombstones, or returns `nil` after the last table.
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
        // The only block of a small store is checked on this thread, because there is no other block to read while another core checks it.
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
  /// The rows before a damaged one stay in the block, because their checksums must be compared, too. The loop works on local variables,
  /// because its speed decides how long the opening of a store takes.
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
        // The scan does not check the type of the column `value`. A value of another type either has the same bytes or does not match the
        // checksum.
        let value = row.bytes(4)
        // If the block is full, `holdsRow` stays true, and the next block begins with this row.
        guard block.hasSpace(for: key.count + value.count) else { break }
        // A look-up does not find a key that is out of order, even though the checksum of its row matches.
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
      // Decoding a key replaces bytes that are not UTF-8. If a key has bytes that are not UTF-8, the comparison of the key's length or of
      // the row's checksum below fails.
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

  /// Reads only the tombstones, and ends the read transaction.
  ///
  /// Call `readTombstones()` in place of ``next()``.
  func readTombstones() throws(RepositoryError) -> [StoredRecord] {
    var records: [StoredRecord] = []
    do {
      let table = SQLiteLayout.tombstones
      let statement = try connection.prepare("SELECT \(SQLiteLayout.columns(of: table)) FROM \(SQLiteLayout.quoted(table))")
      (order, isWithinTable) = (AscendingKeys(), true)
      while isWithinTable { records += try tombstones(statement) }
    }
    if records.count != row.tombstones {
      throw connection.damaged("expected \(row.tombstones) tombstones, found \(records.count)")
    }
    try Self.end(connection)
    return records
  }

  /// A check that the keys of a table ascend.
  ///
  /// Among the tombstones, the keys of each collection must ascend.
  private struct AscendingKeys {
    private var group: String?
    private var bytes: [UInt8] = []
    private var isEmpty = true

    /// Returns whether a key comes after the last key of its collection (`group`), and stores the key for the next comparison.
    mutating func follows(_ next: UnsafeRawBufferPointer, in group: String? = nil) -> Bool {
      defer {
        isEmpty = false
        if bytes.count == next.count {
          bytes.withUnsafeMutableBytes { $0.copyMemory(from: next) }
        } else {
          bytes.replaceSubrange(0..., with: next)  // reuses the array's storage
        }
      }
      if isEmpty || group != self.group {
        self.group = group
        return true
      }
      let count = min(bytes.count, next.count)
      // The buffer of an empty key may have no address, and an empty key has no bytes to compare.
      guard count > 0, let start = next.baseAddress else { return bytes.count < next.count }
      let order = memcmp(bytes, start, count)
      return order == 0 ? bytes.count < next.count : order < 0
    }
  }

  /// Ends the transaction, and compares the digest of all rows with the recorded digest of the store.
  private func finish() throws(RepositoryError) {
    try Self.end(connection)
    // If the row of `larder_store` is older than the newest commit, a record or tombstone of that commit carries half of the digest.
    if let commit = newest.commit {
      guard newest.digest != 0, newest.digest == sum.carriedDigest else {
        return try note(
          connection.damaged("records are missing or out of date: expected those of commit \(commit), found others"))
      }
      // The state found by the scan replaces the outdated row, so that a writer continues from the newest commit.
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
    // The statement is finalized before the COMMIT, because a statement that stands on a row keeps the transaction from ending.
    if stopsAtDamage {
      statement = nil
      try Self.end(connection)
      throw error
    }
    // The number of problems has a limit, because every row of a large store may be damaged.
    if problems.count < Self.problemLimit { problems.append(error) }
  }
}

/// The newest commit found in the rows of a store, and the half of the digest that one of that commit's rows carries.
struct NewestCommit {
  /// The newest commit, or `nil` where no row is newer than the row of `larder_store`.
  private(set) var commit: UInt64?
  /// Upper half of the store's digest after the newest commit, or 0 where no row of that commit carries it.
  private(set) var digest: UInt32 = 0
  /// Highest revision that ``note(_:_:)`` skips, because rows up to it are older than the newest commit or no newer than `larder_store`.
  private var ceiling: Int64

  init(after commit: UInt64) { ceiling = Int64(clamping: commit) }

  /// Compares a row's revision with the newest commit so far, and stores a newer commit with its half of the digest.
  ///
  /// After a clean close the row of `larder_store` is up to date, so no record is newer than `ceiling`.
  @inline(__always)
  mutating func note(_ revision: Int64, _ checksum: SQLiteChecksum) {
    if revision > ceiling { noteNewer(revision, checksum.digest) }
  }

  @inline(never)
  private mutating func noteNewer(_ revision: Int64, _ found: UInt32) {
    // `ceiling` is one below the newest commit, so that further rows of the same commit are examined. Any row of the newest commit may
    // carry the digest.
    if commit != UInt64(bitPattern: revision) { (commit, digest, ceiling) = (UInt64(bitPattern: revision), 0, revision - 1) }
    if found != 0 { digest = found }
  }
}
