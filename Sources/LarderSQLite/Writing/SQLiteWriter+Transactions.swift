internal import Larder

extension SQLiteWriter {
  /// The place to which a transaction writes the store's new commit number and digest.
  enum StateNote {
    /// The row of `larder_store`, which holds the state of the store.
    case inStore
    /// The row of the record or tombstone that the transaction's body wrote last, which carries half of the digest.
    case inRecord
  }

  /// Runs `body` in a transaction and commits the transaction.
  ///
  /// Begins a transaction unless ``beginCommit(after:_:)`` has already begun one.
  /// - Parameter body: Writes rows, and returns the place to which the new commit number and digest are written.
  func transaction(
    _ durability: Durability, _ body: (inout SQLiteStoreRow) throws(RepositoryError) -> StateNote
  ) throws(RepositoryError) {
    if !connection.isInTransaction { try beginTransaction(durability) }
    var next = row
    let (summaryBefore, indexesBefore) = (summary, indexes)
    let note: StateNote
    do {
      note = try body(&next)
      if note == .inStore {
        // SQLite does not write a page whose bytes stay the same. Without the row's page in the last transaction of the log, an opening
        // after a kill takes the counts of the collections for those of an earlier commit.
        if next == storedRow { try connection.execute(SQLiteStoreRow.touch) }
        try next.bind(to: updateRow)
        try updateRow.run()
      }
      try commit.run(while: .committing)
    } catch {
      let isTableDamaged = indexes.isTableDamaged
      (summary, indexes) = (summaryBefore, indexesBefore)
      if isTableDamaged { indexes.noteDamagedTable() }
      // The rollback removes the tables of keys that this transaction has created, and a later one may use their numbers.
      let numbers = Set(indexes.entries.values.map(\.number))
      indexTables = indexTables.filter { numbers.contains($0.key) }
      rollBack()
      throw poisoned(by: error)
    }
    // The state in memory changes only after COMMIT, because a failed batch must leave it as it was.
    row = next
    if note == .inStore { storedRow = next }
    hasUnsynced = synchronous != .durable
    // COMMIT has synced the write-ahead log, but on Apple platforms perhaps only into the drive's cache, so the log is synced once more.
    guard synchronous == .durable else { return }
    do { try connection.syncOwnLog() } catch { throw poisoned(by: error) }
  }

  /// Begins a transaction under SQLite's write lock.
  ///
  /// In an exclusive store the function throws `.locked` if another program has committed. In a shared store it reads the row of
  /// `larder_store` and the names of the collections again.
  func beginTransaction(_ durability: Durability) throws(RepositoryError) {
    // SQLite refuses a change of `PRAGMA synchronous` inside a transaction, so it is set before the transaction begins.
    if synchronous != durability {
      try connection.execute("PRAGMA synchronous = \(durability == .buffered ? "NORMAL" : "FULL")")
      synchronous = durability
    }
    created = []
    do {
      // If the database or its log was removed, a commit to it would be acknowledged and then lost.
      try connection.checkPresence()
      guard let sharing else {
        try begin.run()
        return try checkNoForeignCommit()
      }
      // An exclusive store waits at most `busyTimeout` for the write lock, because only a program without Larder can hold its write lock.
      try connection.waiting(sharing.lockTimeout) { () throws(RepositoryError) in try begin.run() }
      try readForeignState(sharing)
    } catch {
      rollBack()
      throw poisoned(by: error)
    }
  }

  /// Throws `.locked` when another program has committed to an exclusive store, before anything is written over that commit.
  ///
  /// A changed `data_version` does not prove that records were written, because it also changes when an index is added by hand. A changed
  /// row of `larder_store` or a record newer than the last commit proves a commit.
  private func checkNoForeignCommit() throws(RepositoryError) {
    let version = try dataVersion.number()
    guard version != knownVersion else { return }
    var isUnchanged = try SQLiteStoreRow(on: connection) == storedRow
    if isUnchanged { isUnchanged = try !connection.hasRecords(after: row.commit) }
    guard isUnchanged else {
      throw RepositoryError(
        .locked, "another program has written to this store since it was opened: close the store, and open it again", file: connection.path)
    }
    knownVersion = version
  }

  /// Rolls the transaction back, unless SQLite has done so already.
  func rollBack() {
    // The rollback removes the tables that this transaction created, so the next batch must create them again.
    for name in created {
      tables[name] = nil
      collections.remove(name)
    }
    guard connection.isInTransaction else { return }
    // While a device is locked, a rollback that must read the database file fails, but the transaction ends all the same.
    do { try connection.execute("ROLLBACK") } catch { if error.code != .protectedDataUnavailable { poison = error } }
    // If the transaction stayed open, the next batch would be committed together with the rows of the failed batch.
    if connection.isInTransaction && poison == nil {
      poison = RepositoryError(.inputOutput, "a transaction could not be rolled back", file: connection.path)
    }
  }
}
