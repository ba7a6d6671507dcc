internal import Larder

extension SQLiteWriter {
  /// Takes the write lock, and reads the foreign commits after a revision; `nil` when there is none, or the store is exclusive.
  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try checkUse()
    guard let sharing else { return nil }
    try beginTransaction(self.durability(of: durability))
    do {
      return try sharing.reader.read(after: revision, row: row)
    } catch {
      rollBack()
      throw error
    }
  }

  /// Gives the write lock back.
  func cancelCommit() {
    if sharing != nil, connection.isInTransaction { rollBack() }
  }

  /// Updates what is known of the file to its state now, within a transaction.
  func readForeignState(_ sharing: SQLiteSharing) throws(RepositoryError) {
    row = try SQLiteStoreRow(on: connection)
    storedRow = row
    if let names = try sharing.reader.newCollections() { collections = Set(names) }
  }

  /// Reads the foreign commits after a revision, without the write lock; `nil` when there is none.
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try checkUse()
    guard let sharing else { return nil }
    // The number is read first: a commit that comes between is then read twice.
    let version = try dataVersion.number()
    guard version != knownVersion else { return nil }
    try connection.execute("BEGIN", while: .reading)
    do {
      try readForeignState(sharing)
      let commits = try sharing.reader.read(after: revision, row: row)
      try connection.execute("COMMIT", while: .reading)
      knownVersion = version
      return commits
    } catch {
      rollBack()
      throw error
    }
  }
}
