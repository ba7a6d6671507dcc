internal import Foundation
internal import Larder

extension SQLiteWriter {
  /// Writes a record or tombstone, and updates the counts and the digest in the row of `larder_store`.
  ///
  /// - Parameters:
  ///   - isNew: True if the store holds neither a record nor a tombstone with this address.
  ///   - carries: True if the written row carries half of the store's digest. After a row that carries the digest, the transaction must not
  ///     change the digest any more.
  func apply(_ record: StoredRecord, to next: inout SQLiteStoreRow, isNew: Bool, carries: Bool) throws(RepositoryError) {
    guard record.value != nil else { return try applyDeletion(record, to: &next, carries: carries) }
    let table = try table(record.collection)
    let crc = record.checksum
    // The digest is a sum over all rows, so the checksum of the replaced row must be subtracted.
    if !isNew, let old = try table.stored(record.address, measuring: summary != nil) {
      next.subtract(old.crc)
      summary?.subtract(old, of: record.collection)
    } else {
      next.records += 1
    }
    if let value = record.value { summary?.add(record, value) }
    next.add(crc)
    // A record that is saved after its deletion has no tombstone any more.
    if !isNew, next.tombstones > 0, let old = try tombstones.checksum(of: record.address) {
      try tombstones.delete(record.address)
      next.subtract(old)
      next.tombstones -= 1
    }
    try table.upsert(record, SQLiteChecksum(crc, digest: carries ? next.carriedDigest : 0))
  }

  private func applyDeletion(_ record: StoredRecord, to next: inout SQLiteStoreRow, carries: Bool) throws(RepositoryError) {
    // A tombstone needs no table of its collection. Without this check, a deletion in a collection whose name no table can have would not
    // be refused.
    guard SQLiteLayout.isCollectionName(record.collection) else { throw unusable(record.collection) }
    if collections.contains(record.collection) {
      let table = try table(record.collection)
      if let old = try table.stored(record.address, measuring: summary != nil) {
        try table.delete(record.address)
        next.subtract(old.crc)
        next.records -= 1
        summary?.subtract(old, of: record.collection)
      }
    }
    try bury(record, &next, carries: carries)
  }

  /// Writes the tombstone of a deleted record, and updates the counts and the digest in the row of `larder_store`.
  func bury(_ record: StoredRecord, _ next: inout SQLiteStoreRow, carries: Bool) throws(RepositoryError) {
    let crc = record.checksum
    // If the key already has a tombstone, the new one replaces it, so the old checksum must be subtracted from the digest.
    if let old = try tombstones.checksum(of: record.address) { next.subtract(old) } else { next.tombstones += 1 }
    next.add(crc)
    try tombstones.upsert(record, SQLiteChecksum(crc, digest: carries ? next.carriedDigest : 0))
  }

  /// Deletes the oldest tombstones, so that at most `limit` tombstones stay.
  func prune(keeping limit: Int, _ next: inout SQLiteStoreRow) throws(RepositoryError) {
    let newest = try connection.prepare("SELECT revision FROM larder_tombstones ORDER BY revision DESC LIMIT 1 OFFSET ?1")
    try newest.bind(Int64(limit), at: 1)
    guard let horizon = try newest.number() else { return }
    // All tombstones with the revision of the horizon (the newest revision of a deleted tombstone) are deleted, because `tombstones_since`
    // can only name whole commits.
    let statement = try connection.prepare("DELETE FROM larder_tombstones WHERE revision <= ?1 RETURNING crc")
    try statement.bind(horizon, at: 1)
    while try statement.step(while: .writing) {
      next.subtract(SQLiteChecksum(column: try statement.integer(0)).crc)
      next.tombstones -= 1
    }
    // A reader whose newest commit is older than the horizon must read all records again, because it may miss some of the deletions.
    next.tombstonesSince = UInt64(bitPattern: horizon)
  }

  // MARK: Tables

  /// Returns the table of a collection, and creates the table for the collection's first record.
  func table(_ name: String) throws(RepositoryError) -> SQLiteTable {
    if let table = tables[name] { return table }
    if !collections.contains(name) {
      guard SQLiteLayout.isCollectionName(name) else { throw unusable(name) }
      let names = try Self.objectNames(on: connection)
      // SQLite would refuse a taken name with SQLITE_ERROR, which this module reports as a damaged file.
      guard !names.contains(SQLiteLayout.folded(name)) else { throw taken(name) }
      try connection.execute(SQLiteLayout.createCollection(name))
      // In a shared store each table has an index by revision, because every process reads the newer rows of all tables before each commit.
      if sharing != nil, !names.contains(SQLiteLayout.folded(SQLiteLayout.revisionIndex(name))) {
        try connection.execute(SQLiteLayout.createRevisionIndex(name))
      }
      // A rollback removes the new table, and `rollBack()` then removes the names in `created` from the state in memory.
      created.append(name)
      collections.insert(name)
    }
    let table = try SQLiteTable(name, connection)
    tables[name] = table
    return table
  }

  /// Reads every name in the schema that the name of a new table could equal, in lower case.
  ///
  /// SQLite ignores the case of names, and its tables and indexes share one set of names.
  static func objectNames(on connection: SQLiteConnection) throws(RepositoryError) -> Set<String> {
    let statement = try connection.prepare("SELECT name FROM sqlite_schema")
    var names: Set<String> = []
    while try statement.step() { names.insert(SQLiteLayout.folded(try statement.text(0))) }
    return names
  }

  private func unusable(_ name: String) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected a collection name that can be a table, found \"\(name)\": use letters, digits, \"_\", \"-\" and \".\", and no reserved prefix",
      file: connection.path)
  }

  private func taken(_ name: String) -> RepositoryError {
    RepositoryError(
      .unsupported,
      "expected a name for the collection \"\(name)\" that the database has not, found it taken: by a collection that differs in case only, "
        + "or by a table, view or index of another program; use another name", file: connection.path)
  }
}

/// The prepared statements of one table: the table of a collection, or the tombstones of all collections.
///
/// The table of a collection and the table of tombstones have the same first four columns. The fifth column is the value in a collection's
/// table. In the table of tombstones the fifth column is the collection's name, which is part of the key.
final class SQLiteTable {
  /// The checksum of a stored record, with its schema version and length, or with zeros if these were not asked for.
  struct Stored {
    let crc: UInt32
    var schemaVersion = 0
    var byteCount = 0
  }

  private let selectOne: SQLiteStatement
  private let measureOne: SQLiteStatement?
  private let upsertOne: SQLiteStatement
  private let deleteOne: SQLiteStatement
  private let holdsTombstones: Bool

  /// Prepares the statements of an existing table.
  init(_ name: String, _ connection: SQLiteConnection) throws(RepositoryError) {
    holdsTombstones = name == SQLiteLayout.tombstones
    let table = SQLiteLayout.quoted(name)
    let key = holdsTombstones ? "id = ?1 AND collection = ?2" : "id = ?1"
    selectOne = try connection.prepare("SELECT crc FROM \(table) WHERE \(key)")
    measureOne =
      holdsTombstones ? nil : try connection.prepare("SELECT crc, version, length(CAST(value AS BLOB)) FROM \(table) WHERE \(key)")
    upsertOne = try connection.prepare(
      """
      INSERT INTO \(table) (\(SQLiteLayout.columns(of: name))) VALUES (?1, ?2, ?3, ?4, ?5) \
      ON CONFLICT (\(holdsTombstones ? "collection, id" : "id")) DO UPDATE SET revision = ?2, version = ?3, crc = ?4\
      \(holdsTombstones ? "" : ", value = ?5")
      """)
    deleteOne = try connection.prepare("DELETE FROM \(table) WHERE \(key)")
  }

  /// Returns the stored checksum of a record, or `nil` when the table does not hold the record.
  func checksum(of address: RecordAddress) throws(RepositoryError) -> UInt32? {
    try bind(address, to: selectOne)
    return try selectOne.number().map { SQLiteChecksum(column: $0).crc }
  }

  /// Returns the checksum of a stored record, or `nil` when the table does not hold the record.
  ///
  /// - Parameter isMeasured: True to read the schema version and the length of the value, too.
  func stored(_ address: RecordAddress, measuring isMeasured: Bool) throws(RepositoryError) -> Stored? {
    guard isMeasured, let measureOne else { return try checksum(of: address).map { Stored(crc: $0) } }
    try bind(address, to: measureOne)
    guard try measureOne.step() else { return nil }
    let row = measureOne.row
    let stored = Stored(
      crc: SQLiteChecksum(column: row.integer(0)).crc, schemaVersion: Int(clamping: row.integer(1)),
      byteCount: Int(clamping: row.integer(2)))
    try measureOne.reset()
    return stored
  }

  /// Inserts a record, or replaces the stored record with its key.
  func upsert(_ record: StoredRecord, _ checksum: SQLiteChecksum) throws(RepositoryError) {
    try upsertOne.bind(record.key, at: 1)
    try upsertOne.bind(Int64(bitPattern: record.revision.number), at: 2)
    try upsertOne.bind(Int64(record.schemaVersion), at: 3)
    try upsertOne.bind(checksum.column, at: 4)
    if let value = record.value, !holdsTombstones { try upsertOne.bind(value, at: 5) }
    if holdsTombstones { try upsertOne.bind(record.collection, at: 5) }
    try upsertOne.run()
  }

  func delete(_ address: RecordAddress) throws(RepositoryError) {
    try bind(address, to: deleteOne)
    try deleteOne.run()
  }

  func finalize() throws(RepositoryError) {
    for statement in [selectOne, upsertOne, deleteOne] { try statement.finalize() }
    try measureOne?.finalize()
  }

  private func bind(_ address: RecordAddress, to statement: SQLiteStatement) throws(RepositoryError) {
    try statement.bind(address.key, at: 1)
    if holdsTombstones { try statement.bind(address.collection, at: 2) }
  }
}

/// The order in which the records of a batch are written: by table and key, with only the last record of each address.
///
/// Records are compared by numbers that are computed once from the first bytes of their keys. A sort compares each record some twenty
/// times, and fetching a record or the bytes of its key costs more than comparing two numbers.
struct SQLiteRecordOrder {
  /// Positions of the records in the batch, in the order in which they are written.
  private(set) var positions: [Int] = []

  init(_ records: [StoredRecord]) {
    guard records.count > 1 else {
      positions = Array(records.indices)
      return
    }
    let places = Self.places(of: records).sorted { left, right in
      if left.collection != right.collection { return left.collection < right.collection }
      if left.high != right.high { return left.high < right.high }
      if left.low != right.low { return left.low < right.low }
      // Two records whose keys have the same first bytes usually have the same key, which was saved twice. The records of one key keep the
      // order of the batch, so that the last record of the key is the one that is written.
      let (first, second) = (records[left.position].key, records[right.position].key)
      return first == second ? left.position < right.position : first < second
    }
    positions.reserveCapacity(places.count)
    for (index, place) in places.enumerated() {
      // A record that is followed by a later record of the same address is left out. Without this check, the writer would write both
      // records, one after the other.
      if index + 1 < places.count, places[index + 1].hasFirstBytes(of: place),
        records[places[index + 1].position].key == records[place.position].key
      {
        continue
      }
      positions.append(place.position)
    }
  }

  /// The numbers by which a record is compared with other records of its batch.
  ///
  /// The whole keys of two records are compared only if these numbers are equal.
  private struct Place {
    /// Rank of the record's collection in the order of the collections' names.
    let collection: Int
    /// First 16 bytes of the record's key as two numbers, with zeros after the end of a shorter key.
    let (high, low): (UInt64, UInt64)
    let position: Int

    func hasFirstBytes(of other: Place) -> Bool { collection == other.collection && high == other.high && low == other.low }
  }

  private static func places(of records: [StoredRecord]) -> [Place] {
    var names: Set<String> = []
    var last: String?
    // Consecutive records often have the same collection. The name of the collection is hashed once for consecutive records, because
    // hashing costs time.
    for record in records where record.collection != last {
      names.insert(record.collection)
      last = record.collection
    }
    var numbers: [String: Int] = [:]
    for (number, name) in names.sorted(by: { RecordKey($0) < RecordKey($1) }).enumerated() { numbers[name] = number }
    var (name, number) = ("", 0)
    return records.indices.map { position in
      let record = records[position]
      if record.collection != name { (name, number) = (record.collection, numbers[record.collection, default: 0]) }
      let (high, low) = record.key.withBytes { ($0.number(from: 0), $0.number(from: 8)) }
      return Place(collection: number, high: high, low: low, position: position)
    }
  }
}

/// The order in which the keys of one index are removed and added: by key, in which SQLite finds most pages in its cache.
///
/// The changes of one key keep the order of the edits. Changes of different keys do not depend on each other, so edits fit an index in
/// this order exactly if they fit it in their own.
struct SQLiteKeyOrder {
  private(set) var changes: [(key: Data, isAdded: Bool)] = []

  init(_ edits: [IndexEdit]) {
    changes.reserveCapacity(2 * edits.count)
    for edit in edits {
      if let key = edit.removed { changes.append((key, false)) }
      if let key = edit.added { changes.append((key, true)) }
    }
    if changes.count <= 2 { return }
    let unsorted = changes
    var places = unsorted.enumerated().map { position, change in
      let (high, low) = change.key.withUnsafeBytes { ($0.number(from: 0), $0.number(from: 8)) }
      return (high: high, low: low, position: position)
    }
    places.sort { left, right in
      if left.high != right.high { return left.high < right.high }
      if left.low != right.low { return left.low < right.low }
      let (first, second) = (unsorted[left.position].key, unsorted[right.position].key)
      return first == second ? left.position < right.position : first.precedes(second)
    }
    changes = places.map { unsorted[$0.position] }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns eight bytes as a big-endian number, which sorts like the bytes, with zeros for bytes past the end.
  fileprivate func number(from offset: Int) -> UInt64 {
    if count >= offset + 8 { return UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
    return (offset..<offset + 8).reduce(0) { $0 << 8 | ($1 < count ? UInt64(self[$1]) : 0) }
  }
}
