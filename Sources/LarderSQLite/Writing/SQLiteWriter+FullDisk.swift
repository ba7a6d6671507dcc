internal import Larder

extension SQLiteWriter {
  /// Throws `.full` if values would not leave the reserve of disk space free, even after the store has returned space to the disk.
  ///
  /// The reserve is the disk space that deleting all records takes. In a shared store the function checks nothing, because the other
  /// processes of a shared store keep no reserve. Call `checkSpace` before the transaction begins, because inside a transaction no space
  /// can be returned to the disk.
  func checkSpace(for batch: WriteBatch) throws(RepositoryError) {
    guard sharing == nil, batch.records.contains(where: { $0.value != nil }) else { return }
    // Besides the pages of its value, each record may change other pages. The estimate adds two pages for each of the first 64 records.
    let bytes =
      batch.records.reduce(0) { $0 + $1.key.byteCount + ($1.value?.count ?? 0) }
      + batch.indexEdits.reduce(0) { $0 + ($1.added?.count ?? 0) }
    // An edit of an index changes up to two pages, as a record does.
    try checkSpace(for: bytes + bytes / 8 + (min(batch.records.count, 64) + min(batch.indexEdits.count, 64)) * 8192)
  }

  /// Throws `.full` unless the disk has room for the keys of an index in the log and in the file, beside the reserve.
  ///
  /// An index is written in many transactions, and the pages of the earlier ones may be in the log alone. They need room in the file, too.
  func checkSpaceForIndex(_ byteCount: Int) throws(RepositoryError) {
    if SQLiteDiskSpace.isPlentiful(for: 2 * byteCount, beside: connection.path, on: disk) { return }
    let space = try SQLiteDiskSpace(of: connection, on: disk)
    try space.check(2 * byteCount + space.growth)
  }

  /// Throws `.full` if a number of bytes would not leave the reserve of disk space free.
  func checkSpace(for needed: Int) throws(RepositoryError) {
    // `isPlentiful` takes one system call, where the exact check takes three pragmas and a read of the file's header.
    if SQLiteDiskSpace.isPlentiful(for: needed, beside: connection.path, on: disk) { return }
    do throws(RepositoryError) {
      return try SQLiteDiskSpace(of: connection, on: disk).check(needed)
    } catch {
      guard error.code == .full else { throw error }
    }
    giveBack()
    // If a sync has failed while space was returned to the disk, no further commit may be acknowledged.
    try checkUse()
    try SQLiteDiskSpace(of: connection, on: disk).check(needed)
  }

  /// Throws `.full` when the disk has no room for the pages that a checkpoint adds to the file.
  func checkSpaceToFold() throws(RepositoryError) {
    guard sharing == nil else { return }
    try SQLiteDiskSpace(of: connection, on: disk).checkFold()
  }

  /// Commits deletions on a full disk, and returns the freed space to the disk.
  ///
  /// Tombstones that do not fit on the disk are not written. A reader that needs a deletion whose tombstone is gone must read all records
  /// again.
  /// - Parameter tombstoneLimit: The largest number of tombstones. If the batch has more deletions than `tombstoneLimit`, its tombstones
  ///   are not written, and all older tombstones are deleted.
  func writeOnFullDisk(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    // A batch that contains values does not free space, so it is committed like any other batch.
    guard sharing == nil, batch.records.allSatisfy({ $0.value == nil }) else { return try write(batch) }
    try checkUse()
    // The deletions need space in the write-ahead log, so `giveBack` first returns the log's space to the disk.
    giveBack()
    do throws(RepositoryError) {
      try clearWithIndexes(batch, keeping: tombstoneLimit)
    } catch {
      guard error.code == .full, tombstoneLimit > 0 else { throw error }
      try clear(batch.withoutIndexes, keeping: 0)
    }
    giveBack()
  }

  /// Commits deletions, and drops the indexes of the batch's collections if the disk has no room for their changed pages.
  private func clearWithIndexes(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    do throws(RepositoryError) {
      try clear(batch, keeping: tombstoneLimit)
    } catch {
      guard error.code == .full, !batch.indexes.isEmpty else { throw error }
      // Dropping an index writes a few pages, where removing its keys may write every page of the index. The tombstones take the pages that
      // the tables of keys leave free.
      try dropIndexes(of: Set(batch.records.map(\.collection)))
      try clear(batch.withoutIndexes, keeping: tombstoneLimit)
    }
  }

  private func clear(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    // If a sync has failed while space was returned to the disk, no later commit may be acknowledged.
    try checkUse()
    try transaction(editingIndexes: .durable) { next throws(RepositoryError) in
      try self.checkOrder(batch, after: next)
      try self.clear(batch, keeping: tombstoneLimit, &next)
      next.commit = batch.commits.upperBound
      try self.noteSummary(of: batch, in: next)
      return .inStore
    }
  }

  /// Deletes the records of a batch, and then either writes their tombstones or deletes all tombstones.
  ///
  /// If a whole collection is deleted, the function uses one DELETE without a condition, which changes no page of the deleted records.
  private func clear(_ batch: WriteBatch, keeping tombstoneLimit: Int, _ next: inout SQLiteStoreRow) throws(RepositoryError) {
    let forgets = batch.records.count > tombstoneLimit
    var deleted: [String: [RecordAddress: SQLiteTable.Stored]] = [:]
    for record in batch.records where collections.contains(record.collection) {
      if let stored = try table(record.collection).stored(record.address, measuring: summary != nil) {
        deleted[record.collection, default: [:]][record.address] = stored
      }
    }
    for (collection, records) in deleted {
      for stored in records.values {
        next.subtract(stored.crc)
        summary?.subtract(stored, of: collection)
      }
      next.records -= records.count
      let name = SQLiteLayout.quoted(collection)
      if try connection.number("SELECT count(*) FROM \(name)") == Int64(records.count) {
        try connection.execute("DELETE FROM \(name)")
      } else {
        let table = try table(collection)
        for address in records.keys { try table.delete(address) }
      }
    }
    try editIndexes(by: batch)
    // Tombstones are written after the deletions, so that they take the freed pages. If the tombstones made the file longer, a checkpoint
    // would have no room on the full disk.
    guard forgets else {
      for record in batch.records { try bury(record, &next, carries: false) }
      return
    }
    let all = try connection.prepare("SELECT crc FROM \(SQLiteLayout.tombstones)")
    while try all.step() { next.subtract(SQLiteChecksum(column: try all.integer(0)).crc) }
    try connection.execute("DELETE FROM \(SQLiteLayout.tombstones)")
    next.tombstones = 0
    next.tombstonesSince = batch.commits.upperBound
  }

  /// Returns the space of the write-ahead log and of free pages to the disk, as far as the disk has room for that work.
  ///
  /// A checkpoint empties the log first, because `VACUUM` would make the log longer. If the log holds the whole store, the checkpoint has
  /// room only after `VACUUM` has made the store small.
  ///
  /// No committed data depends on `giveBack`, so its failures are ignored, and `giveBack` runs again before a value is refused. If a reader
  /// uses the log, the log keeps its space until a later call of `giveBack`. Only a failed sync matters: the writer records its error, and
  /// the next call throws that error.
  private func giveBack() {
    // Space on a full disk matters more than old snapshots, whose pages in the log cannot be freed.
    bases?.supersedeOld(sparingReads: false)
    do throws(RepositoryError) {
      try connection.checkPresence()
      do throws(RepositoryError) {
        try fold()
      } catch {
        guard error.code == .full else { throw error }
      }
      try dropLeftovers()
      guard try SQLiteDiskSpace(of: connection, on: disk).isCompactingWorthwhile else { return }
      try connection.withAttachment { () throws(RepositoryError) in try connection.execute("VACUUM") }
      try fold()
    } catch { _ = poisoned(by: error) }
  }

  /// Runs a truncating checkpoint, which returns the write-ahead log's space to the disk, and does not wait for readers.
  private func fold() throws(RepositoryError) {
    try checkSpaceToFold()
    do throws(RepositoryError) { try storeRow() } catch { guard error.code == .full else { throw error } }
    if try !foldBeneathBases() { bases?.noteInTheWay() }
    try connection.waiting(.zero) { () throws(RepositoryError) in try connection.checkpoint(.truncating) }
  }
}

extension WriteBatch {
  /// The batch without the changes of its indexes, which drops the indexes.
  fileprivate var withoutIndexes: WriteBatch { WriteBatch(records: records, commits: commits, durability: durability) }
}
