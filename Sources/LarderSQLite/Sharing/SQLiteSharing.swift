internal import Larder

/// The additional state of a writer of a shared store, in which several processes commit in turns.
///
/// A process takes SQLite's write lock before it stages the writes of a batch, and holds the lock until the batch is committed. After it
/// has taken the lock, the process reads all new commits of other processes, so that its batch builds on them.
struct SQLiteSharing {
  let reader: SQLiteForeignCommitReader
  let lockTimeout: Duration

  init(_ connection: SQLiteConnection, _ lockTimeout: Duration) {
    reader = SQLiteForeignCommitReader(connection, usesIndexes: true)
    self.lockTimeout = lockTimeout
  }

  /// Compares the indexes by revision with their tables, and creates missing indexes.
  ///
  /// With `comparesOthers: false`, existing indexes are not compared with their tables. Each later read through an index by revision still
  /// checks the entries that it reads.
  ///
  /// If an object of another program has the name of an index, the table gets no index by revision. Without an index
  /// by revision, finding the commits of other processes scans the whole table.
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
    // If no index is missing, opening a store takes no write lock for which other processes would wait.
    guard !missing.isEmpty else { return }
    try connection.waiting(timeout) { () throws(RepositoryError) in try connection.execute("BEGIN IMMEDIATE") }
    // If a statement fails, the caller closes the connection, and SQLite rolls the transaction back.
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
  /// Takes the write lock and reads the commits that other processes made after a revision, or returns `nil` when there is none.
  ///
  /// In an exclusive store the function takes no lock and returns `nil`.
  func beginCommit(after revision: Revision, _ durability: Durability) throws(RepositoryError) -> ForeignCommits? {
    try checkUse()
    guard let sharing else { return nil }
    // The write lock is taken before the reading, so that no other process can commit between the reading and this process's batch.
    try beginTransaction(self.durability(of: durability))
    do {
      return try sharing.reader.read(after: revision, row: row)
    } catch {
      // The write lock must be released if the reading fails, because other processes would wait for it.
      rollBack()
      throw error
    }
  }

  /// Whether this process gets SQLite's write lock of a shared store within 50 ms, which is always so in an exclusive one.
  ///
  /// Without a wait, a process would hardly ever get the lock beside several busy writers, which wait for it.
  var canBeginCommit: Bool {
    guard let sharing, !connection.isInTransaction else { return true }
    guard poison == nil else { return false }
    do throws(RepositoryError) {
      created = []
      try connection.waiting(min(.milliseconds(50), sharing.lockTimeout)) { () throws(RepositoryError) in try begin.run() }
      rollBack()
      return true
    } catch {
      return false
    }
  }

  /// Rolls back the transaction that ``beginCommit(after:_:)`` began in a shared store, which releases the write lock.
  ///
  /// First copies a long write-ahead log into the database, because no process can commit meanwhile.
  func cancelCommit() {
    guard sharing != nil, connection.isInTransaction else { return }
    foldBeforeCommit()
    rollBack()
  }

  /// Reads the row of `larder_store` and the names of the collections again, within a transaction.
  func readForeignState(_ sharing: SQLiteSharing) throws(RepositoryError) {
    let found = try SQLiteStoreRow(on: connection)
    // Other processes may have created tables for new collections, which this process must not create again.
    if let names = try sharing.reader.newCollections() { collections = Set(names) }
    var counts = summary
    // A process with its records in memory, or an older version of Larder, commits without changing the counts.
    if counts != nil, found.commit != row.commit { counts = try SQLiteSummary.found(on: connection, of: found, and: Array(collections)) }
    // If the counts cannot be read, the row stays that of the commit before, so that the next call reads the counts again.
    (row, storedRow, summary) = (found, found, counts)
  }

  /// Reads the commits that other processes made after a revision, without the write lock, or returns `nil` when there is none.
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try checkUse()
    guard let sharing else { return nil }
    // `data_version` is read before the rows. A commit between the read of `data_version` and the read of the rows only makes the next call
    // look for commits again. If the rows were read before `data_version`, such a commit could be missed.
    let version = try dataVersion.number()
    guard version != knownVersion else { return nil }
    try connection.execute("BEGIN", while: .reading)
    do {
      try readForeignState(sharing)
      let commits = try sharing.reader.read(after: revision, row: row)
      try connection.execute("COMMIT", while: .reading)
      // The new version is stored only after the reading succeeded, because a failed reading must be repeated at the next call.
      knownVersion = version
      return commits
    } catch {
      rollBack()
      throw error
    }
  }
}
