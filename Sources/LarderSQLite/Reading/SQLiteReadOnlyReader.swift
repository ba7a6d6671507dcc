internal import Foundation
internal import Larder

/// Reads a store beside its writers, if there are any, without the lock; writes nothing.
final class SQLiteBeside {
  private let path: SQLitePath
  private let fileSystem: any FileSystem
  /// What the files looked like when a look last found nothing new, and after which revision.
  private var quiet: (state: SQLiteFileState, revision: Revision)?

  init(_ path: SQLitePath, _ fileSystem: any FileSystem) {
    self.path = path
    self.fileSystem = fileSystem
  }

  /// Reads everything, all problems included if they are not to stop it.
  func readAll(stopsAtDamage: Bool = true) throws(RepositoryError) -> (SQLiteReader, [[StoredRecord]]) {
    try read { connection, _ throws(RepositoryError) in
      let reader = try SQLiteReader(connection, stopsAtDamage: stopsAtDamage)
      var chunks: [[StoredRecord]] = []
      while let chunk = try reader.next() { chunks.append(chunk) }
      return ((reader, chunks), reader.problems.isEmpty)
    }
  }

  /// Returns what was committed after a revision; `nil` when nothing was.
  ///
  /// Opens the file only when it or its log has changed since the last look.
  func commits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    let state = try SQLiteFileState(path)
    if let state, let quiet, quiet.state == state, quiet.revision == revision { return nil }
    let commits = try newCommits(after: revision)
    quiet = nil
    if let state, commits == nil, state.isSettled { quiet = (state, revision) }
    return commits
  }

  private func newCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try read { connection, mode throws(RepositoryError) in
      try connection.execute("BEGIN", while: .reading)
      let row = try SQLiteStoreRow(on: connection)
      if row.commit == revision.number { return (nil, true) }
      if mode != .immutable {
        let reader = SQLiteForeignReader(connection)
        _ = try reader.newCollections()
        return (try reader.read(after: revision, row: row), true)
      }
      // Without a log there is no transaction to read in: only all of the file together shows whether it is of one piece.
      try connection.execute("COMMIT", while: .reading)
      return (try Self.everything(after: revision, on: connection), true)
    }
  }

  private static func everything(after revision: Revision, on connection: SQLiteConnection) throws(RepositoryError) -> ForeignCommits {
    let reader = try SQLiteReader(connection)
    guard reader.row.commit >= revision.number else { throw connection.damaged("the store has gone back to an earlier commit") }
    var records: [StoredRecord] = []
    var addresses: Set<RecordAddress> = []
    while let chunk = try reader.next() {
      for record in chunk {
        if record.value != nil { addresses.insert(record.address) }
        if record.revision > revision { records.append(record) }
      }
    }
    return ForeignCommits(commit: Revision(reader.row.commit), records: records, addresses: addresses)
  }

  /// Runs a body on a connection; it returns whether what it read is sound.
  ///
  /// Without a log nobody writes the file, and SQLite can read it without making files of its own. A writer that comes and folds its log into
  /// the file meanwhile is noticed by what is read, or by its log; then all is read again, in a proper transaction if there is a log
  /// now. Damage that is met twice without a log is damage.
  private func read<Result>(
    _ body: (SQLiteConnection, SQLiteConnection.Mode) throws(RepositoryError) -> (Result, isSound: Bool)
  ) throws(RepositoryError) -> Result {
    var attempt = 1
    try path.checkRollbackJournal(fileSystem)
    while try !hasLog() {
      do throws(RepositoryError) {
        let (result, isSound) = try read(.immutable, body)
        if try !hasLog(), isSound || attempt == 2 { return result }
      } catch {
        let isAlone = try !hasLog()
        if error.code != .corrupted || (attempt == 2 && isAlone) { throw error }
      }
      attempt += 1
    }
    if let result = try readWithoutTrace(body) { return result }
    return try read(.readOnly, body).0
  }

  /// Reads a log that an unclean end has left, and makes no file; `nil` when somebody has the store open, or had meanwhile.
  ///
  /// Who uses a log has an index of it, so where there is none before and after, and database and log have not changed, nobody came between.
  private func readWithoutTrace<Result>(
    _ body: (SQLiteConnection, SQLiteConnection.Mode) throws(RepositoryError) -> (Result, isSound: Bool)
  ) throws(RepositoryError) -> Result? {
    guard SQLitePath.isAbsent(path.logIndex), let before = try SQLiteFileState(path) else { return nil }
    do throws(RepositoryError) {
      let result = try read(.withoutTrace, body).0
      return try isUnused(since: before) ? result : nil
    } catch {
      guard try isUnused(since: before) else { return nil }
      throw error
    }
  }

  private func isUnused(since state: SQLiteFileState) throws(RepositoryError) -> Bool {
    let now = try SQLiteFileState(path)
    return SQLitePath.isAbsent(path.logIndex) && now == state
  }

  private func hasLog() throws(RepositoryError) -> Bool {
    guard let file = try fileSystem.open(path.log, writable: false) else { return false }
    return try file.size() > 0
  }

  private func read<Result>(
    _ mode: SQLiteConnection.Mode, _ body: (SQLiteConnection, SQLiteConnection.Mode) throws(RepositoryError) -> (Result, isSound: Bool)
  ) throws(RepositoryError) -> (Result, isSound: Bool) {
    guard let connection = try SQLiteConnection(path: path.main, mode) else {
      throw RepositoryError(.dataMissing, "there is no such file", file: path.main)
    }
    let (bytes, size) = try connection.header()
    try SQLiteLayout.check(header: bytes, size: size, file: path.main)
    return try body(connection, mode)
  }
}
