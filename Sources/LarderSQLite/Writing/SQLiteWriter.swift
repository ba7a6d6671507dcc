// Writing/ commits batches: transactions, records, tombstones, and the space that they take on the disk.
// Invariant: a batch is one transaction, and the state in memory changes only after COMMIT has succeeded.
// Called by SQLiteStore.

internal import Foundation
internal import Larder

/// The one connection through which a store writes batches, with the statements that it keeps prepared.
///
/// Invariant: `row`, `collections` and `tables` are the file's state as of the last commit, or within the current transaction. Only the row
/// of `larder_store` may be an earlier one, which is then `storedRow`.
final class SQLiteWriter {
  let connection: SQLiteConnection
  let disk: SQLiteDisk
  var row: SQLiteStoreRow
  /// The row of `larder_store` as stored, which in an exclusive store may be of an earlier commit.
  var storedRow: SQLiteStoreRow
  /// Error of a failed sync, after which the writer writes nothing more.
  var poison: RepositoryError?
  /// Additional state of a writer of a shared store, or `nil` for an exclusive store.
  let sharing: SQLiteSharing?

  /// Names of the collections that have a table.
  var collections: Set<String>
  /// Tables that were used so far, with their prepared statements.
  var tables: [String: SQLiteTable] = [:]
  /// Names of the collections whose tables the current transaction has created.
  var created: [String] = []
  let tombstones: SQLiteTable

  var synchronous: Durability?
  var hasUnsynced = false
  let begin: SQLiteStatement
  let commit: SQLiteStatement
  let updateRow: SQLiteStatement
  /// `PRAGMA data_version`, SQLite's count of foreign commits, and its value when the last of them was read or ruled out.
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
    // Before the row: a foreign commit between the two then changes the number.
    if sharing == nil { knownVersion = try dataVersion.number() }
    storedRow = try SQLiteStoreRow(on: connection)
    self.collections = Set(collections)
  }

  // MARK: Batches

  /// Writes a batch in one transaction, all of it or none.
  func write(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse()
    // Before anything is given back for the batch. A shared store's row is read in the transaction, and checked there.
    if sharing == nil { try checkOrder(batch, after: row) }
    // Before the transaction, in which no space can be given back.
    try checkSpace(for: batch)
    let pages = connection.logPageCount
    try transaction(durability(of: batch.durability)) { next throws(RepositoryError) in
      try self.checkOrder(batch, after: next)
      // A store without records and tombstones needs no look-ups of earlier rows.
      let isFirst = next.records == 0 && next.tombstones == 0
      // In the order of the keys, each page of a table's B-tree is met once.
      let positions = SQLiteRecordOrder(batch.records).positions
      let carrier = self.carrier(of: batch, positions)
      for position in positions where position != carrier {
        try self.apply(batch.records[position], to: &next, isNew: isFirst, carries: false)
      }
      next.commit = batch.commits.upperBound
      // The mark comes with the first buffered commit, which is therefore synced: ``durability(of:)``.
      if batch.durability == .buffered { next.isBuffered = true }
      guard let carrier else { return .inStore }
      // The mark of buffered commits is only in `larder_store`, so a change of it writes that row.
      let carries = next.isBuffered == self.row.isBuffered
      try self.apply(batch.records[carrier], to: &next, isNew: isFirst, carries: carries)
      return carries && next.carriedDigest != 0 ? .inRecord : .inStore
    }
    // Another program has run a checkpoint, and this commit began the log anew. The next commit writes the row that shows whose log it is.
    if connection.logPageCount <= pages { connection.forgetLogLength() }
    if connection.logPageCount >= SQLiteConnection.checkpointPages { foldInPassing() }
  }

  /// Returns the position of the record whose row can carry the digest after a batch, or `nil` if `larder_store` must.
  ///
  /// The row must be of the batch's newest commit, by which opening finds it. A log begins with a commit that writes `larder_store`, which
  /// shows whose log it is, unless another program has let it begin. Processes that share a store read `larder_store` alone.
  private func carrier(of batch: WriteBatch, _ positions: [Int]) -> Int? {
    guard sharing == nil, connection.logPageCount > 0 else { return nil }
    return positions.last { batch.records[$0].revision.number == batch.commits.upperBound }
  }

  /// Throws `.unsupported` unless a batch starts one above the newest commit, and none of its records is above its last one.
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

  /// Returns the durability with which a batch is committed, which may be more than it asks for.
  ///
  /// The first buffered commit after a checkpoint is synced all the same: it records, durably, that later ones may be missing. The mark
  /// stays for as long as any process has the store open, so a row that is behind foreign commits errs on the safe side.
  func durability(of wish: Durability) -> Durability { wish == .buffered && !row.isBuffered ? .durable : wish }

  /// Syncs the write-ahead log, which makes buffered commits durable.
  func flush() throws(RepositoryError) {
    try checkUse()
    guard hasUnsynced else { return }
    // A sync of a log that was removed would succeed and save nothing.
    try connection.checkPresence()
    do {
      try connection.syncLog()
      hasUnsynced = false
    } catch {
      throw poisoned(by: error)
    }
  }

  // MARK: Checkpoints

  /// Deletes the oldest tombstones over a limit in a transaction of its own.
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
      // Before the checkpoint, so that the row is copied once. A full disk may have room for it only afterwards.
      try settleRow()
    } catch {
      // Another program has written, and this one writes nothing over it.
      if error.code == .locked { return try flush() }
      guard error.code == .full else { throw error }
    }
    do {
      try checkSpaceToFold()
      try foldEmptying()
      // Buffered commits of this process and of others are in the database by a sync of SQLite alone.
      try connection.syncOwnLog()
    } catch {
      // A busy reader keeps part of the log in use. Nothing is lost, and the next checkpoint continues.
      if error.code == .locked { return try flush() }
      throw poisoned(by: error)
    }
    hasUnsynced = false
    guard isRowDue else { return }
    do throws(RepositoryError) {
      try settleRow()
      try foldEmptying()
    } catch {
      if error.code != .locked { throw poisoned(by: error) }
    }
  }

  /// Whether the row of `larder_store` is behind the newest commit, or has the mark of buffered commits.
  private var isRowDue: Bool { sharing == nil && (storedRow != row || row.isBuffered) }

  /// Writes the row of `larder_store` for the newest commit, and keeps the mark of buffered commits.
  func storeRow() throws(RepositoryError) {
    if sharing == nil, storedRow != row { try transaction(synchronous ?? .durable) { _ in .inStore } }
  }

  /// Writes the row of `larder_store` for the newest commit without the mark of buffered commits, in a durable transaction.
  ///
  /// The transaction's sync makes all earlier commits durable. If it is cut off, the rest of the log ends before it, with the mark.
  func settleRow() throws(RepositoryError) {
    guard isRowDue else { return }
    try transaction(.durable) { next in
      self.clearMark(&next)
      return .inStore
    }
  }

  /// Clears the mark of buffered commits, except in a shared store, where other processes may have written some.
  private func clearMark(_ next: inout SQLiteStoreRow) { if sharing == nil { next.isBuffered = false } }

  /// Runs a checkpoint that waits for no reader.
  ///
  /// The commit before it is done, so a failure is not that commit's failure. Only a failed sync matters, and the next call throws it.
  private func foldInPassing() {
    do throws(RepositoryError) {
      try checkSpaceToFold()
      // With the row up to date, the database alone has the digest of its rows. On a full disk the checkpoint matters more.
      do throws(RepositoryError) { try storeRow() } catch { guard error.code == .full else { throw error } }
      try connection.checkpoint(.passing)
    } catch { _ = poisoned(by: error) }
  }

  /// Copies the write-ahead log into the database and empties it.
  ///
  /// In a shared store it waits at most half a second, so that other processes are not held up.
  private func foldEmptying() throws(RepositoryError) {
    guard sharing != nil else {
      // On a nearly full disk the log's space is worth more than the faster commits of a log that keeps it.
      let isPlentiful = SQLiteDiskSpace.isPlentiful(for: 0, beside: connection.path, on: disk)
      return try connection.checkpoint(isPlentiful ? .marking : .truncating)
    }
    try connection.waiting(.milliseconds(500)) { () throws(RepositoryError) in try connection.checkpoint(.truncating) }
  }

  // MARK: The end

  /// Throws `.poisoned` after a failed sync.
  func checkUse() throws(RepositoryError) {
    if let poison {
      throw RepositoryError(
        .poisoned, "an earlier sync failed: close the store, and open it again", file: connection.path, underlying: poison)
    }
  }

  /// Stores an error after which the state of the disk is unknown, and returns every error.
  func poisoned(by error: RepositoryError) -> RepositoryError {
    if error.code == .outcomeUnknown { poison = error }
    return error
  }

  /// Closes the connection and leaves the files as they are.
  func abandon() {
    connection.keepLogOnClose()
    // Nothing is lost if closing fails: every acknowledged commit is in the log.
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
  }
}
