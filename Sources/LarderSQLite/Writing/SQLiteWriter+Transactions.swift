internal import Larder

extension SQLiteWriter {
  /// The place in which a transaction notes the state of the store after it.
  enum StateNote {
    /// In the row of `larder_store`.
    case inStore
    /// In the row that the body wrote last, as a digest.
    case inRecord
  }

  /// Runs a body in a transaction and commits it; begins one unless ``beginCommit(after:_:)`` has.
  ///
  /// - Parameter body: Writes rows, and returns the place in which the state after them is noted.
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
    row = next
    if note == .inStore { storedRow = next }
    hasUnsynced = synchronous != .durable
    guard synchronous == .durable else { return }
    do { try connection.syncOwnLog() } catch { throw poisoned(by: error) }
  }

  /// Takes SQLite's write lock, and makes sure that what is known of the file is true.
  func beginTransaction(_ durability: Durability) throws(RepositoryError) {
    if synchronous != durability {
      try connection.execute("PRAGMA synchronous = \(durability == .buffered ? "NORMAL" : "FULL")")
      synchronous = durability
    }
    created = []
    do {
      try connection.checkPresence()
      guard let sharing else {
        try begin.run()
        return try checkNoForeignCommit()
      }
      try connection.waiting(sharing.lockTimeout) { () throws(RepositoryError) in try begin.run() }
      try readForeignState(sharing)
    } catch {
      rollBack()
      throw poisoned(by: error)
    }
  }

  /// Throws `.locked` when another program has committed to an exclusive store, before anything is written over it.
  ///
  /// Only the store's own row and newer records tell of commits: `data_version` also changes when an index was added by hand.
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

  /// Undoes everything of a transaction, unless SQLite has done so already.
  func rollBack() {
    for name in created {
      tables[name] = nil
      collections.remove(name)
    }
    guard connection.isInTransaction else { return }
    // A rollback that reads a file of a locked device fails, and ends the transaction all the same.
    do { try connection.execute("ROLLBACK") } catch { if error.code != .protectedDataUnavailable { poison = error } }
    if connection.isInTransaction && poison == nil {
      poison = RepositoryError(.inputOutput, "a transaction could not be rolled back", file: connection.path)
    }
  }
}
