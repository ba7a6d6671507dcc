internal import Foundation
internal import Larder

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
    let damagedBefore = (damagedIndexes, indexes.isTableDamaged)
    do throws(RepositoryError) { try transaction(durability, body) } catch {
      guard error.code == .corrupted, (damagedIndexes, indexes.isTableDamaged) != damagedBefore else { throw error }
      try checkUse()
      try transaction(editingIndexes: durability, body)
    }
  }

  /// Applies edits to the table of an index, or returns false if one of them does not fit the index.
  private func apply(_ edits: [IndexEdit], to entry: SQLiteIndexes.Entry) throws(RepositoryError) -> Bool {
    guard !edits.isEmpty else { return true }
    let table = try indexTable(entry.number)
    for (key, isAdded) in SQLiteKeyOrder(edits).changes {
      guard try isAdded ? table.insert(key) : table.delete(key) else { return false }
    }
    return true
  }

  /// Adds ascending keys to an index under construction, in a transaction of its own.
  func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool) throws(RepositoryError) {
    try checkUse()
    let earlier = indexes.entries[index]
    guard summary != nil, isFirst || earlier?.isComplete == false else { throw .storesNoIndexes(connection.path) }
    var isSound = SQLiteIndexes.isAscending(keys)
    if !isFirst, let last = earlier?.lastKey, let first = keys.first { isSound = isSound && last.precedes(first) }
    if isFirst { try dropLeftovers() }
    let bytes = keys.reduce(0) { $0 + $1.count + 24 }
    try changeIndexes(adding: bytes + bytes / 8 + 65_536) { () throws(RepositoryError) in
      if isFirst { try self.drop(index) }
      guard isSound else { return try self.drop(index) }
      // A table of indexes that was set aside has taken the index with it.
      let number = isFirst ? try self.indexes.create(index, on: self.connection) : self.indexes.entries[index]?.number
      guard let created = number else { return isSound = false }
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
        .unsupported, "expected ascending keys for an index that is being built, \"\(index.name)\", found others: build the index anew",
        file: connection.path)
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
      try transaction(editingIndexes: .durable) { _ throws(RepositoryError) in
        try self.indexes.deleteOtherRows(on: self.connection)
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
    try transaction(editingIndexes: durability(of: .buffered)) { _ throws(RepositoryError) in
      try self.indexes.deleteOtherRows(on: self.connection)
      try body()
      return .inStore
    }
    noteLog(after: pages)
  }

  /// Drops the tables of indexes that have no row, each in a transaction of its own and outside of commits.
  ///
  /// In a damaged file all tables stay, and one that has no room to be dropped stays until the next call. Other processes may use the
  /// tables of a shared store, and those of a store without a commit of this writer.
  func dropLeftovers() throws(RepositoryError) {
    guard sharing == nil, indexes.mayHaveLeftovers || summary != nil && indexes.mayHaveOtherRows else { return }
    guard summary != nil || !indexes.mayHaveOtherRows else { return }
    do throws(RepositoryError) {
      if indexes.mayHaveOtherRows {
        try transaction(editingIndexes: durability(of: .buffered)) { _ throws(RepositoryError) in
          try self.indexes.deleteOtherRows(on: self.connection)
          return .inStore
        }
      }
      let tables = try indexes.leftovers(on: connection)
      var hasFailed = false
      for table in tables {
        guard try isFileSound() else {
          indexes.noteDamagedLeftover(table)
          continue
        }
        do throws(RepositoryError) {
          try transaction(durability(of: .buffered)) { _ throws(RepositoryError) in
            try self.connection.execute("DROP TABLE \(table)")
            return .inStore
          }
        } catch {
          guard error.code == .corrupted || error.code == .full else { throw error }
          try checkUse()
          hasFailed = true
          if error.code == .corrupted { indexes.noteDamagedLeftover(table) }
        }
      }
      indexes.mayHaveLeftovers = hasFailed
    } catch {
      guard error.code == .corrupted || error.code == .full else { throw error }
    }
  }

  /// Whether SQLite's quick check finds no damage in the file, which is checked once.
  ///
  /// `DROP TABLE` frees each page to which a table leads. In a damaged table, that may be a page of records or of another index, and only
  /// the check of the whole file finds a page that two tables have.
  private func isFileSound() throws(RepositoryError) -> Bool {
    if let isSound { return isSound }
    let found = try connection.isSound()
    isSound = found
    return found
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

/// The prepared statements that add and remove keys of one index.
final class SQLiteIndexTable {
  private let insertOne: SQLiteStatement
  private let deleteOne: SQLiteStatement
  private let connection: SQLiteConnection

  init(_ number: Int64, _ connection: SQLiteConnection) throws(RepositoryError) {
    self.connection = connection
    // A key that the table has already changes no row, and is no error of SQLite.
    insertOne = try connection.prepare("INSERT OR IGNORE INTO \(SQLiteIndexes.keyTable(number)) VALUES (?1, ?2)")
    deleteOne = try connection.prepare("DELETE FROM \(SQLiteIndexes.keyTable(number)) WHERE key = ?1")
  }

  /// Adds a key, or returns false if the index has it already.
  func insert(_ key: Data) throws(RepositoryError) -> Bool {
    try insertOne.bind(Int64(key.withUnsafeBytes { CRC32C.checksum($0) }), at: 2)
    return try run(insertOne, key)
  }

  /// Removes a key, or returns false if the index does not have it.
  func delete(_ key: Data) throws(RepositoryError) -> Bool { try run(deleteOne, key) }

  private func run(_ statement: SQLiteStatement, _ key: Data) throws(RepositoryError) -> Bool {
    try statement.bindBlob(key, at: 1)
    try statement.run()
    return connection.changedRows == 1
  }

  func finalize() throws(RepositoryError) { for statement in [insertOne, deleteOne] { try statement.finalize() } }
}
