internal import Foundation
internal import Larder

/// Writes batches through one connection, each in one transaction, and keeps what it prepared.
///
/// Invariant: `row` and `tables` are what the file holds as of the last commit; they change only after COMMIT has succeeded.
final class SQLiteWriter {
  let connection: SQLiteConnection
  var row: SQLiteStoreRow
  /// The failed sync after which nothing more is written.
  private(set) var poison: RepositoryError?
  /// What it takes to write beside others; `nil` for an exclusive store.
  let sharing: SQLiteSharing?

  /// The collections that have a table.
  var collections: Set<String>
  /// The tables that were used so far.
  private var tables: [String: SQLiteTable] = [:]
  /// The collections that the current transaction has made.
  private var created: [String] = []
  /// The names of the tables without case, as SQLite compares them.
  var foldedNames: Set<String>
  private var synchronous: Durability?
  private var hasUnsynced = false
  let begin: SQLiteStatement
  private let commit: SQLiteStatement
  private let updateRow: SQLiteStatement
  let tombstones: SQLiteTombstones
  /// SQLite's count of the commits of others, and what it was when the row was last compared.
  private let dataVersion: SQLiteStatement
  private var knownVersion: Int64?

  /// Pages of the log after which a commit folds them into the database.
  static let checkpointPages = 1_000

  init(
    _ connection: SQLiteConnection, row: SQLiteStoreRow, collections: [String], sharing: SQLiteSharing? = nil
  ) throws(RepositoryError) {
    self.connection = connection
    self.row = row
    self.sharing = sharing
    foldedNames = try Self.objectNames(on: connection)
    begin = try connection.prepare("BEGIN IMMEDIATE")
    commit = try connection.prepare("COMMIT")
    updateRow = try connection.prepare(SQLiteStoreRow.update)
    tombstones = try SQLiteTombstones(connection)
    dataVersion = try connection.prepare("PRAGMA data_version")
    self.collections = Set(collections)
  }

  /// Every name that a new table could collide with, indexes included.
  static func objectNames(on connection: SQLiteConnection) throws(RepositoryError) -> Set<String> {
    let statement = try connection.prepare("SELECT name FROM sqlite_schema")
    var names: Set<String> = []
    while try statement.step() { names.insert(SQLiteLayout.folded(try statement.text(0))) }
    try statement.reset()
    return names
  }

  // MARK: Batches

  /// Writes a batch in one transaction: all or none.
  func write(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse()
    if sharing == nil { try checkOrder(batch, after: row) }
    try checkSpace(for: batch)
    try transaction(durability(of: batch.durability)) { next throws(RepositoryError) in
      try self.checkOrder(batch, after: next)
      for record in batch.records { try self.apply(record, to: &next) }
      next.commit = batch.commits.upperBound
      if batch.durability == .buffered { next.isBuffered = true }
    }
    if connection.logPageCount >= Self.checkpointPages { checkpointInPassing() }
  }

  func checkOrder(_ batch: WriteBatch, after row: SQLiteStoreRow) throws(RepositoryError) {
    guard batch.commits.lowerBound == row.commit + 1, batch.commits.upperBound <= UInt64(Int64.max) else {
      throw RepositoryError(.unsupported, "the batch does not start one above the newest commit", file: connection.path)
    }
  }

  /// Returns how a batch is committed.
  ///
  /// The first buffered commit after a checkpoint is synced all the same: it says, durably, that later ones may be missing. The mark stays for
  /// as long as any process has the store open, so a row that is behind others' commits errs on the safe side.
  func durability(of wish: Durability) -> Durability { wish == .buffered && row.isBuffered ? .buffered : .durable }

  /// Makes buffered commits durable.
  func flush() throws(RepositoryError) {
    try checkUse()
    guard hasUnsynced else { return }
    try connection.checkPresence()
    do {
      try connection.syncLog()
      hasUnsynced = false
    } catch {
      throw poisoned(by: error)
    }
  }

  /// Forgets tombstones over the limit, and folds the log into the database.
  func checkpoint(keeping tombstoneLimit: Int) throws(RepositoryError) {
    try checkUse()
    if row.tombstones > tombstoneLimit {
      try transaction(.durable) { next throws(RepositoryError) in try self.prune(keeping: tombstoneLimit, &next) }
    }
    do {
      try checkSpaceToFold()
      try checkpointTruncating()
    } catch {
      // A reader that is still busy keeps part of the log in use; nothing is lost, and the next checkpoint goes on.
      if error.code == .locked { return try flush() }
      throw poisoned(by: error)
    }
    hasUnsynced = false
    // Beside others the mark stays: they may have written buffered commits since.
    if row.isBuffered && sharing == nil {
      try transaction(.durable) { next throws(RepositoryError) in next.isBuffered = false }
      do { try connection.checkpoint(truncating: true) } catch { if error.code != .locked { throw poisoned(by: error) } }
    }
  }

  /// Ends the connection and leaves the files as they are.
  func abandon() {
    connection.keepLogOnClose()
    // There is nothing to lose any more: what was acknowledged is in the log.
    do { try close() } catch {}
  }

  /// Ends the connection.
  func close() throws(RepositoryError) {
    for statement in [begin, commit, updateRow, dataVersion] { try statement.finalize() }
    try tombstones.finalize()
    try sharing?.reader.finalize()
    for table in tables.values { try table.finalize() }
    try connection.close()
  }

  func checkUse() throws(RepositoryError) {
    if let poison {
      throw RepositoryError(.poisoned, "an earlier sync failed; reopen the store", file: connection.path, underlying: poison)
    }
  }

  /// Remembers a failure after which the state of the disk is not known.
  func poisoned(by error: RepositoryError) -> RepositoryError {
    if error.code == .outcomeUnknown { poison = error }
    return error
  }

  /// The commit that called this is done, so a failure is not its failure.
  ///
  /// Only a failed sync matters: it shows in the next call.
  private func checkpointInPassing() {
    do {
      try checkSpaceToFold()
      try connection.checkpoint(truncating: false)
    } catch { _ = poisoned(by: error) }
  }

  /// Beside others it waits for them no longer than they would notice.
  private func checkpointTruncating() throws(RepositoryError) {
    guard sharing != nil else { return try connection.checkpoint(truncating: true) }
    try connection.waiting(.milliseconds(500)) { () throws(RepositoryError) in try connection.checkpoint(truncating: true) }
  }

  // MARK: Transactions

  func transaction(
    _ durability: Durability, _ body: (inout SQLiteStoreRow) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    if !connection.isInTransaction { try beginTransaction(durability) }
    var next = row
    do {
      try body(&next)
      try next.bind(to: updateRow)
      try updateRow.run()
      try commit.run(while: .committing)
    } catch {
      rollBack()
      throw poisoned(by: error)
    }
    row = next
    hasUnsynced = synchronous == .buffered
  }

  func beginTransaction(_ durability: Durability) throws(RepositoryError) {
    if synchronous != durability {
      try connection.execute("PRAGMA synchronous = \(durability == .durable ? "FULL" : "NORMAL")")
      synchronous = durability
    }
    created = []
    do {
      try connection.checkPresence()
      guard let sharing else {
        try begin.run()
        return try checkSolitude()
      }
      try connection.waiting(sharing.lockTimeout) { () throws(RepositoryError) in try begin.run() }
      try followOthers(sharing)
    } catch {
      rollBack()
      throw poisoned(by: error)
    }
  }

  /// Throws when somebody else has committed to an exclusive store, before anything is written over it.
  ///
  /// A person may have added an index meanwhile: only the store's own row tells of commits.
  private func checkSolitude() throws(RepositoryError) {
    let version = try dataVersion.number()
    guard version != knownVersion else { return }
    guard try SQLiteStoreRow(on: connection) == row else {
      throw RepositoryError(
        .locked, "another program has written to this store since it was opened: close the store, and open it again", file: connection.path)
    }
    knownVersion = version
  }

  /// Undoes everything of a transaction, unless SQLite has done so already.
  func rollBack() {
    for name in created {
      tables[name] = nil
      collections.remove(name)
      foldedNames.remove(SQLiteLayout.folded(name))
    }
    guard connection.isInTransaction else { return }
    do { try connection.execute("ROLLBACK") } catch { poison = error }
    if connection.isInTransaction && poison == nil {
      poison = RepositoryError(.inputOutput, "a transaction could not be rolled back", file: connection.path)
    }
  }

  // MARK: Records

  private func apply(_ record: StoredRecord, to next: inout SQLiteStoreRow) throws(RepositoryError) {
    guard record.revision.number <= UInt64(Int64.max) else {
      throw RepositoryError(.unsupported, "the revision is above SQLite's largest number", file: connection.path)
    }
    let crc = Int64(record.checksum)
    if let value = record.value {
      let table = try table(record.collection)
      if let old = try table.checksum(of: record.key) { next.subtract(old) } else { next.records += 1 }
      try table.upsert(record, crc, value)
      if next.tombstones > 0, let old = try tombstones.checksum(of: record.address) {
        try tombstones.delete(record.address)
        next.subtract(old)
        next.tombstones -= 1
      }
    } else {
      guard SQLiteLayout.isCollectionName(record.collection) else { throw unusable(record.collection) }
      if collections.contains(record.collection) {
        let table = try table(record.collection)
        if let old = try table.checksum(of: record.key) {
          try table.delete(record.key)
          next.subtract(old)
          next.records -= 1
        }
      }
      if let old = try tombstones.checksum(of: record.address) { next.subtract(old) } else { next.tombstones += 1 }
      try tombstones.upsert(record, crc)
    }
    next.add(crc)
  }

  /// The table of a collection, created by its first record.
  func table(_ name: String) throws(RepositoryError) -> SQLiteTable {
    if let table = tables[name] { return table }
    if !collections.contains(name) {
      guard SQLiteLayout.isCollectionName(name), !foldedNames.contains(SQLiteLayout.folded(name)) else { throw unusable(name) }
      try connection.execute(SQLiteLayout.createCollection(name))
      if sharing != nil { try connection.execute(SQLiteLayout.createRevisionIndex(name)) }
      created.append(name)
      collections.insert(name)
      foldedNames.insert(SQLiteLayout.folded(name))
    }
    let table = try SQLiteTable(name, connection)
    tables[name] = table
    return table
  }

  private func unusable(_ name: String) -> RepositoryError {
    RepositoryError(
      .unsupported, "\"\(name)\" cannot be a table: its form is wrong, or the name is taken (SQLite ignores case)", file: connection.path)
  }

  private func prune(keeping limit: Int, _ next: inout SQLiteStoreRow) throws(RepositoryError) {
    let newest = try connection.prepare("SELECT revision FROM larder_tombstones ORDER BY revision DESC LIMIT 1 OFFSET ?1")
    try newest.bind(Int64(limit), at: 1)
    guard let horizon = try newest.number() else { return }
    let statement = try connection.prepare("DELETE FROM larder_tombstones WHERE revision <= ?1 RETURNING crc")
    try statement.bind(horizon, at: 1)
    while try statement.step(while: .writing) {
      next.subtract(try statement.integer(0))
      next.tombstones -= 1
    }
    try statement.reset(while: .writing)
    next.tombstonesSince = UInt64(bitPattern: horizon)
  }
}
