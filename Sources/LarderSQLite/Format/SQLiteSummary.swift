internal import Foundation
internal import Larder

/// The number and the size of each collection's records by schema version, which the table `larder_collections` holds.
///
/// With the summary, a store whose records stay in the database opens without reading them. Only an exclusive store that was opened without
/// its records keeps the table up to date, in the commits of the records. Every other writer empties the table with its first commit. A
/// version of Larder that does not know the table leaves it as it is, and its next commit has another number than the rows of the table.
struct SQLiteSummary {
  private struct Address: Hashable {
    let collection: String
    let version: Int
  }

  private struct Count {
    var records = 0
    var bytes = 0
    /// Number of the newest commit that has changed a record of this collection and version.
    var commit: UInt64 = 0
  }

  private var counts: [Address: Count] = [:]
  private var changed: Set<Address> = []
  /// Whether the table exists and has the rows of all counts that are not in `changed`.
  private var isStored = false

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

  /// Reads the summary, or returns `nil` if the table is missing, damaged, or of another commit than the row of `larder_store`.
  ///
  /// `row` must be the row of the newest commit.
  init?(on connection: SQLiteConnection, of row: SQLiteStoreRow) throws(RepositoryError) {
    guard try Self.exists(on: connection) else { return nil }
    let statement = try connection.prepare("SELECT name, version, records, bytes, commit_number, crc FROM \(Self.table)")
    while try statement.step() {
      let address = Address(collection: try statement.text(0), version: Int(clamping: try statement.integer(1)))
      let count = Count(
        records: Int(clamping: try statement.integer(2)), bytes: Int(clamping: try statement.integer(3)),
        commit: UInt64(bitPattern: try statement.integer(4)))
      guard try statement.integer(5) == Self.checksum(address, count), count.records >= 0, count.bytes >= 0 else { return nil }
      counts[address] = count
    }
    // A hostile file may have any numbers under a right checksum.
    guard counts.values.map(\.commit).max() ?? 0 == row.commit, Self.sum(counts.values.map(\.records)) == row.records,
      Self.sum(counts.values.map(\.bytes)) != nil
    else { return nil }
    isStored = true
  }

  /// Returns the sum of numbers, or `nil` if it does not fit.
  private static func sum(_ numbers: [Int]) -> Int? {
    var sum = 0
    for number in numbers {
      let (next, isTooLarge) = sum.addingReportingOverflow(number)
      if isTooLarge { return nil }
      sum = next
    }
    return sum
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
      count.bytes += value.count
    }
  }

  /// Subtracts a record that was deleted or replaced.
  mutating func subtract(_ stored: SQLiteTable.Stored, of collection: String) {
    change(collection, stored.schemaVersion) { count in
      count.records -= 1
      count.bytes -= stored.byteCount
    }
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
      try statement.bind(Int64(count.records), at: 3)
      try statement.bind(Int64(count.bytes), at: 4)
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
        name: name, recordCount: counts.reduce(0) { $0 + $1.value.records }, byteCount: counts.reduce(0) { $0 + $1.value.bytes },
        schemaVersions: (versions.min() ?? 1)...(versions.max() ?? 1))
    }
  }
}
