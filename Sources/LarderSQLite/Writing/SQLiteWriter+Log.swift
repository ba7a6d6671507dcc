internal import Foundation
internal import Larder

/// The length of the write-ahead log, and the checkpoints that bound it, also beneath the bases that read the store.
extension SQLiteWriter {
  /// Notes the length of the write-ahead log after a transaction, and runs a checkpoint if the log is long.
  ///
  /// - Parameter pages: Length of the log before the transaction.
  func noteLog(after pages: Int) {
    bases?.leftLength = 0
    // If the log did not grow, another program has run a checkpoint, and this commit began the log anew. Forgetting the log's length sets
    // the known length to 0. The next commit then writes the row of `larder_store`, which shows to which store the log belongs.
    if connection.logPageCount <= pages { connection.forgetLogLength() }
    // While bases read the log, a checkpoint cannot copy all of it. The store makes the checkpoint before its next commit.
    if connection.logPageCount >= SQLiteConnection.checkpointPages, bases?.areUsed != true { foldInPassing() }
  }

  /// Runs a checkpoint after a commit, without waiting for readers.
  ///
  /// The commit before the checkpoint is complete, so a failed checkpoint does not make that commit fail. Only a failed sync matters: the
  /// writer records its error, and the next call throws that error.
  private func foldInPassing() {
    do throws(RepositoryError) {
      try checkSpaceToFold()
      // With an up-to-date row of `larder_store`, the database has the whole digest of its rows even without the log. On a full disk that
      // row is not written, because the checkpoint matters more.
      do throws(RepositoryError) { try storeRow() } catch { guard error.code == .full else { throw error } }
      try connection.checkpoint(.passing)
    } catch { _ = poisoned(by: error) }
  }

  /// Copies the write-ahead log into the database and empties the log.
  ///
  /// In a shared store the checkpoint waits at most half a second, so that it does not delay other processes for longer.
  func foldEmptying() throws(RepositoryError) {
    // A checkpoint that waits for readers would wait in vain for the bases of this store. In a shared store, other processes may commit
    // now, and the bases would begin anew at a later commit.
    guard sharing == nil || bases?.areUsed != true, try foldBeneathBases() else {
      // Beside a base that reads the database alone, this checkpoint copies and syncs nothing, and it never empties the log.
      bases?.leftLength = max(connection.logPageCount, bases?.leftLength ?? 0)
      try connection.checkpoint(.passing)
      return try connection.syncLog()
    }
    guard sharing != nil else {
      // A log file that keeps its size after a checkpoint makes later commits faster. On a nearly full disk the log is truncated, because
      // free space matters more.
      let isPlentiful = SQLiteDiskSpace.isPlentiful(for: 0, beside: connection.path, on: disk)
      try connection.checkpoint(isPlentiful ? .marking : .truncating)
      return
    }
    try connection.waiting(.milliseconds(500)) { () throws(RepositoryError) in _ = try connection.checkpoint(.truncating) }
  }

  /// Copies the write-ahead log into the database, so that the next commit can begin the log anew although bases read the store.
  ///
  /// A base keeps the log from being copied beyond its commit, or at all if it reads the database alone. After everything was copied, a
  /// base whose read transaction begins anew reads the database alone, and needs no page of the log.
  /// - Returns: False if a base of an older commit is in use. True also if no base is in use, and nothing was copied.
  func foldBeneathBases() throws(RepositoryError) -> Bool {
    guard let bases, bases.areUsed else { return true }
    guard !bases.areOlder(than: row.commit) else { return false }
    try bases.pinAgain(keeping: indexes.complete)
    guard try copyLog() else {
      bases.noteKeptLog()
      return true
    }
    try bases.pinAgain(keeping: indexes.complete)
    bases.noteEmptyLog(ofSize: try logFileSize())
    return true
  }

  /// Copies the write-ahead log into the database, or returns false if another process reads an older commit.
  private func copyLog() throws(RepositoryError) -> Bool {
    guard sharing != nil else {
      try connection.checkpoint(.passing)
      return true
    }
    // This connection is in the transaction that keeps other processes from committing, in which SQLite runs no checkpoint.
    // If the database was removed, the next commit reports it.
    guard let other = try SQLiteConnection(path: connection.path, .readWrite) else { return false }
    other.keepLogOnClose()
    try other.prepareForWriting()
    let isWhole = try other.checkpoint(.passing)
    try other.close()
    if isWhole { connection.forgetLogLength() }
    return isWhole
  }

  /// Returns the length of the write-ahead log, in pages, after the newest commit of this process.
  ///
  /// In a shared store, the size of the log's file may show a longer log, to which other processes have written.
  func logLength() throws(RepositoryError) -> Int {
    let own = max(connection.logPageCount, bases?.leftLength ?? 0)
    guard sharing != nil, let bases else { return own }
    return max(own, bases.addedPageCount(inFileOfSize: try logFileSize()))
  }

  private func logFileSize() throws(RepositoryError) -> Int {
    Int(clamping: try SQLitePath.status(of: connection.path + "-wal")?.st_size ?? 0)
  }

  /// Copies a long write-ahead log into the database, if bases have kept the commits before from doing so.
  ///
  /// Call it before a commit to an exclusive store, and in the transaction of ``beginCommit(after:_:)`` in a shared one. A failed
  /// checkpoint does not make the commit fail. Only a failed sync matters: the writer records its error.
  func foldBeforeCommit() {
    guard let bases, bases.areUsed else { return }
    do throws(RepositoryError) {
      let length = try logLength()
      guard length >= SQLiteConnection.checkpointPages else { return }
      // The log of a store with an old snapshot would grow without a bound.
      let isPlentiful = SQLiteDiskSpace.isPlentiful(for: 0, beside: connection.path, on: disk)
      let limit = isPlentiful ? try logLimit() : SQLiteConnection.checkpointPages
      let isTooLong = length >= limit
      // On a disk with little space, the log must not take the space in which it is to be copied.
      if isTooLong { bases.supersedeOld(sparingReads: isPlentiful && length / 4 < limit) }
      try checkSpaceToFold()
      do throws(RepositoryError) { try storeRow() } catch { guard error.code == .full else { throw error } }
      guard try !foldBeneathBases() else { return }
      if isTooLong { bases.noteInTheWay() }
      // The readers of an older base may be done with it soon.
      if sharing != nil { bases.noteKeptLog() }
    } catch {
      // Another process may be running a checkpoint.
      if sharing != nil { bases.noteKeptLog() }
      _ = poisoned(by: error)
    }
  }

  /// Returns the length of the write-ahead log, in pages, at which older bases are superseded on a disk with much space.
  private func logLimit() throws(RepositoryError) -> Int {
    // In a large store, a walk through all records takes longer.
    max(SQLiteBases.logLimit, Int(clamping: try connection.number("PRAGMA page_count") ?? 0))
  }
}
