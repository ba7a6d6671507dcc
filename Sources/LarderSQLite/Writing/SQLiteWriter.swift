// Writing/ commits batches: transactions, records, tombstones, and the space that they take on the disk.
// Invariant: a batch is one transaction, and the state in memory changes only after COMMIT has succeeded.
// Called by SQLiteStore.

internal import Foundation
internal import Larder

/// The only connection through which a store writes batches, with its prepared statements.
///
/// Invariant: `row`, `collections` and `tables` are the file's state as of the last commit, or within the current transaction. `storedRow`
/// is the row of `larder_store` in the file, and only this row may belong to an earlier commit.
final class SQLiteWriter {
  let connection: SQLiteConnection
  let disk: SQLiteDisk
  var row: SQLiteStoreRow
  /// The row of `larder_store` as stored, which in an exclusive store may belong to an earlier commit.
  var storedRow: SQLiteStoreRow
  /// Error of a failed sync or rollback, after which the writer writes nothing more.
  var poison: RepositoryError?
  /// Additional state of a writer of a shared store, or `nil` for an exclusive store.
  let sharing: SQLiteSharing?

  /// Names of the collections that have a table.
  var collections: Set<String>
  /// Tables that this writer has used so far, with their prepared statements.
  var tables: [String: SQLiteTable] = [:]
  /// Names of the collections whose tables the current transaction has created.
  var created: [String] = []
  let tombstones: SQLiteTable
  /// Summary of the collections as of the last commit, or `nil` if this writer does not keep the table `larder_collections` up to date.
  var summary: SQLiteSummary?
  /// Indexes in the database as of the last transaction, which only a writer with a `summary` keeps up to date.
  var indexes = SQLiteIndexes()
  /// Tables of the indexes that this writer has changed so far, with their prepared statements.
  var indexTables: [Int64: SQLiteIndexTable] = [:]
  /// Indexes in whose tables a commit has found damage, and which the next commit drops.
  var damagedIndexes: Set<StoredIndexID> = []
  /// Whether the whole file was found sound, or `nil` before the check that comes before the first table of an index is dropped.
  var isSound: Bool?
  /// Whether the rows of `larder_collections` may be of an earlier commit, and this writer has not deleted them yet.
  private var mayHaveOldSummary = true
  /// Bases that read the store at an earlier commit, or at this one.
  var bases: SQLiteBases?

  var synchronous: Durability?
  var hasUnsynced = false
  let begin: SQLiteStatement
  let commit: SQLiteStatement
  let updateRow: SQLiteStatement
  /// Statement for `PRAGMA data_version`, which changes with each commit of another connection.
  ///
  /// `knownVersion` is the value of `data_version` at the last time when the writer had read all commits of other connections, or had found
  /// none.
  let dataVersion: SQLiteStatement
  var knownVersion: Int64?

  init(
    _ connection: SQLiteConnection, row: SQLiteStoreRow, collections: [String], sharing: SQLiteSharing? = nil, disk: SQLiteDisk
  ) throws(RepositoryError) {
    self.connection = connection
    self.disk = disk
    self.row = row
    self.sharing = sharing
    begin = try connection.prepare("BEGIN IMMEDIATE")
    commit = try connection.prepare("COMMIT")
    updateRow = try connection.prepare(SQLiteStoreRow.update)
    tombstones = try SQLiteTable(SQLiteLayout.tombstones, connection)
    dataVersion = try connection.prepare("PRAGMA data_version")
    // `PRAGMA data_version` is read before the row of `larder_store`. If another program commits between the two reads, the next comparison
    // of `data_version` finds a changed number.
    if sharing == nil { knownVersion = try dataVersion.number() }
    storedRow = try SQLiteStoreRow(on: connection)
    self.collections = Set(collections)
  }

  // MARK: Batches

  /// Writes a batch in one transaction, all of it or none.
  func write(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse()
    // The commit numbers of the batch are checked before `checkSpace` may run a checkpoint or shrink the file to free disk space. In a
    // shared store the newest commit is read inside the transaction, so the commit numbers are checked only inside the transaction.
    if sharing == nil {
      try checkOrder(batch, after: row)
      foldBeforeCommit()
    }
    try checkUse()
    // The disk space is checked before the transaction, because inside a transaction this store cannot free space on the disk.
    try checkSpace(for: batch)
    let pages = connection.logPageCount
    try transaction(editingIndexes: durability(of: batch.durability)) { next throws(RepositoryError) in
      try self.checkOrder(batch, after: next)
      // In a store without records and tombstones there is no earlier row to look up.
      let isFirst = next.records == 0 && next.tombstones == 0
      // If records are written in the order of their keys, each page of a table's B-tree is visited once.
      let positions = SQLiteRecordOrder(batch.records).positions
      let carrier = self.carrier(of: batch, positions)
      // The record that carries the digest is written last, because the digest must count all other rows of the batch.
      for position in positions where position != carrier {
        try self.apply(batch.records[position], to: &next, isNew: isFirst, carries: false)
      }
      next.commit = batch.commits.upperBound
      try self.editIndexes(by: batch)
      try self.noteSummary(of: batch, in: next)
      // The first buffered commit sets the mark `isBuffered` in `larder_store`. The mark must be durable, so ``durability(of:)`` has
      // returned `.durable` for that commit.
      if batch.durability == .buffered { next.isBuffered = true }
      guard let carrier else { return .inStore }
      // The mark of buffered commits is only in the row of `larder_store`, so a commit that changes the mark writes that row.
      let carries = next.isBuffered == self.row.isBuffered
      try self.apply(batch.records[carrier], to: &next, isNew: isFirst, carries: carries)
      return carries && next.carriedDigest != 0 ? .inRecord : .inStore
    }
    mayHaveOldSummary = false
    noteLog(after: pages)
  }

  /// Writes the changed counts of the collections, or deletes all counts and indexes if this writer does not keep them up to date.
  ///
  /// Call it within the transaction of a commit, after the records were written.
  func noteSummary(of batch: WriteBatch, in next: SQLiteStoreRow) throws(RepositoryError) {
    if summary != nil {
      if let record = batch.records.last { summary?.touchIfUnchanged(record.collection) }
      try summary?.store(commit: next.commit, on: connection)
    } else if mayHaveOldSummary {
      try indexes.deleteOtherRows(on: connection)
      if try SQLiteSummary.exists(on: connection) { try connection.execute("DELETE FROM \(SQLiteSummary.table)") }
    }
  }

  /// Returns the position of the record whose row can carry the digest of a batch, or `nil` if `larder_store` must hold the digest.
  ///
  /// The row that carries the digest must have the revision of the batch's newest commit, because opening looks for the digest in the
  /// record with the newest revision. The first commit to an empty log must write the row of `larder_store`, which shows to which store the
  /// log belongs. If another program has emptied the log, the writer notices that only after its next commit, so the second commit of the
  /// new log writes the row of `larder_store`. In a shared store every commit writes the row of `larder_store`, because the other processes
  /// read no other row to find the newest commit.
  private func carrier(of batch: WriteBatch, _ positions: [Int]) -> Int? {
    guard sharing == nil, summary == nil, connection.logPageCount > 0 else { return nil }
    return positions.last { batch.records[$0].revision.number == batch.commits.upperBound }
  }

  /// Throws `.unsupported` unless a batch starts one above the newest commit and no record's revision is above the batch's last commit.
  func checkOrder(_ batch: WriteBatch, after row: SQLiteStoreRow) throws(RepositoryError) {
    guard batch.commits.lowerBound == row.commit + 1, batch.commits.upperBound <= UInt64(Int64.max) else {
      throw RepositoryError(
        .unsupported, "expected a batch from commit \(row.commit + 1), found one from \(batch.commits.lowerBound)", file: connection.path)
    }
    if let record = batch.records.first(where: { $0.revision.number > batch.commits.upperBound }) {
      throw RepositoryError(
        .unsupported, "expected revisions of at most the batch's last commit, \(batch.commits.upperBound), found \(record.revision.number)",
        file: connection.path)
    }
  }

  /// Returns the durability with which a batch is committed, which may be stronger than the requested durability.
  ///
  /// The first buffered commit after a checkpoint is synced, because the mark of buffered commits must be durable: it shows recovery that
  /// later commits may be missing. In a shared store `row` may be older than the commits of other processes. The mark stays as long as any
  /// process has the store open, so an outdated `row` can only cause an unneeded sync.
  func durability(of wish: Durability) -> Durability { wish == .buffered && !row.isBuffered ? .durable : wish }

  /// Syncs the write-ahead log, which makes buffered commits durable.
  func flush() throws(RepositoryError) {
    try checkUse()
    guard hasUnsynced else { return }
    // A sync of a log that was removed would succeed and make nothing durable.
    try connection.checkPresence()
    do {
      try connection.syncLog()
      hasUnsynced = false
    } catch {
      throw poisoned(by: error)
    }
  }

  // MARK: Checkpoints

  /// Deletes the oldest tombstones over a limit, in a transaction of its own.
  func forgetTombstones(over limit: Int) throws(RepositoryError) {
    guard row.tombstones > limit else { return }
    try transaction(.durable) { next throws(RepositoryError) in
      try self.prune(keeping: limit, &next)
      self.clearMark(&next)
      return .inStore
    }
  }

  /// Deletes tombstones over the limit, copies the write-ahead log into the database, and empties the log.
  func checkpoint(keeping tombstoneLimit: Int) throws(RepositoryError) {
    try checkUse()
    try forgetTombstones(over: tombstoneLimit)
    do throws(RepositoryError) {
      try dropLeftovers()
      // The row of `larder_store` is written before the checkpoint, so that the same checkpoint copies it into the database. A full disk
      // may have room for the row of `larder_store` only after the checkpoint.
      try settleRow()
    } catch {
      // Another program has committed to the store, and this writer must write nothing over that commit.
      if error.code == .locked { return try flush() }
      guard error.code == .full else { throw error }
    }
    do {
      try checkSpaceToFold()
      try foldEmptying()
      // SQLite has synced the commits that the checkpoint copied, but perhaps only into the drive's cache, which this sync empties.
      try connection.syncOwnLog()
    } catch {
      // A reader still uses part of the log, so the log stays. No commit is lost, and the next checkpoint copies the rest of the log.
      if error.code == .locked { return try flush() }
      throw poisoned(by: error)
    }
    hasUnsynced = false
    guard isRowDue else { return }
    // A full disk had no room for the row of `larder_store` before the checkpoint, and may have room after it. The second checkpoint copies
    // the row of `larder_store` into the database.
    do throws(RepositoryError) {
      try settleRow()
      try foldEmptying()
    } catch {
      if error.code != .locked { throw poisoned(by: error) }
    }
  }

  /// Whether the row of `larder_store` is behind the newest commit, or still has the mark of buffered commits.
  private var isRowDue: Bool { sharing == nil && (storedRow != row || row.isBuffered) }

  /// Writes the row of `larder_store` for the newest commit, and keeps the mark of buffered commits.
  func storeRow() throws(RepositoryError) {
    if sharing == nil, storedRow != row { try transaction(synchronous ?? .durable) { _ in .inStore } }
  }

  /// Writes the counts of the collections, unless the table has them already.
  ///
  /// A full disk has no room for them. They are then written with the next commit.
  func storeSummary() throws(RepositoryError) {
    guard summary?.isDue == true else { return }
    do throws(RepositoryError) {
      try transaction(editingIndexes: .durable) { next throws(RepositoryError) in
        try self.summary?.store(commit: next.commit, on: self.connection)
        try self.indexes.deleteOtherRows(on: self.connection)
        return .inStore
      }
    } catch {
      guard error.code == .full else { throw error }
    }
    try dropLeftovers()
  }

  /// Writes the row of `larder_store` for the newest commit without the mark of buffered commits, in a durable transaction.
  ///
  /// The sync of the durable transaction makes all earlier commits durable. If a crash cuts off the transaction that clears the mark, the
  /// log ends before this transaction, and the row still has the mark.
  func settleRow() throws(RepositoryError) {
    guard isRowDue else { return }
    try transaction(.durable) { next in
      self.clearMark(&next)
      return .inStore
    }
  }

  /// Clears the mark of buffered commits, except in a shared store, where other processes may have made buffered commits.
  private func clearMark(_ next: inout SQLiteStoreRow) { if sharing == nil { next.isBuffered = false } }

  // MARK: The end

  /// Throws `.poisoned` after a failed sync or rollback.
  func checkUse() throws(RepositoryError) {
    if let poison {
      throw RepositoryError(
        .poisoned, "an earlier sync failed: close the store, and open it again", file: connection.path, underlying: poison)
    }
  }

  /// Stores an error of code `.outcomeUnknown`, after which the writer must not write, and returns every error unchanged.
  func poisoned(by error: RepositoryError) -> RepositoryError {
    if error.code == .outcomeUnknown { poison = error }
    return error
  }

  /// Closes the connection and leaves the files as they are.
  func abandon() {
    connection.keepLogOnClose()
    // If closing fails, no commit is lost, because every acknowledged commit is in the write-ahead log.
    do { try close() } catch {}
  }

  /// Finalizes the statements and closes the connection.
  func close() throws(RepositoryError) {
    try finalizeStatements()
    try connection.close()
  }

  /// Finalizes the statements, and leaves the connection open.
  func finalizeStatements() throws(RepositoryError) {
    for statement in [begin, commit, updateRow, dataVersion] { try statement.finalize() }
    try sharing?.reader.finalize()
    for table in [tombstones] + tables.values { try table.finalize() }
    for table in indexTables.values { try table.finalize() }
  }
}
