internal import Foundation
internal import Larder

/// The number and the size of each collection's records by schema version, which the table `larder_collections` holds.
///
/// With the summary, a store whose records stay in the database opens without reading them. Only a store that was opened without its
/// records keeps the table up to date, in the commits of the records. Every other writer empties the table with its first commit. A version
/// of Larder that does not know the table leaves it as it is, and its next commit has another number than the rows of the table. Processes
/// that share a store compare that number before each commit, and read the rows again that another process has changed.
struct SQLiteSummary {
  private struct Address: Hashable {
    let collection: String
    let version: Int
  }

  private struct Count {
    var records: Int64 = 0
    var bytes: Int64 = 0
    /// Number of the newest commit that has changed a record of this collection and version.
    var commit: UInt64 = 0
  }

  private var counts: [Address: Count] = [:]
  private var changed: Set<Address> = []
  /// Whether the table exists and has the rows of all counts that are not in `changed`.
  private var isStored = false
  /// Whether a deletion has shown that the stored counts were wrong, so that the table must have no rows.
  private var isWrong = false

  static let table = "larder_collections"
  static let createTable = """
    CREATE TABLE larder_collections (name TEXT NOT NULL, version INTEGER NOT NULL, records INTEGER NOT NULL, bytes INTEGER NOT NULL, \
    commit_number INTEGER NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (name, version)) WITHOUT ROWID
    """
  private static let upsert = """
    INSERT INTO larder_collections VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (name, version) \
    DO UPDATE SET records = ?3, bytes = ?4, commit_number = ?5, crc = ?6
    """

  /// Makes the summary of an empty store.
  init() {}

  /// Reads the summary, or returns `nil` if the table is missing or has a wrong checksum, or its counts cannot be those of the store.
  ///
  /// - Parameters:
  ///   - row: The row of `larder_store`, which must be that of the newest commit.
  ///   - collections: Names of the collections that have a table.
  private init?(
    on connection: SQLiteConnection, of row: SQLiteStoreRow, and collections: [String]
  ) throws(RepositoryError) {
    guard try Self.exists(on: connection) else { return nil }
    // A hostile file may have any numbers under a right checksum. No database has more bytes of records than its pages have, and with this
    // limit no later addition can overflow.
    let size = (try connection.number("PRAGMA page_count") ?? 0) * (try connection.number("PRAGMA page_size") ?? 0)
    let limit = min(size, Int64(Int.max / 2))
    var total = Count()
    let statement = try connection.prepare("SELECT name, version, records, bytes, commit_number, crc FROM \(Self.table)")
    while try statement.step() {
      guard let version = Int(exactly: try statement.integer(1)) else { return nil }
      let address = Address(collection: try statement.text(0), version: version)
      let count = Count(
        records: try statement.integer(2), bytes: try statement.integer(3), commit: UInt64(bitPattern: try statement.integer(4)))
      guard try statement.integer(5) == Self.checksum(address, count), 0...limit ~= count.records, 0...limit ~= count.bytes else {
        return nil
      }
      total.records += count.records
      total.bytes += count.bytes
      total.commit = max(total.commit, count.commit)
      guard total.records <= limit, total.bytes <= limit else { return nil }
      counts[address] = count
    }
    guard total.commit == row.commit, total.records == Int64(row.records) else { return nil }
    // A collection whose records were not counted would look empty.
    let counted = Set(counts.filter { $0.value.records > 0 }.map(\.key.collection))
    for name in collections {
      guard try Self.hasRecord(in: name, on: connection) == counted.contains(name) else { return nil }
    }
    guard counted.isSubset(of: collections) else { return nil }
    isStored = true
  }

  /// Reads the summary as `init(on:of:and:)` does, or returns `nil` also if a row of the table cannot be read.
  static func found(
    on connection: SQLiteConnection, of row: SQLiteStoreRow, and collections: [String]
  ) throws(RepositoryError) -> SQLiteSummary? {
    do throws(RepositoryError) { return try SQLiteSummary(on: connection, of: row, and: collections) } catch {
      guard error.code == .corrupted else { throw error }
      return nil
    }
  }

  /// Whether a collection has a record.
  private static func hasRecord(in collection: String, on connection: SQLiteConnection) throws(RepositoryError) -> Bool {
    do throws(RepositoryError) {
      return try connection.number("SELECT 1 FROM \(SQLiteLayout.quoted(collection)) LIMIT 1") != nil
    } catch {
      // The other records of a damaged collection can be read, so its damage must not keep the store from being opened.
      guard error.code == .corrupted else { throw error }
      return true
    }
  }

  /// Whether the database has a table with the name and the columns of the summary.
  static func exists(on connection: SQLiteConnection) throws(RepositoryError) -> Bool {
    let statement = try connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql = ?2")
    try statement.bind(table, at: 1)
    try statement.bind(createTable, at: 2)
    return try statement.number() != nil
  }

  private static func checksum(_ address: Address, _ count: Count) -> Int64 {
    let text = "\(address.collection)|\(address.version)|\(count.records)|\(count.bytes)|\(count.commit)"
    return Int64(RecordKey(text).withBytes { CRC32C.checksum($0) })
  }

  // MARK: Changes

  /// Counts a record that was inserted, or that has replaced another one.
  mutating func add(_ record: StoredRecord, _ value: Data) {
    change(record.collection, record.schemaVersion) { count in
      count.records += 1
      count.bytes += Int64(value.count)
    }
  }

  /// Subtracts a record that was deleted or replaced.
  ///
  /// A hostile file may have counted too few records of a collection. As soon as the count is less than zero, no row of the table can be
  /// trusted, and ``store(commit:on:)`` deletes all of them.
  mutating func subtract(_ stored: SQLiteTable.Stored, of collection: String) {
    var isBelowZero = false
    change(collection, stored.schemaVersion) { count in
      count.records -= 1
      count.bytes -= Int64(stored.byteCount)
      if count.records < 0 || count.bytes < 0 { isBelowZero = true }
    }
    if isBelowZero { isWrong = true }
  }

  /// Marks a collection as changed by a commit that has changed no record.
  ///
  /// A commit may write tombstones only. The newest commit number of the table must be the number of that commit, too.
  mutating func touchIfUnchanged(_ collection: String) { if changed.isEmpty { change(collection, 0) { _ in } } }

  private mutating func change(_ collection: String, _ version: Int, _ body: (inout Count) -> Void) {
    let address = Address(collection: collection, version: version)
    body(&counts[address, default: Count()])
    changed.insert(address)
  }

  /// Writes the changed counts as those of a commit, within the transaction of the commit.
  mutating func store(commit: UInt64, on connection: SQLiteConnection) throws(RepositoryError) {
    if isWrong {
      // Without rows, the next opening reads every record and makes the counts anew.
      if isStored { try connection.execute("DELETE FROM \(Self.table)") }
      isStored = false
      return
    }
    if !isStored {
      if try Self.exists(on: connection) {
        try connection.execute("DELETE FROM \(Self.table)")
      } else {
        try connection.execute(Self.createTable)
      }
      changed = Set(counts.keys)
      // A store without records needs a row all the same, which holds the number of the commit.
      touchIfUnchanged("")
    }
    let statement = try connection.prepare(Self.upsert)
    for address in changed {
      counts[address]?.commit = commit
      let count = counts[address] ?? Count()
      try statement.bind(address.collection, at: 1)
      try statement.bind(Int64(address.version), at: 2)
      try statement.bind(count.records, at: 3)
      try statement.bind(count.bytes, at: 4)
      try statement.bind(Int64(bitPattern: commit), at: 5)
      try statement.bind(Self.checksum(address, count), at: 6)
      try statement.run()
    }
    changed = []
    isStored = true
  }

  /// Whether the table must be written although no commit has changed a record.
  var isDue: Bool { !isStored }

  /// The summaries of the collections that have records.
  var collections: [CollectionSummary] {
    Dictionary(grouping: counts.filter { $0.value.records > 0 }, by: \.key.collection).map { name, counts in
      let versions = counts.map(\.key.version)
      return CollectionSummary(
        name: name, recordCount: Int(clamping: counts.reduce(0) { $0 + $1.value.records }),
        byteCount: Int(clamping: counts.reduce(0) { $0 + $1.value.bytes }),
        schemaVersions: (versions.min() ?? 1)...(versions.max() ?? 1))
    }
  }
}
