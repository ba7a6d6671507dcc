internal import Larder

extension SQLiteWriter {
  /// The place to which a transaction writes the store's new commit number and digest.
  enum StateNote {
    /// The row of `larder_store`.
    case inStore
    /// The record or tombstone that the body wrote last, which carries half of the digest.
    case inRecord
  }

  /// Runs `body` in a transaction and commits it.
  ///
  /// Begins the transaction unless ``beginCommit(after:_:)`` has.
  /// - Parameter body: Writes rows, and returns the place of the state after them.
  func transaction(
    _ durability: Durability, _ body: (inout SQLiteStoreRow) throws(RepositoryError) -> StateNote
  ) throws(RepositoryError) {
    if !connection.isInTransaction { try beginTransaction(durability) }
    var next = row
    let note: StateNote
    do {
      note = try body(&next)
      if note == .inStore {
        try next.bind(to: updateRow)
        try updateRow.run()
      }
      try commit.run(while: .committing)
    } catch {
      rollBack()
      throw poisoned(by: error)
    }
    // Only after COMMIT: a batch that failed must leave the state in memory as it was.
    row = next
    if note == .inStore { storedRow = next }
    hasUnsynced = synchronous != .durable
    // SQLite has synced the log within COMMIT, on Apple platforms perhaps into the drive's cache only.
    guard synchronous == .durable else { return }
    do { try connection.syncOwnLog() } catch { throw poisoned(by: error) }
  }

  /// Begins a transaction under SQLite's write lock, and checks or reads the commits of other programs.
  func beginTransaction(_ durability: Durability) throws(RepositoryError) {
    // SQLite takes this pragma outside of a transaction only.
    if synchronous != durability {
      try connection.execute("PRAGMA synchronous = \(durability == .buffered ? "NORMAL" : "FULL")")
      synchronous = durability
    }
    created = []
    do {
      // A commit to a file that was removed would be acknowledged and lost.
      try connection.checkPresence()
      guard let sharing else {
        try begin.run()
        return try checkNoForeignCommit()
      }
      // An exclusive store waits for `busyTimeout` at most, since only a foreign program can hold its lock.
      try connection.waiting(sharing.lockTimeout) { () throws(RepositoryError) in try begin.run() }
      try readForeignState(sharing)
    } catch {
      rollBack()
      throw poisoned(by: error)
    }
  }

  /// Throws `.locked` when another program has committed to an exclusive store, before anything is written over it.
  ///
  /// Only the store's own row and newer records prove a commit: `data_version` also changes when an index was added by hand.
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
    // Their tables are gone with the transaction, and the next batch must create them again.
    for name in created {
      tables[name] = nil
      collections.remove(name)
    }
    guard connection.isInTransaction else { return }
    // A rollback that reads a file of a locked device fails, and ends the transaction all the same.
    do { try connection.execute("ROLLBACK") } catch { if error.code != .protectedDataUnavailable { poison = error } }
    // The next batch would be committed together with the rows of this one.
    if connection.isInTransaction && poison == nil {
      poison = RepositoryError(.inputOutput, "a transaction could not be rolled back", file: connection.path)
    }
  }
}
