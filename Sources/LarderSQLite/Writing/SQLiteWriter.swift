// Writing/ commits batches: transactions, records, tombstones, and the space that they take on the disk.
// Invariant: a batch is one transaction, and what is known of the file changes only after COMMIT has succeeded. Called by SQLiteStore.

internal import Foundation
internal import Larder

/// The one connection of a store through which batches are written, with the statements that it keeps prepared.
///
/// Invariant: `row`, `collections` and `tables` are what the file holds as of the last commit, or within the current transaction; only
/// the row of `larder_store` may be an earlier one, as `storedRow` says.
final class SQLiteWriter {
  let connection: SQLiteConnection
  let disk: SQLiteDisk
  var row: SQLiteStoreRow
  /// The row as `larder_store` has it, which may be of an earlier commit in an exclusive store.
  var storedRow: SQLiteStoreRow
  /// The failed sync after which nothing more is written.
  var poison: RepositoryError?
  /// The state of a writer among others; `nil` for an exclusive store.
  let sharing: SQLiteSharing?

  /// The collections that have a table.
  var collections: Set<String>
  /// The tables that were used so far.
  var tables: [String: SQLiteTable] = [:]
  /// The collections that the current transaction has made.
  var created: [String] = []
  let tombstones: SQLiteTable

  var synchronous: Durability?
  var hasUnsynced = false
  let begin: SQLiteStatement
  let commit: SQLiteStatement
  let updateRow: SQLiteStatement
  /// SQLite's count of foreign commits, and its value when the last of them was read, or the row was last compared with the file's.
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
    // Before the row: what comes between shows in the number.
    if sharing == nil { knownVersion = try dataVersion.number() }
    storedRow = try SQLiteStoreRow(on: connection)
    self.collections = Set(collections)
  }

  // MARK: Batches

  /// Writes a batch in one transaction: all or none.
  func write(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse()
    if sharing == nil { try checkOrder(batch, after: row) }
    try checkSpace(for: batch)
    let pages = connection.logPageCount
    try transaction(durability(of: batch.durability)) { next throws(RepositoryError) in
      try self.checkOrder(batch, after: next)
      // In a store without records and tombstones there is nothing to look up.
      let isFirst = next.records == 0 && next.tombstones == 0
      // In their order, each page of a table's tree is met once.
      let positions = SQLiteRecordOrder(batch.records).positions
      let carrier = self.carrier(of: batch, positions)
      for position in positions where position != carrier {
        try self.apply(batch.records[position], to: &next, isNew: isFirst, carries: false)
      }
      next.commit = batch.commits.upperBound
      if batch.durability == .buffered { next.isBuffered = true }
      guard let carrier else { return .inStore }
      let carries = next.isBuffered == self.row.isBuffered
      try self.apply(batch.records[carrier], to: &next, isNew: isFirst, carries: carries)
      return carries && next.carriedDigest != 0 ? .inRecord : .inStore
    }
    // Another program has folded the log, and let this commit begin it anew: the next one tells whose log it is.
    if connection.logPageCount <= pages { connection.forgetLogLength() }
    if connection.logPageCount >= SQLiteConnection.checkpointPages { foldInPassing() }
  }

  /// Returns the position of the record whose row can carry the digest of the store after a batch; `nil` where that is for `larder_store`.
  ///
  /// It must be a row of the batch's newest commit, by which opening finds it. A log begins with a commit that writes `larder_store`, which
  /// tells whose log it is, unless another program has let it begin. Processes that share a store look at `larder_store` alone.
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

  /// Returns the durability with which a batch is committed.
  ///
  /// The first buffered commit after a checkpoint is synced all the same: it says, durably, that later ones may be missing. The mark stays
  /// for as long as any process has the store open, so a row that is behind foreign commits errs on the safe side.
  func durability(of wish: Durability) -> Durability { wish == .buffered && !row.isBuffered ? .durable : wish }

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

  // MARK: Checkpoints

  /// Forgets tombstones over a limit, where there are any.
  func forgetTombstones(over limit: Int) throws(RepositoryError) {
    guard row.tombstones > limit else { return }
    try transaction(.durable) { next throws(RepositoryError) in
      try self.prune(keeping: limit, &next)
      self.clearMark(&next)
      return .inStore
    }
  }

  /// Forgets tombstones over the limit, and folds the log into the database.
  func checkpoint(keeping tombstoneLimit: Int) throws(RepositoryError) {
    try checkUse()
    try forgetTombstones(over: tombstoneLimit)
    do throws(RepositoryError) {
      // Before folding, so that it is folded once; a full disk may have room for this only afterwards.
      try settleRow()
    } catch {
      // Another program has written: this one writes nothing over it.
      if error.code == .locked { return try flush() }
      guard error.code == .full else { throw error }
    }
    do {
      try checkSpaceToFold()
      try foldEmptying()
      // Other processes' buffered commits, and this one's, are in the database by a sync of SQLite alone.
      try connection.syncOwnLog()
    } catch {
      // A reader that is still busy keeps part of the log in use; nothing is lost, and the next checkpoint goes on.
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

  /// Whether the row of `larder_store` is behind the newest commit, or marks buffered commits.
  private var isRowDue: Bool { sharing == nil && (storedRow != row || row.isBuffered) }

  /// Brings the row of `larder_store` up to the newest commit; the mark of buffered commits stays.
  func storeRow() throws(RepositoryError) {
    if sharing == nil, storedRow != row { try transaction(synchronous ?? .durable) { _ in .inStore } }
  }

  /// Brings the row of `larder_store` up to the newest commit, without the mark of buffered commits: the sync makes all before it durable.
  ///
  /// If it is cut off, what is left of the log ends before it, with the mark.
  func settleRow() throws(RepositoryError) {
    guard isRowDue else { return }
    try transaction(.durable) { next in
      self.clearMark(&next)
      return .inStore
    }
  }

  /// Takes the mark of buffered commits out; in a shared store it stays, since other processes may have written some.
  private func clearMark(_ next: inout SQLiteStoreRow) { if sharing == nil { next.isBuffered = false } }

  /// Folds what readers do not hold back.
  ///
  /// The commit before it is done, so a failure is not that commit's failure. Only a failed sync matters: it shows in the next call.
  private func foldInPassing() {
    do throws(RepositoryError) {
      try checkSpaceToFold()
      // So that the database alone is found whole by its digest; on a full disk, folding matters more.
      do throws(RepositoryError) { try storeRow() } catch { guard error.code == .full else { throw error } }
      try connection.checkpoint(.passing)
    } catch { _ = poisoned(by: error) }
  }

  /// Folds the log and empties it; in a shared store it waits so briefly that other processes do not notice.
  private func foldEmptying() throws(RepositoryError) {
    guard sharing != nil else {
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

  /// Remembers a failure after which the state of the disk is unknown, and returns it.
  func poisoned(by error: RepositoryError) -> RepositoryError {
    if error.code == .outcomeUnknown { poison = error }
    return error
  }

  /// Ends the connection and leaves the files as they are.
  func abandon() {
    connection.keepLogOnClose()
    // There is nothing to lose any more: what was acknowledged is in the log.
    do { try close() } catch {}
  }

  /// Ends the connection.
  func close() throws(RepositoryError) {
    try finalizeStatements()
    try connection.close()
  }

  /// Ends the statements, and leaves the connection open.
  func finalizeStatements() throws(RepositoryError) {
    for statement in [begin, commit, updateRow, dataVersion] { try statement.finalize() }
    try sharing?.reader.finalize()
    for table in [tombstones] + tables.values { try table.finalize() }
  }
}
