// Reading/ reads stores: all records of one, the foreign commits of one, and a store that other processes may be writing.
// Invariant: nothing is written, and every record that is returned matched its checksum.
// Called by Opening/, Sharing/ and SQLiteStore.

internal import Foundation
internal import Larder

/// A reader of a store that other processes may be writing, which takes no lock and writes nothing.
final class SQLiteReadOnlyReader {
  private let path: SQLitePath
  private let fileSystem: any FileSystem
  /// State of the files, and the newest commit known, when the last look found no foreign commit.
  private var quiet: (state: SQLiteFileState, revision: Revision)?

  /// Whether an existing `-shm` file, SQLite's index of the write-ahead log, is ignored if no process uses it.
  ///
  /// SQLite would write such an index anew.
  private let ignoresUnusedIndex: Bool

  init(_ path: SQLitePath, _ fileSystem: any FileSystem, ignoresUnusedIndex: Bool = false) {
    self.path = path
    self.fileSystem = fileSystem
    self.ignoresUnusedIndex = ignoresUnusedIndex
  }

  /// Reads every row of the store, and stops at the first damage or collects all problems.
  func readAll(
    stopsAtDamage: Bool = true, limits: StoreOptions.Limits? = nil
  ) throws(RepositoryError) -> (SQLiteScan, [[LoadedRecords]]) {
    try read { connection, _ throws(RepositoryError) in
      let scan = try SQLiteScan(connection, stopsAtDamage: stopsAtDamage, limits: limits)
      var chunks: [[LoadedRecords]] = []
      while let chunk = try scan.next() { chunks.append(chunk) }
      return ((scan, chunks), scan.problems.isEmpty)
    }
  }

  /// Compares every checksum, runs SQLite's `integrity_check`, and collects all problems.
  func verify() throws(RepositoryError) -> (scan: SQLiteScan, problems: [RepositoryError]) {
    try read { connection, _ throws(RepositoryError) in
      let scan = try SQLiteScan(connection, stopsAtDamage: false)
      while try scan.next() != nil {}
      let problems = try scan.problems + SQLiteStore.integrityProblems(connection)
      return ((scan, problems), problems.isEmpty)
    }
  }

  /// Runs `body`, which copies the whole store, and runs it again if the store was written meanwhile without a write-ahead log.
  ///
  /// A log keeps the commits of a writer apart from the read transaction of the copy.
  func copy(_ body: (SQLiteConnection) throws(RepositoryError) -> Void) throws(RepositoryError) {
    try read { connection, mode throws(RepositoryError) in
      let before = try SQLiteFileState(path)
      try body(connection)
      let now = try SQLiteFileState(path)
      return ((), isSound: mode != .immutable || now == before)
    }
  }

  /// Reads the commits of other processes after a revision, or returns `nil` when there is none.
  ///
  /// Opens the file only when it or its log has changed since the last call.
  func commits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    // Before the look: a commit meanwhile then shows in the next state.
    let state = try SQLiteFileState(path)
    if let state, let quiet, quiet.state == state, quiet.revision == revision { return nil }
    let commits = try newCommits(after: revision)
    quiet = nil
    // A file changed within the last seconds may change again without another time stamp.
    if let state, commits == nil, state.isSettled { quiet = (state, revision) }
    return commits
  }

  private func newCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    try read { connection, mode throws(RepositoryError) in
      try connection.execute("BEGIN", while: .reading)
      let row = try SQLiteStoreRow(on: connection)
      let reader = SQLiteForeignCommitReader(connection)
      _ = try reader.newCollections()
      if mode != .immutable { return (try reader.readNewest(after: revision, row: row), true) }
      if row.commit == revision.number, try !connection.hasRecords(after: row.commit) { return (nil, true) }
      // Without a log there is no transaction to read in. Only the digest of all rows shows whether the file is of one piece.
      try connection.execute("COMMIT", while: .reading)
      return (try Self.everything(after: revision, on: connection), true)
    }
  }

  private static func everything(after revision: Revision, on connection: SQLiteConnection) throws(RepositoryError) -> ForeignCommits? {
    let scan = try SQLiteScan(connection)
    var records: [StoredRecord] = []
    var addresses: Set<RecordAddress> = []
    while let chunk = try scan.next() {
      for loaded in chunk {
        loaded.forEach { record in
          if record.value != nil { addresses.insert(record.address) }
          if record.revision > revision { records.append(record) }
        }
      }
    }
    guard scan.row.commit != revision.number else { return nil }
    // A backup that was copied over an open store would otherwise make commits vanish without an error.
    guard scan.row.commit > revision.number else { throw connection.wentBack(to: scan.row.commit, from: revision) }
    return ForeignCommits(commit: Revision(scan.row.commit), records: records, addresses: addresses)
  }

  /// Runs `body` on a connection that reads, and again if another process has written the file meanwhile.
  ///
  /// Without a log nothing writes the file, and SQLite can read it without making files of its own. A writer that comes meanwhile and
  /// copies its log into the file shows in the rows, or by its log. Then everything is read again, in a read transaction if there is a log
  /// now. Damage that is found twice without a log is damage. The body also returns whether it found no damage.
  private func read<Result>(
    _ body: (SQLiteConnection, SQLiteConnection.Mode) throws(RepositoryError) -> (Result, isSound: Bool)
  ) throws(RepositoryError) -> Result {
    var attempt = 1
    // SQLite would roll a journal into the database, also for a connection that reads.
    try path.checkRollbackJournal(fileSystem)
    while try !path.hasLog(on: fileSystem) {
      do throws(RepositoryError) {
        let (result, isSound) = try read(.immutable, body)
        // A writer that runs checkpoints without a pause may come between twice.
        if try !path.hasLog(on: fileSystem), isSound || attempt == 4 { return result }
      } catch {
        let isUnwritten = try !path.hasLog(on: fileSystem)
        // Rows torn by another process's checkpoint are whole at the next attempt. Damage is found again.
        if error.code != .corrupted || (attempt == 2 && isUnwritten) { throw error }
      }
      attempt += 1
    }
    // Tried before the mode `.readOnly`, in which SQLite may make the file `-shm`.
    if let result = try readWithPrivateIndex(body) { return result }
    return try read(.readOnly, body).0
  }

  /// Reads the store and the write-ahead log of a crash without making a file, or returns `nil` beside another process.
  ///
  /// Every user of a log has an index of it. If there is no index before and after, and database and log have not changed, there was no
  /// other user in between.
  private func readWithPrivateIndex<Result>(
    _ body: (SQLiteConnection, SQLiteConnection.Mode) throws(RepositoryError) -> (Result, isSound: Bool)
  ) throws(RepositoryError) -> Result? {
    guard hasNoUser, let before = try SQLiteFileState(path) else { return nil }
    do throws(RepositoryError) {
      // With an index of its own SQLite would not ignore a log without a header, but try again for ten seconds.
      let mode: SQLiteConnection.Mode = try path.hasLog(on: fileSystem, isJudged: true) ? .privateIndex : .immutable
      let result = try read(mode, body).0
      // A process that has opened the store meanwhile may have changed the log under the reader.
      return try isUnused(since: before) ? result : nil
    } catch {
      guard try isUnused(since: before) else { return nil }
      // A file of another program, or of a newer format, must be reported as such, also where its log cannot be read.
      throw refusal() ?? error
    }
  }

  private func isUnused(since state: SQLiteFileState) throws(RepositoryError) -> Bool {
    let now = try SQLiteFileState(path)
    return hasNoUser && now == state
  }

  private var hasNoUser: Bool {
    SQLitePath.isAbsent(path.logIndex) || ignoresUnusedIndex && SQLiteIndexLocks.isUnused(path.logIndex)
  }

  private func read<Result>(
    _ mode: SQLiteConnection.Mode, _ body: (SQLiteConnection, SQLiteConnection.Mode) throws(RepositoryError) -> (Result, isSound: Bool)
  ) throws(RepositoryError) -> (Result, isSound: Bool) {
    guard let connection = try SQLiteConnection(path: path.main, mode) else {
      throw RepositoryError(.dataMissing, "expected a store to read, found no file", file: path.main)
    }
    // First, because SQLite's own error for a file of another program is the one for damage.
    try checkHeader(connection)
    return try body(connection, mode)
  }

  /// Returns the error for a file that is no store, or one of a newer format, regardless of the files beside it.
  ///
  /// Returns `nil` for a store, and where the file cannot be read.
  private func refusal() -> RepositoryError? {
    do throws(RepositoryError) {
      guard let connection = try SQLiteConnection(path: path.main, .immutable) else { return nil }
      try checkHeader(connection)
      return nil
    } catch {
      return [.notOurStore, .newerSchema].contains(error.code) ? error : nil
    }
  }

  private func checkHeader(_ connection: SQLiteConnection) throws(RepositoryError) {
    let (bytes, size) = try connection.header()
    try SQLiteLayout.check(header: bytes, size: size, file: path.main)
  }
}

/// The POSIX locks that SQLite's connections hold on the index of a write-ahead log (`-shm`).
enum SQLiteIndexLocks {
  /// First byte and number of the bytes that connections lock, of which each connection locks the last while it is open.
  private static let range = (start: 120, count: 9)

  /// Whether no other process has a lock on an index of a write-ahead log.
  ///
  /// False also when the locks cannot be read.
  ///
  /// Use it only in a process without a connection to the database: closing a file drops the locks that this process has on it, and the
  /// system does not report those.
  static func isUnused(_ index: String) -> Bool {
    // `O_NONBLOCK` and `O_NOFOLLOW`: a pipe or a link in the place of the file must not block or lead elsewhere.
    let descriptor = open(index, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var lock = flock()
    (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
    (lock.l_start, lock.l_len) = (off_t(range.start), off_t(range.count))
    return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == Int16(F_UNLCK)
  }
}
