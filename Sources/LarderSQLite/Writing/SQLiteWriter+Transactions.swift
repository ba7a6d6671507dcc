internal import Larder

extension SQLiteWriter {
  /// Runs a body in a transaction and commits it with the store's row; begins one unless ``beginCommit(after:_:)`` has.
  func transaction(
    _ durability: Durability, _ body: (inout SQLiteStoreRow) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    if !connection.isInTransaction { try beginTransaction(durability) }
    var next = row
    do {
      try body(&next)
      try next.bind(to: updateRow)
      try updateRow.run()
      try commit.run(while: .committing)
    } catch {
      rollBack()
      throw poisoned(by: error)
    }
    row = next
    hasUnsynced = synchronous == .buffered
  }

  /// Takes SQLite's write lock, and makes sure that what is known of the file is true.
  func beginTransaction(_ durability: Durability) throws(RepositoryError) {
    if synchronous != durability {
      try connection.execute("PRAGMA synchronous = \(durability == .durable ? "FULL" : "NORMAL")")
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
  /// Only the store's own row tells of commits: `data_version` also changes when an index was added by hand.
  private func checkNoForeignCommit() throws(RepositoryError) {
    let version = try dataVersion.number()
    guard version != knownVersion else { return }
    guard try SQLiteStoreRow(on: connection) == row else {
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
    do { try connection.execute("ROLLBACK") } catch { poison = error }
    if connection.isInTransaction && poison == nil {
      poison = RepositoryError(.inputOutput, "a transaction could not be rolled back", file: connection.path)
    }
  }
}
