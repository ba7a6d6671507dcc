internal import Larder

extension SQLiteWriter {
  /// Throws `.full` for values that would take the reserve, after it has given space back to the disk.
  ///
  /// The reserve is the space that deleting all records takes. Checks nothing in a shared store, whose other processes do not keep a
  /// reserve. Call it before the transaction, in which no space can be given back.
  func checkSpace(for batch: WriteBatch) throws(RepositoryError) {
    guard sharing == nil, batch.records.contains(where: { $0.value != nil }) else { return }
    // Each record may change some pages beside those that its value takes.
    let bytes = batch.records.reduce(0) { $0 + $1.key.byteCount + ($1.value?.count ?? 0) }
    let needed = bytes + bytes / 8 + min(batch.records.count, 64) * 8192
    // One system call, where the exact check takes three pragmas and a read of the header.
    if SQLiteDiskSpace.isPlentiful(for: needed, beside: connection.path, on: disk) { return }
    do throws(RepositoryError) {
      return try SQLiteDiskSpace(of: connection, on: disk).check(needed)
    } catch {
      guard error.code == .full else { throw error }
    }
    giveBack()
    // Giving space back may have ended in a failed sync.
    try checkUse()
    try SQLiteDiskSpace(of: connection, on: disk).check(needed)
  }

  /// Throws `.full` when a checkpoint has no room for the pages that it adds to the file.
  func checkSpaceToFold() throws(RepositoryError) {
    guard sharing == nil else { return }
    try SQLiteDiskSpace(of: connection, on: disk).checkFold()
  }

  /// Commits deletions on a full disk, and returns the freed space to the disk.
  ///
  /// Tombstones without room are not kept. A reader that needs the deletions since then must load everything again.
  /// - Parameter tombstoneLimit: The most tombstones. Where a batch makes more, none are written, and the older ones are deleted.
  func writeOnFullDisk(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    // A batch with values is no clearing, and is committed as any other.
    guard sharing == nil, batch.records.allSatisfy({ $0.value == nil }) else { return try write(batch) }
    try checkUse()
    // The space of the log is room for the deletions.
    giveBack()
    do throws(RepositoryError) {
      try clear(batch, keeping: tombstoneLimit)
    } catch {
      guard error.code == .full, tombstoneLimit > 0 else { throw error }
      try clear(batch, keeping: 0)
    }
    giveBack()
  }

  private func clear(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    // A sync may have failed while space was given back: nothing may be acknowledged behind it.
    try checkUse()
    try transaction(.durable) { next throws(RepositoryError) in
      try self.checkOrder(batch, after: next)
      try self.clear(batch, keeping: tombstoneLimit, &next)
      next.commit = batch.commits.upperBound
      return .inStore
    }
  }

  /// Deletes records, and a whole collection in one statement, which changes no page of its records.
  private func clear(_ batch: WriteBatch, keeping tombstoneLimit: Int, _ next: inout SQLiteStoreRow) throws(RepositoryError) {
    let forgets = batch.records.count > tombstoneLimit
    var deleted: [String: [RecordAddress: UInt32]] = [:]
    for record in batch.records {
      if collections.contains(record.collection), let crc = try table(record.collection).checksum(of: record.address) {
        deleted[record.collection, default: [:]][record.address] = crc
      }
    }
    for (collection, records) in deleted {
      for crc in records.values { next.subtract(crc) }
      next.records -= records.count
      let name = SQLiteLayout.quoted(collection)
      if try connection.number("SELECT count(*) FROM \(name)") == Int64(records.count) {
        try connection.execute("DELETE FROM \(name)")
      } else {
        let table = try table(collection)
        for address in records.keys { try table.delete(address) }
      }
    }
    // After the deletions, whose pages the tombstones take: a file that grew could not be checkpointed on this disk.
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

  /// Returns the space of the write-ahead log and of free pages to the disk, as far as that has room.
  ///
  /// The log is emptied by a checkpoint first: while it is read it cannot shrink, and `VACUUM` would make it longer. If all of the store is
  /// in the log, the checkpoint has room only once `VACUUM` has made the store small.
  ///
  /// No committed data depends on it, so its failures are ignored: it is tried again before a value is refused. A reader that keeps the log
  /// in use costs its space until then. Only a failed sync matters, and the next call throws it.
  private func giveBack() {
    do throws(RepositoryError) {
      try connection.checkPresence()
      do throws(RepositoryError) {
        try fold()
      } catch {
        guard error.code == .full else { throw error }
      }
      guard try SQLiteDiskSpace(of: connection, on: disk).isCompactingWorthwhile else { return }
      try connection.withAttachment { () throws(RepositoryError) in try connection.execute("VACUUM") }
      try fold()
    } catch { _ = poisoned(by: error) }
  }

  /// Runs a truncating checkpoint, which returns the write-ahead log's space to the disk, without waiting for readers.
  private func fold() throws(RepositoryError) {
    try checkSpaceToFold()
    do throws(RepositoryError) { try storeRow() } catch { guard error.code == .full else { throw error } }
    try connection.waiting(.zero) { () throws(RepositoryError) in try connection.checkpoint(.truncating) }
  }
}
