internal import Larder

/// The additional state of a writer of a shared store, in which several processes commit in turns.
///
/// A process takes SQLite's write lock before the writes of a batch are staged, and holds it until they are committed. Between the two the
/// writer has read all commits of other processes.
struct SQLiteSharing {
  let reader: SQLiteForeignCommitReader
  let lockTimeout: Duration

  init(_ connection: SQLiteConnection, _ lockTimeout: Duration) {
    reader = SQLiteForeignCommitReader(connection, usesIndexes: true)
    self.lockTimeout = lockTimeout
  }

  /// Compares the indexes by revision with their tables, and creates missing ones.
  ///
  /// Without `comparesOthers` existing indexes are not compared: each of their uses checks the entries that it reads.
  ///
  /// An object of another program may have the name of an index. Its table then has no index, and finding foreign commits scans that table.
  static func createIndexes(
    for collections: [String], on connection: SQLiteConnection, waiting timeout: Duration, comparesOthers: Bool = true
  ) throws(RepositoryError) {
    let names = try SQLiteWriter.objectNames(on: connection)
    var missing: [String] = []
    for table in collections + [SQLiteLayout.tombstones] {
      if try hasIndex(table, on: connection) {
        if comparesOthers { try SQLiteForeignCommitReader.checkIndex(of: table, on: connection) }
      } else if !names.contains(SQLiteLayout.folded(SQLiteLayout.revisionIndex(table))) {
        missing.append(table)
      }
    }
    // Without a missing index, opening takes no write lock for which other processes would wait.
    guard !missing.isEmpty else { return }
    try connection.waiting(timeout) { () throws(RepositoryError) in try connection.execute("BEGIN IMMEDIATE") }
    // A failure ends the connection, and with it the transaction.
    for table in missing { try connection.execute(SQLiteLayout.createRevisionIndex(table)) }
    try connection.execute("COMMIT", while: .committing)
  }

  private static func hasIndex(_ table: String, on connection: SQLiteConnection) throws(RepositoryError) -> Bool {
    let statement = try connection.prepare(
      "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ?1 COLLATE NOCASE AND tbl_name = ?2")
    try statement.bind(SQLiteLayout.revisionIndex(table), at: 1)
    try statement.bind(table, at: 2)
    return try statement.number() != nil
  }
}

extension SQLiteWriter {
  /// Takes the write lock and reads the commits of other processes after a revision, or returns `nil` when there is none.
  ///
  /// Does nothing in an exclusive store.
  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try checkUse()
    guard let sharing else { return nil }
    // Before the read: no other process may commit between it and this process's batch.
    try beginTransaction(self.durability(of: durability))
    do {
      return try sharing.reader.read(after: revision, row: row)
    } catch {
      // The write lock must not outlive a call that throws.
      rollBack()
      throw error
    }
  }

  /// Rolls back a begun transaction of a shared store, which releases the write lock.
  func cancelCommit() {
    if sharing != nil, connection.isInTransaction { rollBack() }
  }

  /// Reads the store's row and the names of the collections again, within a transaction.
  func readForeignState(_ sharing: SQLiteSharing) throws(RepositoryError) {
    row = try SQLiteStoreRow(on: connection)
    storedRow = row
    // Other processes may have created collections, whose tables this one must not create again.
    if let names = try sharing.reader.newCollections() { collections = Set(names) }
  }

  /// Reads the commits of other processes after a revision without the write lock, or returns `nil` when there is none.
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try checkUse()
    guard let sharing else { return nil }
    // Read before the rows: a commit that comes between is then read twice, and never missed.
    let version = try dataVersion.number()
    guard version != knownVersion else { return nil }
    try connection.execute("BEGIN", while: .reading)
    do {
      try readForeignState(sharing)
      let commits = try sharing.reader.read(after: revision, row: row)
      try connection.execute("COMMIT", while: .reading)
      // Only after success: a failed look must be repeated.
      knownVersion = version
      return commits
    } catch {
      rollBack()
      throw error
    }
  }
}
