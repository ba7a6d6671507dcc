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

/// Changes of the indexes in the database.
extension SQLiteWriter {
  /// Changes the keys of indexes, and drops each index of a changed collection that the batch does not name.
  ///
  /// An index whose keys do not fit an edit is dropped too, and the commit of the records goes on. Call it within
  /// ``transaction(editingIndexes:_:)``.
  func editIndexes(by batch: WriteBatch) throws(RepositoryError) {
    guard summary != nil else { return }
    try indexes.deleteOtherRows(on: connection)
    guard !indexes.entries.isEmpty else { return }
    let changed = Set(batch.records.map(\.collection))
    let edits = Dictionary(grouping: batch.indexEdits, by: \.index)
    for (index, entry) in indexes.entries {
      let ownEdits = edits[index] ?? []
      guard changed.contains(index.collection) || !ownEdits.isEmpty else { continue }
      var isSound = batch.indexes.contains(index) && !damagedIndexes.contains(index)
      if isSound {
        do throws(RepositoryError) { isSound = try apply(ownEdits, to: entry) } catch {
          if error.code == .corrupted { damagedIndexes.insert(index) }
          throw error
        }
      }
      if !isSound { try drop(index) }
    }
  }

  /// Runs the transaction of a commit, and runs it again without the indexes in which it has found damage.
  ///
  /// A statement that fails at a damaged page may leave half of its changes, so the whole transaction is rolled back.
  func transaction(
    editingIndexes durability: Durability, _ body: (inout SQLiteStoreRow) throws(RepositoryError) -> StateNote
  ) throws(RepositoryError) {
    let damagedBefore = damagedIndexes
    do throws(RepositoryError) { try transaction(durability, body) } catch {
      guard error.code == .corrupted, damagedIndexes != damagedBefore else { throw error }
      try checkUse()
      try transaction(editingIndexes: durability, body)
    }
  }

  /// Applies edits to the table of an index, or returns false at the first edit that does not fit the index.
  private func apply(_ edits: [IndexEdit], to entry: SQLiteIndexes.Entry) throws(RepositoryError) -> Bool {
    guard !edits.isEmpty else { return true }
    let table = try indexTable(entry.number)
    for edit in edits {
      if let key = edit.removed, try !table.delete(key) { return false }
      if let key = edit.added, try !table.insert(key) { return false }
    }
    return true
  }

  /// Adds ascending keys to an index under construction, in a transaction of its own.
  func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    try checkUse()
    let earlier = indexes.entries[index]
    guard summary != nil, isFirst || earlier?.isComplete == false else { throw .storesNoIndexes(connection.path) }
    var isSound = SQLiteIndexes.isAscending(keys)
    if !isFirst, let last = earlier?.lastKey, let first = keys.first { isSound = isSound && SQLiteIndexes.precedes(last, first) }
    if isFirst { try dropLeftovers() }
    let bytes = keys.reduce(0) { $0 + $1.count + 24 }
    try changeIndexes(adding: bytes + bytes / 8 + 65_536) { () throws(RepositoryError) in
      if isFirst { try self.drop(index) }
      guard isSound else { return try self.drop(index) }
      let created = isFirst ? try self.indexes.create(index, on: self.connection) : earlier?.number
      guard let created else { return }
      let table = try self.indexTable(created)
      // If the index has the key already, a commit has added it, and the caller has passed it again.
      for key in keys where try !table.insert(key) { isSound = false }
      if isSound { self.indexes.note(lastKey: keys.last, of: index) } else { try self.drop(index) }
    }
    if isFirst {
      damagedIndexes.remove(index)
      try dropLeftovers()
    }
    guard isSound else {
      throw RepositoryError(
        .unsupported, "expected ascending keys for the index \"\(index.name)\", found others: build the index anew", file: connection.path)
    }
  }

  /// Stores the boundaries of an index, which is complete from then on.
  func storeBoundaries(_ boundaries: [Data], of index: StoredIndexID) throws(RepositoryError) {
    try checkUse()
    guard summary != nil, indexes.entries[index] != nil else { throw .storesNoIndexes(connection.path) }
    guard SQLiteIndexes.isAscending(boundaries) else {
      throw RepositoryError(
        .unsupported, "expected ascending boundaries for the index \"\(index.name)\", found others", file: connection.path)
    }
    try changeIndexes(adding: boundaries.reduce(65_536) { $0 + $1.count + 4 }) { () throws(RepositoryError) in
      try self.indexes.complete(index, boundaries, on: self.connection)
    }
  }

  func dropIndex(_ index: StoredIndexID) throws(RepositoryError) {
    try checkUse()
    guard indexes.entries[index] != nil else { return }
    try changeIndexes(adding: 0) { () throws(RepositoryError) in try self.drop(index) }
  }

  /// Drops all indexes of collections with their tables, as far as the disk has room for it.
  func dropIndexes(of collections: Set<String>) throws(RepositoryError) {
    do throws(RepositoryError) {
      try transaction(.durable) { _ throws(RepositoryError) in
        for index in self.indexes.entries.keys where collections.contains(index.collection) { try self.drop(index) }
        return .inStore
      }
    } catch {
      guard error.code == .full else { throw error }
    }
    try checkUse()
    try dropLeftovers()
  }

  /// Runs a transaction that changes indexes and no record.
  private func changeIndexes(adding bytes: Int, _ body: () throws(RepositoryError) -> Void) throws(RepositoryError) {
    foldBeforeCommit()
    try checkUse()
    if bytes > 0 { try checkSpaceForIndex(bytes) }
    let pages = connection.logPageCount
    try transaction(durability(of: .buffered)) { _ throws(RepositoryError) in
      try self.indexes.deleteOtherRows(on: self.connection)
      try body()
      return .inStore
    }
    noteLog(after: pages)
  }

  /// Drops the tables of indexes that have no row, each in a transaction of its own and outside of commits.
  ///
  /// A table that is damaged or has no room to be dropped stays until the next call. Other processes may use the tables of a shared store,
  /// and those of a store without a commit of this writer.
  func dropLeftovers() throws(RepositoryError) {
    guard sharing == nil, indexes.mayHaveLeftovers || summary != nil && indexes.mayHaveOtherRows else { return }
    guard summary != nil || !indexes.mayHaveOtherRows else { return }
    do throws(RepositoryError) {
      if indexes.mayHaveOtherRows {
        try transaction(durability(of: .buffered)) { _ throws(RepositoryError) in
          try self.indexes.deleteOtherRows(on: self.connection)
          return .inStore
        }
      }
      var hasFailed = false
      for table in try indexes.leftovers(on: connection) {
        do throws(RepositoryError) {
          try transaction(durability(of: .buffered)) { _ throws(RepositoryError) in
            try self.connection.execute("DROP TABLE \(table)")
            return .inStore
          }
        } catch {
          guard error.code == .corrupted || error.code == .full else { throw error }
          try checkUse()
          hasFailed = true
        }
      }
      indexes.mayHaveLeftovers = hasFailed
    } catch {
      guard error.code == .corrupted || error.code == .full else { throw error }
    }
  }

  private func drop(_ index: StoredIndexID) throws(RepositoryError) {
    if let number = indexes.entries[index]?.number { indexTables[number] = nil }
    try indexes.drop(index, on: connection)
  }

  private func indexTable(_ number: Int64) throws(RepositoryError) -> SQLiteIndexTable {
    if let table = indexTables[number] { return table }
    let table = try SQLiteIndexTable(number, connection)
    indexTables[number] = table
    return table
  }

  /// Returns a problem for each complete index that has damaged keys or boundaries, or not one key for each record.
  func indexProblems() throws(RepositoryError) -> [RepositoryError] {
    var problems: [RepositoryError] = []
    for (index, number) in indexes.complete {
      do throws(RepositoryError) {
        let name = SQLiteLayout.quoted(index.collection)
        let expected = collections.contains(index.collection) ? try connection.number("SELECT count(*) FROM \(name)") ?? 0 : 0
        try SQLiteIndexes.check(index, number, expecting: expected, on: connection)
        _ = try SQLiteIndexes.boundaries(of: index, number, connection.prepare(SQLiteIndexes.selectRow), on: connection)
      } catch {
        guard error.code == .corrupted else { throw error }
        problems.append(error)
      }
    }
    return problems
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
