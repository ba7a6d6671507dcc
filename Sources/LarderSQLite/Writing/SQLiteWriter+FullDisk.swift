internal import Larder

extension SQLiteWriter {
  /// Throws `.full` for values that would take the reserve, once all space was given back that can be.
  ///
  /// Checks nothing in a shared store, whose other processes do not keep a reserve. Called before the transaction, in which nothing can be
  /// given back.
  func checkSpace(for batch: WriteBatch) throws(RepositoryError) {
    guard sharing == nil, batch.records.contains(where: { $0.value != nil }) else { return }
    // Each record may change some pages beside those that its value takes.
    let bytes = batch.records.reduce(0) { $0 + $1.key.byteCount + ($1.value?.count ?? 0) }
    let needed = bytes + bytes / 8 + min(batch.records.count, 64) * 8192
    if SQLiteDiskSpace.isPlentiful(for: needed, beside: connection.path, on: disk) { return }
    do throws(RepositoryError) {
      return try SQLiteDiskSpace(of: connection, on: disk).check(needed)
    } catch {
      guard error.code == .full else { throw error }
    }
    giveBack()
    try checkUse()
    try SQLiteDiskSpace(of: connection, on: disk).check(needed)
  }

  /// Throws `.full` when folding the log has no room.
  func checkSpaceToFold() throws(RepositoryError) {
    guard sharing == nil else { return }
    try SQLiteDiskSpace(of: connection, on: disk).checkFold()
  }

  /// Commits deletions, and gives the space back that they free.
  ///
  /// Tombstones without room are forgotten: a reader that asks for the deletions since then must load everything again.
  /// - Parameter tombstoneLimit: The most tombstones; where a batch makes more, none are written, and the older ones forgotten.
  func writeOnFullDisk(_ batch: WriteBatch, keeping tombstoneLimit: Int) throws(RepositoryError) {
    // What has values is no clearing, and is committed as any batch is.
    guard sharing == nil, batch.records.allSatisfy({ $0.value == nil }) else { return try write(batch) }
    try checkUse()
    // What the log has given back is room for the deletions.
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

  /// Deletes records; a whole collection in one statement, which changes no page of its records.
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
    // After the deletions, whose pages they take: a file that grew could not be folded.
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

  /// Returns the space of the log and of free pages to a full disk, as far as that has room.
  ///
  /// The log is folded first: while it is read it cannot shrink, and `VACUUM` would make it longer. Where all of the store is in the log,
  /// folding has room only once `VACUUM` has made the store small.
  ///
  /// Nothing that was committed depends on it, so its failures are ignored: it is tried again before a value is refused. A reader that
  /// keeps the log in use costs its space until then. Only a failed sync matters, and shows in the next call.
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

  /// Folds the log and gives its space back, without waiting for readers.
  private func fold() throws(RepositoryError) {
    try checkSpaceToFold()
    do throws(RepositoryError) { try storeRow() } catch { guard error.code == .full else { throw error } }
    try connection.waiting(.zero) { () throws(RepositoryError) in try connection.checkpoint(.truncating) }
  }
}
