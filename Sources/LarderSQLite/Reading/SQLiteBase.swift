internal import Dispatch
internal import Foundation
internal import Larder
internal import Synchronization

/// The records of a store as of one commit, read through connections with open read transactions ("pinned" connections).
///
/// A pinned connection keeps SQLite from overwriting the pages of its commit. The write-ahead log therefore grows while a base of an older
/// commit exists, and ``SQLiteBases`` bounds that growth.
final class SQLiteBase: StoredBase {
  let commit: Revision
  private let path: String
  /// Names of the collections that have a table.
  private let collections: Set<String>
  /// Complete indexes at the commit, with the numbers of their tables.
  private let indexes: [StoredIndexID: Int64]
  private let readers: [Reader]
  private let turn = Atomic(0)
  /// Whether the connections were closed for good.
  let isSuperseded = Atomic(false)
  /// Time of the last read, in nanoseconds of the monotonic clock, or 0 before the first read.
  private let lastRead = Atomic<UInt64>(0)
  /// Number of connections, and so of threads that read at the same time.
  ///
  /// Each connection has a page cache of its own, of at most 2 MB.
  private static let connectionCount = 2

  /// A pinned connection, which one thread uses at a time.
  private final class Reader: Sendable {
    let connection: Mutex<State>

    init(_ connection: sending PinnedConnection) { self.connection = Mutex(.pinned(connection)) }
  }

  private enum State {
    case pinned(PinnedConnection)
    /// The store is suspended, and holds no connection.
    case suspended
    case superseded

    /// Returns the result of a read, or `nil` if there is no connection.
    func read<Output: Sendable>(
      _ body: @Sendable (PinnedConnection) throws(RepositoryError) -> Output
    ) throws(RepositoryError) -> Output? {
      if case .pinned(let connection) = self { try body(connection) } else { nil }
    }
  }

  /// Opens connections, whose read transactions begin at the newest commit of the database.
  ///
  /// No commit may happen during the call.
  /// - Parameter commit: Number of the newest commit.
  init(path: String, commit: Revision, indexes: [StoredIndexID: Int64]) throws(RepositoryError) {
    (self.path, self.commit, self.indexes) = (path, commit, indexes)
    var readers: [Reader] = []
    let first = try PinnedConnection(path, indexes)
    collections = Set(try first.collections())
    readers.append(Reader(first))
    for _ in 1..<Self.connectionCount { readers.append(Reader(try PinnedConnection(path, indexes))) }
    self.readers = readers
  }

  func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] {
    guard collections.contains(collection) else { return keys.map { _ in nil } }
    return try read { connection throws(RepositoryError) in
      try keys.map { key throws(RepositoryError) in try connection.record(key, of: collection) }
    }
  }

  func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
    guard collections.contains(collection) else { return [] }
    return try read { connection throws(RepositoryError) in try connection.records(of: collection, after: key, limit: limit) }
  }

  func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] {
    try read { connection throws(RepositoryError) in try connection.boundaries(of: index) }
  }

  func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    try read { connection throws(RepositoryError) in try connection.keys(of: index, from: lower, below: upper) }
  }

  func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    try read { connection throws(RepositoryError) in try connection.keyCount(of: index, from: lower, below: upper) }
  }

  private func read<Output: Sendable>(
    _ body: @Sendable (PinnedConnection) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    lastRead.store(DispatchTime.now().uptimeNanoseconds, ordering: .relaxed)
    for reader in readers {
      if let output = try reader.connection.withLockIfAvailable({ state throws(RepositoryError) in try state.read(body) }) {
        if let output { return output }
        throw refusal(of: reader)
      }
    }
    // All connections are in use, so this thread waits for one of them, in turn, for the time of one read.
    let reader = readers[Int(UInt(bitPattern: turn.wrappingAdd(1, ordering: .relaxed).oldValue) % UInt(readers.count))]
    if let output = try reader.connection.withLock({ state throws(RepositoryError) in try state.read(body) }) { return output }
    throw refusal(of: reader)
  }

  /// Returns the error for a read without a connection.
  private func refusal(of reader: Reader) -> RepositoryError {
    if reader.connection.withLock({ if case .suspended = $0 { true } else { false } }) {
      return RepositoryError(.suspended, "the store is suspended; call resume(), and try again", file: path)
    }
    return RepositoryError(.superseded, "the database has the records of a newer commit than \(commit); take a new snapshot", file: path)
  }

  /// Whether the base was read within the last second, so that a walk over its records is probably under way.
  var isBeingRead: Bool {
    let last = lastRead.load(ordering: .relaxed)
    return last > 0 && DispatchTime.now().uptimeNanoseconds < last + 1_000_000_000
  }

  // MARK: Pinning

  /// Begins the read transactions anew.
  ///
  /// Call `pinAgain(keeping:)` only while the newest commit of the database is ``commit``.
  /// - Parameter current: The complete indexes in the database, since an index may have been dropped without a commit.
  func pinAgain(keeping current: [StoredIndexID: Int64]) throws(RepositoryError) {
    for reader in readers {
      try reader.connection.withLock { state throws(RepositoryError) in
        guard case .pinned(let connection) = state else { return }
        do throws(RepositoryError) { try connection.pinAgain(keeping: current) } catch {
          // A connection without a read transaction would read the records of later commits.
          state = .superseded
          isSuperseded.store(true, ordering: .relaxed)
          throw error
        }
      }
    }
  }

  /// Closes the connections, after which every read throws `.superseded`.
  func supersede() {
    isSuperseded.store(true, ordering: .relaxed)
    for reader in readers { reader.connection.withLock { $0 = .superseded } }
  }

  /// Closes the connections, after which every read throws `.suspended` until ``resume()``.
  func suspend() { for reader in readers { reader.connection.withLock { if case .pinned = $0 { $0 = .suspended } } } }

  /// Opens the connections again.
  ///
  /// Call `resume(keeping:)` only if the database is unchanged since ``suspend()``.
  func resume(keeping current: [StoredIndexID: Int64]) throws(RepositoryError) {
    let indexes = indexes.filter { current[$0.key] == $0.value }
    for reader in readers {
      try reader.connection.withLock { state throws(RepositoryError) in
        if case .suspended = state { state = .pinned(try PinnedConnection(path, indexes)) }
      }
    }
  }
}

/// A connection with an open read transaction, and the statements that read records in it.
private final class PinnedConnection {
  private let connection: SQLiteConnection
  /// Statements by their SQL, and by the name of a collection the one that reads a record, whose SQL takes long to make.
  private var statements: [String: SQLiteStatement] = [:]
  /// Complete indexes in the read transaction, with the numbers of their tables.
  private var indexes: [StoredIndexID: Int64]
  /// Length of the values after which a block of records ends.
  private static let blockSize = 1 << 20

  init(_ path: String, _ indexes: [StoredIndexID: Int64]) throws(RepositoryError) {
    self.indexes = indexes
    guard let connection = try SQLiteConnection(path: path, .readOnly) else {
      throw RepositoryError(.dataMissing, "the database was removed while the store was open: put it back, and open it again", file: path)
    }
    // The connection must leave the write-ahead log as it is, even if it is the last one.
    connection.keepLogOnClose()
    self.connection = connection
    try pin()
  }

  private func pin() throws(RepositoryError) {
    try connection.execute("BEGIN", while: .reading)
    // SQLite begins the read transaction at the first read, and not at BEGIN.
    guard try connection.number("SELECT count(*) FROM \(SQLiteLayout.store)") == 1 else {
      throw connection.damaged("expected one row in larder_store, found another number")
    }
  }

  func pinAgain(keeping current: [StoredIndexID: Int64]) throws(RepositoryError) {
    // After a read of a damaged page, a COMMIT would throw the error of the damage again.
    try connection.execute("ROLLBACK", while: .reading)
    try pin()
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

/// The bases of an open store that are still in use, and the bound on the log that the older ones of them keep.
///
/// Every member is used under the mutex of the backend.
final class SQLiteBases {
  private struct Live { weak var base: SQLiteBase? }
  private var live: [Live] = []
  /// Length of the write-ahead log, in pages, up to which no older base is superseded: 16 MB at a page size of 4 KiB.
  static let logLimit = 4 * SQLiteConnection.checkpointPages
  /// Largest number of bases in use, each of which has two connections.
  private static let limit = 8

  /// The base that was made last, which the store reads.
  private weak var newest: SQLiteBase?
  /// Length of the write-ahead log, in pages, when the newest base was made.
  private var lengthAtNewest = 0
  /// Whether a long log, or a log on a full disk, cannot be emptied because the newest base is older than the newest commit.
  private var isInTheWay = false

  /// Adds a base of the newest commit.
  func add(_ base: SQLiteBase, at logLength: Int) {
    live.removeAll { $0.base?.isSuperseded.load(ordering: .relaxed) ?? true }
    if live.count >= Self.limit { live.removeFirst().base?.supersede() }
    live.append(Live(base: base))
    (newest, lengthAtNewest, isInTheWay) = (base, logLength, false)
  }

  private var bases: [SQLiteBase] { live.compactMap(\.base).filter { !$0.isSuperseded.load(ordering: .relaxed) } }

  /// Length of the write-ahead log, in pages, that a checkpoint has left, until the next commit shows the length again.
  var leftLength = 0

  /// Whether the store should take a newer base: the newest one was lost to a failure, or a newer one would let the log be emptied.
  ///
  /// While an old snapshot keeps the log, a newer base is worth its connections only after the log has grown again.
  func wantNewer(at logLength: Int) -> Bool {
    if isInTheWay || newest?.isSuperseded.load(ordering: .relaxed) == true { return true }
    let step = SQLiteConnection.checkpointPages
    return logLength >= max(step, lengthAtNewest < step ? 0 : lengthAtNewest + step) && areUsed
  }

  /// Notes that the whole log was copied, so that the next commit begins it anew unless another program reads it.
  func noteEmptyLog() { (lengthAtNewest, leftLength) = (0, 0) }

  /// Notes that the log must be emptied, which only a base of the newest commit allows.
  ///
  /// While another base is in use, a newer one would not help.
  func noteInTheWay() { isInTheWay = bases.count == 1 }

  /// Whether a base is in use.
  var areUsed: Bool { !bases.isEmpty }

  /// Whether a base is in use that is older than a commit.
  func areOlder(than commit: UInt64) -> Bool { bases.contains { $0.commit.number != commit } }

  /// Supersedes every base that is older than the newest one, which the store reads.
  ///
  /// - Parameter spares: True to spare a base that is being read, so that a long walk beside many writes can end.
  func supersedeOld(sparingReads spares: Bool) {
    let newest = bases.map(\.commit).max()
    for base in bases where base.commit != newest && !(spares && base.isBeingRead) { base.supersede() }
  }

  func supersedeAll() {
    for base in bases { base.supersede() }
    live = []
  }

  /// Begins the read transactions of all bases anew, which must all be of the newest commit.
  func pinAgain(keeping indexes: [StoredIndexID: Int64]) throws(RepositoryError) {
    for base in bases { try base.pinAgain(keeping: indexes) }
  }

  /// Closes the connections of the bases of a commit, and supersedes the older ones.
  func suspend(at commit: UInt64) {
    for base in bases { if base.commit.number == commit { base.suspend() } else { base.supersede() } }
  }

  /// Opens the connections again that ``suspend(at:)`` has closed.
  ///
  /// If that fails, the bases are superseded, and the store takes a new one before its next commit.
  func resume(keeping indexes: [StoredIndexID: Int64]) {
    for base in bases { do throws(RepositoryError) { try base.resume(keeping: indexes) } catch { base.supersede() } }
  }
}
