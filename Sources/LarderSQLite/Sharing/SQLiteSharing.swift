internal import Larder

/// The state of a writer of a shared store.
///
/// SQLite's write lock makes processes take turns: it is taken before the writes of a batch are staged and held until they are committed,
/// and between the two the writer knows everything that the file holds.
struct SQLiteSharing {
  let reader: SQLiteForeignCommitReader
  let lockTimeout: Duration

  init(_ connection: SQLiteConnection, _ lockTimeout: Duration) {
    reader = SQLiteForeignCommitReader(connection, usesIndexes: true)
    self.lockTimeout = lockTimeout
  }

  /// Compares the indexes by revision with their tables, and creates those that are missing.
  ///
  /// Without `comparesOthers` the indexes that are there are not compared: each of their uses looks at what it reads.
  ///
  /// An object of another program may have the name of one. Its table then has none, and finding foreign commits scans that table.
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
