internal import Foundation
internal import Larder

/// What a writer has that writes beside others.
///
/// SQLite's write lock is what makes them take turns: it is taken before the writes of a batch are staged and held until they are
/// committed, and between the two the writer knows everything that the file holds.
final class SQLiteSharing {
  let reader: SQLiteForeignReader
  let lockTimeout: Duration
  /// SQLite's number for the last commit of others that was looked at.
  fileprivate var dataVersion: Int64?

  init(_ connection: SQLiteConnection, _ lockTimeout: Duration) {
    reader = SQLiteForeignReader(connection, usesIndexes: true)
    self.lockTimeout = lockTimeout
  }

  /// Checks the indexes by revision, and makes those that are missing.
  static func createIndexes(
    for collections: [String], on connection: SQLiteConnection, waiting timeout: Duration
  ) throws(RepositoryError) {
    let names = try SQLiteWriter.objectNames(on: connection)
    let missing = (collections + [SQLiteLayout.tombstones]).filter {
      !names.contains(SQLiteLayout.folded(SQLiteLayout.revisionIndex($0)))
    }
    for name in collections + [SQLiteLayout.tombstones] where !missing.contains(name) {
      try SQLiteForeignReader.checkIndex(of: name, on: connection)
    }
    guard !missing.isEmpty else { return }
    try connection.waiting(timeout) { () throws(RepositoryError) in try connection.execute("BEGIN IMMEDIATE") }
    // A failure ends the connection, and with it the transaction.
    for name in missing { try connection.execute(SQLiteLayout.createRevisionIndex(name)) }
    try connection.execute("COMMIT", while: .committing)
  }
}

extension SQLiteWriter {
  /// Takes the write lock, and reads what others have committed.
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

  func cancelCommit() {
    if sharing != nil, connection.isInTransaction { rollBack() }
  }

  /// Brings what is known of the file up to its state now, within a transaction.
  func followOthers(_ sharing: SQLiteSharing) throws(RepositoryError) {
    row = try SQLiteStoreRow(on: connection)
    guard let names = try sharing.reader.newCollections() else { return }
    collections = Set(names)
    foldedNames = try Self.objectNames(on: connection)
  }

  /// Returns what others have committed after a revision; `nil` when nothing was.
  func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try checkUse()
    guard let sharing else { return nil }
    // The number is read first: a commit that comes between is then looked at twice.
    let version = try connection.prepare("PRAGMA data_version").number()
    guard version != sharing.dataVersion else { return nil }
    try connection.execute("BEGIN", while: .reading)
    do {
      try followOthers(sharing)
      let commits = try sharing.reader.read(after: revision, row: row)
      try connection.execute("COMMIT", while: .reading)
      sharing.dataVersion = version
      return commits
    } catch {
      rollBack()
      throw error
    }
  }
}
