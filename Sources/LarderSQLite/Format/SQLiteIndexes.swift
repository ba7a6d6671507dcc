internal import Foundation
internal import Larder

/// The indexes of records that the database holds: rows of the table `larder_indexes`, and one table of keys for each index.
///
/// Only a writer that keeps the summary of the collections also keeps the indexes. The commits of every other writer change records and no
/// keys, so such a writer drops all indexes with its first commit.
///
/// A commit drops an index by deleting its row. The table of keys has no row from then on, and ``SQLiteWriter/dropLeftovers()`` drops it
/// outside of commits, because SQLite reads every page of a table that it drops.
struct SQLiteIndexes {
  /// The place and the state of one index.
  struct Entry {
    /// Number in the name of the table of keys.
    let number: Int64
    var isComplete = false
    /// Last key of the newest ``SQLiteWriter/extendIndex(_:by:isFirst:)``.
    var lastKey: Data?
  }

  private(set) var entries: [StoredIndexID: Entry] = [:]
  /// Whether `larder_indexes` may have rows of indexes that are not in `entries`, and this writer has not deleted them yet.
  private(set) var mayHaveOtherRows = true
  /// Whether a row or a page of `larder_indexes` is damaged.
  ///
  /// The next transaction that changes an index sets the table aside.
  private(set) var isTableDamaged = false
  /// Names of leftover tables that stay, because the file is damaged.
  private var damagedLeftovers: Set<String> = []
  /// Damage that the reading of the rows has found, and that the next commit removes.
  private(set) var damage: RepositoryError?
  /// Whether the database may have tables of indexes without a row, and this writer has not dropped them yet.
  var mayHaveLeftovers = true

  static let table = "larder_indexes"
  static let createTable = """
    CREATE TABLE larder_indexes (number INTEGER PRIMARY KEY, collection TEXT NOT NULL, name TEXT NOT NULL, is_complete INTEGER NOT NULL, \
    boundaries BLOB NOT NULL, crc INTEGER NOT NULL)
    """
  private static let prefix = "larder_index_"
  /// Largest number of an index, since a hostile file may have any number.
  private static let largestNumber = Int64(Int32.max)

  /// Name of the table with the keys of an index, which needs no quotation marks in SQL.
  static func keyTable(_ number: Int64) -> String { "\(prefix)\(number)" }
  static func createKeyTable(_ number: Int64) -> String {
    "CREATE TABLE \(keyTable(number)) (key BLOB PRIMARY KEY NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID"
  }

  /// Makes the state of a database whose indexes must all be dropped.
  init() {}

  /// Reads the complete indexes.
  ///
  /// The caller has found the summary of the collections to be that of the newest commit. An index whose row or table differs from this
  /// format is left out, and dropped later.
  init(on connection: SQLiteConnection) throws(RepositoryError) {
    let tables = try Self.keyTables(on: connection)
    let sql = try Self.tableStatement(on: connection)
    mayHaveOtherRows = false
    if sql == Self.createTable {
      do throws(RepositoryError) { try readRows(on: connection, tables) } catch {
        guard error.code == .corrupted else { throw error }
        entries = [:]
        damage = connection.damagedIndexes("whole pages of \(Self.table)", "damage", error)
        noteDamagedTable()
      }
    }
    mayHaveLeftovers = tables.count != entries.count || sql != nil && sql != Self.createTable
  }

  private mutating func readRows(on connection: SQLiteConnection, _ tables: [Int64: String]) throws(RepositoryError) {
    let statement = try connection.prepare("SELECT number, collection, name, is_complete, boundaries, crc FROM \(Self.table)")
    while try statement.step() {
      let row = try Row(statement)
      guard let row, row.isWhole, row.isComplete, entries[row.index] == nil, (1...Self.largestNumber).contains(row.number),
        tables[row.number] == Self.createKeyTable(row.number)
      else {
        if row?.isWhole != true { damage = connection.damagedIndexes("a row of \(Self.table) that fits its checksum", "another row") }
        mayHaveOtherRows = true
        continue
      }
      entries[row.index] = Entry(number: row.number, isComplete: true)
    }
  }

  /// Returns the CREATE statement of the table `larder_indexes`, or `nil` if there is no such table.
  private static func tableStatement(on connection: SQLiteConnection) throws(RepositoryError) -> String? {
    try connection.text("SELECT coalesce(sql, '') FROM sqlite_schema WHERE type = 'table' AND name = '\(table)'")
  }

  /// Returns the CREATE statements of the tables with the name of a table of keys.
  static func keyTables(on connection: SQLiteConnection) throws(RepositoryError) -> [Int64: String] {
    let statement = try connection.prepare(
      "SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE type = 'table' AND name GLOB '\(prefix)*'")
    var tables: [Int64: String] = [:]
    while try statement.step() {
      let (name, sql) = (try statement.text(0), try statement.text(1))
      // SQLite does not drop a virtual table without its module, and each commit would fail.
      guard let number = Int64(name.dropFirst(prefix.count)), name == keyTable(number), sql.hasPrefix("CREATE TABLE ") else { continue }
      tables[number] = sql
    }
    return tables
  }

  // MARK: Changes, within a transaction

  /// The complete indexes, with the numbers of their tables.
  var complete: [StoredIndexID: Int64] { entries.filter(\.value.isComplete).mapValues(\.number) }

  /// Deletes the row of every index that is not in `entries`: of another commit, damaged, or left incomplete by an earlier process.
  mutating func deleteOtherRows(on connection: SQLiteConnection) throws(RepositoryError) {
    guard mayHaveOtherRows else { return }
    // No version uses the rows of a table with other columns beside the counts that this writer stores or deletes. In a shared store,
    // another process may have set the damaged table aside.
    if try Self.tableStatement(on: connection) == Self.createTable {
      // After a read of a damaged page, SQLite does not commit, so a table that is known to be damaged is not read.
      if isTableDamaged { return try setTableAside(on: connection) }
      let numbers = entries.values.map { String($0.number) }.joined(separator: ", ")
      try changeRows(on: connection) { () throws(RepositoryError) in
        try connection.execute("DELETE FROM \(Self.table) WHERE number NOT IN (\(numbers))")
      }
    }
    (mayHaveOtherRows, mayHaveLeftovers, isTableDamaged) = (false, true, false)
  }

  /// Runs a statement that deletes or replaces a row of `larder_indexes`, unless a row is damaged.
  ///
  /// - Throws: `.corrupted` for damage, which is noted, so that the next attempt sets the table aside.
  private mutating func changeRows(
    on connection: SQLiteConnection, _ body: () throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    do throws(RepositoryError) {
      // SQLite frees the pages to which a deleted row leads, and in a damaged row they may be pages of records.
      let statement = try connection.prepare("SELECT number, collection, name, is_complete, boundaries, crc FROM \(Self.table)")
      while try statement.step() {
        let row = try Row(statement)
        if row?.isWhole != true { throw connection.damagedIndexes("rows of \(Self.table) that fit their checksums", "others") }
      }
      try body()
    } catch {
      if error.code == .corrupted { noteDamagedTable() }
      throw error
    }
  }

  /// Notes that a row or a page of `larder_indexes` is damaged.
  mutating func noteDamagedTable() { (isTableDamaged, mayHaveOtherRows) = (true, true) }

  /// Renames a damaged `larder_indexes` to the name of a table of keys, and drops all indexes with it.
  ///
  /// SQLite can neither delete the rows of a damaged page nor drop the table. The renamed table stays as a leftover.
  private mutating func setTableAside(on connection: SQLiteConnection) throws(RepositoryError) {
    let name = Self.keyTable(Self.freeNumber(among: try SQLiteWriter.objectNames(on: connection)))
    // Otherwise SQLite resolves the views and triggers of other programs, which may need a module that this connection does not have.
    try connection.execute("PRAGMA legacy_alter_table = ON")
    try connection.execute("ALTER TABLE \(Self.table) RENAME TO \(name)")
    try connection.execute("PRAGMA legacy_alter_table = OFF")
    noteDamagedLeftover(name)
    (entries, mayHaveOtherRows, mayHaveLeftovers, isTableDamaged) = ([:], false, true, false)
  }

  /// Returns the least number whose table of keys does not exist.
  ///
  /// A leftover table, or a view or an index of another program, may have the name of a table of keys.
  private static func freeNumber(among names: Set<String>) -> Int64 {
    var number: Int64 = 1
    while names.contains(keyTable(number)) { number += 1 }
    return number
  }

  /// Notes that a table of ``leftovers(on:)`` stays, because the file is damaged.
  mutating func noteDamagedLeftover(_ table: String) { damagedLeftovers.insert(table) }

  /// Reads the names of the tables that hold no index: tables of keys without a row, and a `larder_indexes` with other columns.
  ///
  /// Tables that stay because the file is damaged are left out.
  func leftovers(on connection: SQLiteConnection) throws(RepositoryError) -> [String] {
    let known = Set(entries.values.map(\.number))
    let tables = try Self.keyTables(on: connection).keys.filter { !known.contains($0) }.map(Self.keyTable)
      .filter { !damagedLeftovers.contains($0) }
    guard let sql = try Self.tableStatement(on: connection), sql != Self.createTable, sql.hasPrefix("CREATE TABLE ") else { return tables }
    return tables + [Self.table]
  }

  /// Whether `larder_indexes` has a row for each entry, and no other rows.
  func areThoseOfRows(on connection: SQLiteConnection) throws(RepositoryError) -> Bool {
    guard try Self.tableStatement(on: connection) == Self.createTable else { return entries.isEmpty }
    do throws(RepositoryError) {
      let statement = try connection.prepare("SELECT number FROM \(Self.table)")
      var numbers: Set<Int64> = []
      while try statement.step() { numbers.insert(try statement.integer(0)) }
      return numbers == Set(entries.values.map(\.number))
    } catch {
      guard error.code == .corrupted else { throw error }
      return false
    }
  }

  /// Creates the empty table of an index that is to be built, and returns the table's number.
  mutating func create(_ index: StoredIndexID, on connection: SQLiteConnection) throws(RepositoryError) -> Int64 {
    let names = try SQLiteWriter.objectNames(on: connection)
    if try Self.tableStatement(on: connection) != Self.createTable {
      guard !names.contains(Self.table) else {
        throw RepositoryError(
          .unsupported, "expected the name larder_indexes to be free, found a view or index with it: drop that one", file: connection.path)
      }
      try connection.execute(Self.createTable)
    }
    let number = Self.freeNumber(among: names)
    try connection.execute(Self.createKeyTable(number))
    try store(Row(number: number, index: index, isComplete: false, boundaries: Data()), on: connection)
    entries[index] = Entry(number: number)
    return number
  }

  /// Stores the boundaries of an index, which is complete from then on.
  mutating func complete(_ index: StoredIndexID, _ boundaries: [Data], on connection: SQLiteConnection) throws(RepositoryError) {
    guard let entry = entries[index] else { throw .storesNoIndexes(connection.path) }
    let bytes = Self.encoded(boundaries)
    try store(Row(number: entry.number, index: index, isComplete: true, boundaries: bytes), on: connection)
    entries[index] = Entry(number: entry.number, isComplete: true)
  }

  /// Deletes the row of an index, whose table stays as a leftover.
  mutating func drop(_ index: StoredIndexID, on connection: SQLiteConnection) throws(RepositoryError) {
    guard let entry = entries.removeValue(forKey: index) else { return }
    try changeRows(on: connection) { () throws(RepositoryError) in
      try connection.execute("DELETE FROM \(Self.table) WHERE number = \(entry.number)")
    }
    mayHaveLeftovers = true
  }

  /// Notes the last key that was added to an index under construction.
  mutating func note(lastKey: Data?, of index: StoredIndexID) { if let lastKey { entries[index]?.lastKey = lastKey } }

  private mutating func store(_ row: Row, on connection: SQLiteConnection) throws(RepositoryError) {
    try changeRows(on: connection) { () throws(RepositoryError) in try Self.store(row, on: connection) }
  }

  private static func store(_ row: Row, on connection: SQLiteConnection) throws(RepositoryError) {
    let statement = try connection.prepare("INSERT OR REPLACE INTO \(table) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
    try statement.bind(row.number, at: 1)
    try statement.bind(row.index.collection, at: 2)
    try statement.bind(row.index.name, at: 3)
    try statement.bind(row.isComplete ? 1 : 0, at: 4)
    try statement.bindBlob(row.boundaries, at: 5)
    try statement.bind(row.checksum, at: 6)
    try statement.run()
  }

  // MARK: Keys

  /// Returns the key in the current row of a statement for `key, crc`, or throws `.corrupted` for a row that was not written like this.
  ///
  /// - Parameter last: The key of the row before, or `nil` to compare no order. In a damaged table, SQLite may find keys out of order
  ///   without an error.
  static func key(
    _ statement: SQLiteStatement, after last: Data?, of index: StoredIndexID, on connection: SQLiteConnection
  ) throws(RepositoryError) -> Data {
    let row = statement.row
    let bytes = row.bytes(0)
    guard row.isBlob(0), row.integer(1) == Int64(CRC32C.checksum(bytes)) else {
      throw connection.damagedIndex(index, "keys that fit their checksums", "another key")
    }
    // The bytes are copied, because SQLite's are valid only until the next step.
    let key = Data(bytes)
    if let last, !last.precedes(key) { throw connection.damagedIndex(index, "ascending keys", "others") }
    return key
  }

  /// Moves to the next row of an index, and names the index in the error for a damaged page.
  static func step(
    _ statement: SQLiteStatement, in index: StoredIndexID, on connection: SQLiteConnection
  ) throws(RepositoryError) -> Bool {
    do throws(RepositoryError) { return try statement.step() } catch {
      throw error.code == .corrupted ? connection.damagedIndex(index, "whole pages", "damage", error) : error
    }
  }

  /// Reads all keys of a complete index in the order of its table, and throws `.corrupted` unless they ascend, fit their checksums and are
  /// as many as `count`.
  static func check(
    _ index: StoredIndexID, _ number: Int64, expecting count: Int64, on connection: SQLiteConnection
  ) throws(RepositoryError) {
    let statement = try connection.prepare("SELECT key, crc FROM \(keyTable(number))")
    var (found, last): (Int64, Data?) = (0, nil)
    while try step(statement, in: index, on: connection) {
      last = try key(statement, after: last, of: index, on: connection)
      found += 1
    }
    if found != count { throw connection.damagedIndex(index, "\(count) keys", "\(found)") }
  }

  // MARK: Boundaries

  /// Reads the boundaries of a complete index, or throws `.corrupted`.
  static func boundaries(
    of index: StoredIndexID, _ number: Int64, _ statement: SQLiteStatement, on connection: SQLiteConnection
  ) throws(RepositoryError) -> [Data] {
    try statement.bind(number, at: 1)
    var row: Row?
    do throws(RepositoryError) {
      row = try statement.step() ? try Row(statement) : nil
      try statement.reset()
    } catch {
      // A statement that stands on a row would keep a pinned connection from ending its transaction.
      do throws(RepositoryError) { try statement.reset() } catch {}
      throw error
    }
    guard let row, row.isWhole, row.isComplete, row.index == index, let boundaries = decoded(row.boundaries), isAscending(boundaries) else {
      throw connection.damagedIndex(index, "ascending boundaries that fit their checksum", "others")
    }
    return boundaries
  }

  /// The statement for ``boundaries(of:_:_:on:)``.
  static let selectRow = "SELECT number, collection, name, is_complete, boundaries, crc FROM \(table) WHERE number = ?1"

  /// Returns keys as one value: each length in four bytes, most significant byte first, and the bytes of the key.
  private static func encoded(_ keys: [Data]) -> Data {
    var bytes = Data()
    for key in keys {
      withUnsafeBytes(of: UInt32(clamping: key.count).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(key)
    }
    return bytes
  }

  /// Returns the keys of ``encoded(_:)``, or `nil` if a length does not fit the bytes.
  private static func decoded(_ bytes: Data) -> [Data]? {
    var (keys, position): ([Data], Int) = ([], bytes.startIndex)
    while position < bytes.endIndex {
      guard bytes.endIndex - position >= 4 else { return nil }
      let count = bytes[position..<position + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      position += 4
      guard let count = Int(exactly: count), count <= bytes.endIndex - position else { return nil }
      keys.append(Data(bytes[position..<position + count]))
      position += count
    }
    return keys
  }

  /// Whether each key comes after the one before by its bytes.
  static func isAscending(_ keys: [Data]) -> Bool { zip(keys, keys.dropFirst()).allSatisfy { $0.precedes($1) } }

  /// A row of the table `larder_indexes`.
  private struct Row {
    let number: Int64
    let index: StoredIndexID
    let isComplete: Bool
    let boundaries: Data
    private var storedChecksum: Int64?

    init(number: Int64, index: StoredIndexID, isComplete: Bool, boundaries: Data) {
      (self.number, self.index, self.isComplete, self.boundaries) = (number, index, isComplete, boundaries)
    }

    /// Reads the current row of a statement, or returns `nil` for a row with a column of another type.
    init?(_ statement: SQLiteStatement) throws(RepositoryError) {
      do throws(RepositoryError) {
        let index = StoredIndexID(collection: try statement.text(1), name: try statement.text(2))
        let isComplete = try statement.integer(3)
        guard (0...1).contains(isComplete) else { return nil }
        // The bytes are copied, because SQLite's are valid only until the next step.
        let boundaries = Data(try statement.blob(4))
        self.init(number: try statement.integer(0), index: index, isComplete: isComplete == 1, boundaries: boundaries)
        storedChecksum = try statement.integer(5)
      } catch {
        // After a failed read the index may be whole, and must not be dropped.
        guard error.code == .corrupted else { throw error }
        return nil
      }
    }

    /// Whether the stored checksum is that of the other columns.
    var isWhole: Bool { storedChecksum == checksum }

    var checksum: Int64 {
      var crc = CRC32C()
      let text = "\(number)|\(index.collection)|\(index.name)|\(isComplete ? 1 : 0)|"
      RecordKey(text).withBytes { crc.update($0) }
      boundaries.withUnsafeBytes { crc.update($0) }
      return Int64(crc.value)
    }
  }
}
