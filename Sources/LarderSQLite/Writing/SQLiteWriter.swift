// Writing/ commits batches: transactions, records, tombstones, and the space that they take on the disk.
// Invariant: a batch is one transaction, and what is known of the file changes only after COMMIT has succeeded. Called by SQLiteStore.

internal import Foundation
internal import Larder

/// The one connection of a store through which batches are written, with the statements that it keeps prepared.
///
/// Invariant: `row`, `collections` and `tables` are what the file holds as of the last commit, or within the current transaction.
final class SQLiteWriter {
  let connection: SQLiteConnection
  let disk: SQLiteDisk
  var row: SQLiteStoreRow
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

  /// The pages of the log after which a commit folds them into the database.
  static let checkpointPages = 1_000

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
    self.collections = Set(collections)
  }

  // MARK: Batches

  /// Writes a batch in one transaction: all or none.
  func write(_ batch: WriteBatch) throws(RepositoryError) {
    try checkUse()
    if sharing == nil { try checkOrder(batch, after: row) }
    try checkSpace(for: batch)
    try transaction(durability(of: batch.durability)) { next throws(RepositoryError) in
      try self.checkOrder(batch, after: next)
      // In a store without records and tombstones there is nothing to look up.
      let isFirst = next.records == 0 && next.tombstones == 0
      // In their order, each page of a table's tree is met once.
      for position in SQLiteRecordOrder(batch.records).positions {
        try self.apply(batch.records[position], to: &next, isNew: isFirst)
      }
      next.commit = batch.commits.upperBound
      if batch.durability == .buffered { next.isBuffered = true }
    }
    if connection.logPageCount >= Self.checkpointPages { foldInPassing() }
  }

  /// Throws `.unsupported` unless a batch starts one above the newest commit.
  func checkOrder(_ batch: WriteBatch, after row: SQLiteStoreRow) throws(RepositoryError) {
    guard batch.commits.lowerBound == row.commit + 1, batch.commits.upperBound <= UInt64(Int64.max) else {
      throw RepositoryError(
        .unsupported, "expected a batch from commit \(row.commit + 1), found one from \(batch.commits.lowerBound)", file: connection.path)
    }
  }

  /// Returns the durability with which a batch is committed.
  ///
  /// The first buffered commit after a checkpoint is synced all the same: it says, durably, that later ones may be missing. The mark stays
  /// for as long as any process has the store open, so a row that is behind foreign commits errs on the safe side.
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

  // MARK: Checkpoints

  /// Forgets tombstones over a limit, where there are any.
  func forgetTombstones(over limit: Int) throws(RepositoryError) {
    guard row.tombstones > limit else { return }
    try transaction(.durable) { next throws(RepositoryError) in
      try self.prune(keeping: limit, &next)
      self.clearMark(&next)
    }
  }

  /// Forgets tombstones over the limit, and folds the log into the database.
  func checkpoint(keeping tombstoneLimit: Int) throws(RepositoryError) {
    try checkUse()
    try forgetTombstones(over: tombstoneLimit)
    // Before folding, so that it is folded once; a full disk may have room for this only afterwards.
    do throws(RepositoryError) { try clearMark() } catch { guard error.code == .full else { throw error } }
    do {
      try checkSpaceToFold()
      try foldEmptying()
    } catch {
      // A reader that is still busy keeps part of the log in use; nothing is lost, and the next checkpoint goes on.
      if error.code == .locked { return try flush() }
      throw poisoned(by: error)
    }
    hasUnsynced = false
    guard row.isBuffered, sharing == nil else { return }
    try clearMark()
    do { try connection.checkpoint(truncating: true) } catch { if error.code != .locked { throw poisoned(by: error) } }
  }

  /// Notes that no commit is buffered any more, if that is noted: the sync of this commit makes all before it durable.
  ///
  /// If it is cut off, what is left of the log ends before it, with the mark.
  func clearMark() throws(RepositoryError) {
    guard row.isBuffered, sharing == nil else { return }
    try transaction(.durable) { next throws(RepositoryError) in self.clearMark(&next) }
  }

  /// Takes the mark of buffered commits out; in a shared store it stays, since other processes may have written some.
  private func clearMark(_ next: inout SQLiteStoreRow) { if sharing == nil { next.isBuffered = false } }

  /// Folds what readers do not hold back.
  ///
  /// The commit before it is done, so a failure is not that commit's failure. Only a failed sync matters: it shows in the next call.
  private func foldInPassing() {
    do {
      try checkSpaceToFold()
      try connection.checkpoint(truncating: false)
    } catch { _ = poisoned(by: error) }
  }

  /// Folds the log and empties it; in a shared store it waits so briefly that other processes do not notice.
  private func foldEmptying() throws(RepositoryError) {
    guard sharing != nil else { return try connection.checkpoint(truncating: true) }
    try connection.waiting(.milliseconds(500)) { () throws(RepositoryError) in try connection.checkpoint(truncating: true) }
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
    for statement in [begin, commit, updateRow, dataVersion] { try statement.finalize() }
    try sharing?.reader.finalize()
    for table in [tombstones] + tables.values { try table.finalize() }
    try connection.close()
  }
}
