// Reading/ reads stores: all records of a store, the commits of other processes, and a store to which other processes may be writing.
// Invariant: neither the database nor its write-ahead log is written, and every returned record matched its checksum.
// Called by Opening/, Sharing/ and SQLiteStore.

internal import Foundation
internal import Larder

/// A reader of a store to which other processes may be writing.
///
/// The reader takes none of Larder's locks, and writes neither to the database nor to its write-ahead log.
final class SQLiteReadOnlyReader {
  private let path: SQLitePath
  private let fileSystem: any FileSystem
  /// State of the files, and the newest known commit, at the last search that found no newer commit.
  private var quiet: (state: SQLiteFileState, revision: Revision)?

  /// Whether an existing `-shm` file, SQLite's index of the write-ahead log, is ignored if no process uses it.
  ///
  /// SQLite would rebuild an unused `-shm` file that is not ignored.
  private let ignoresUnusedIndex: Bool

  init(_ path: SQLitePath, _ fileSystem: any FileSystem, ignoresUnusedIndex: Bool = false) {
    self.path = path
    self.fileSystem = fileSystem
    self.ignoresUnusedIndex = ignoresUnusedIndex
  }

  /// Reads every row of the store, and either stops at the first damage or collects all problems.
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

  /// Compares the checksum of every row, runs SQLite's `integrity_check`, and collects all problems.
  func verify() throws(RepositoryError) -> (scan: SQLiteScan, problems: [RepositoryError]) {
    try read { connection, _ throws(RepositoryError) in
      let scan = try SQLiteScan(connection, stopsAtDamage: false)
      while try scan.next() != nil {}
      let problems = try scan.problems + SQLiteStore.integrityProblems(connection)
      return ((scan, problems), problems.isEmpty)
    }
  }

  /// Runs `body`, which copies the whole store, and runs `body` again if another process wrote to the database during the copy.
  ///
  /// If the store has a write-ahead log, one run of `body` is enough, because the copy's read transaction does not see commits that a
  /// writer adds to the log.
  func copy(_ body: (SQLiteConnection) throws(RepositoryError) -> Void) throws(RepositoryError) {
    try read { connection, mode throws(RepositoryError) in
      let before = try SQLiteFileState(path)
      try body(connection)
      let now = try SQLiteFileState(path)
      return ((), isSound: mode != .immutable || now == before)
    }
  }

  /// Reads the commits that other processes made after a revision, or returns `nil` when there is none.
  ///
  /// Opens the database only if the database or its write-ahead log may have changed since the last call.
  func commits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    // The state of the files is read before the commits. If another process commits after the state was read, the next call finds a
    // different state and reads the commits again.
    let state = try SQLiteFileState(path)
    if let state, let quiet, quiet.state == state, quiet.revision == revision { return nil }
    let commits = try newCommits(after: revision)
    quiet = nil
    // A file that changed within the last three seconds may change again with the same time stamp, so its state is not stored.
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
      // A database without a write-ahead log offers no consistent snapshot, because a checkpoint may write to it at any time. Only the
      // digest of all rows shows whether the rows belong to the same commit.
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
    // Without this error, commits would vanish silently when an older backup is copied over an open store.
    guard scan.row.commit > revision.number else { throw connection.wentBack(to: scan.row.commit, from: revision) }
    return ForeignCommits(commit: Revision(scan.row.commit), records: records, addresses: addresses)
  }

  /// Runs `body` on a read-only connection, and runs `body` again if another process wrote to the database during the first run.
  ///
  /// While a store has no write-ahead log, no process writes to the database file, and SQLite can read the database without creating files.
  /// If another process opens the store during the reading and copies its log into the database, the rows that were read do not match the
  /// digest, or that process's log exists after the reading. In either case `body` runs again, in a read transaction if the store has a log
  /// by then. Damage that two attempts find in a store without a log is reported as real damage. `body` also returns `isSound`, which is
  /// false if the result may be damaged and must be read again.
  private func read<Result>(
    _ body: (SQLiteConnection, SQLiteConnection.Mode) throws(RepositoryError) -> (Result, isSound: Bool)
  ) throws(RepositoryError) -> Result {
    var attempt = 1
    // SQLite would roll a rollback journal into the database, even on a connection that only reads.
    try path.checkRollbackJournal(fileSystem)
    while try !path.hasLog(on: fileSystem) {
      do throws(RepositoryError) {
        let (result, isSound) = try read(.immutable, body)
        // A writer that runs checkpoints without a pause may disturb every attempt. In a store without a log, the result of the fourth
        // attempt is therefore returned even if it is not sound.
        if try !path.hasLog(on: fileSystem), isSound || attempt >= 4 { return result }
      } catch {
        let isUnwritten = try !path.hasLog(on: fileSystem)
        // If a checkpoint of another process changed rows during the reading, the next attempt reads them whole. The next attempt also
        // finds real damage again.
        if error.code != .corrupted || (attempt >= 2 && isUnwritten) { throw error }
      }
      attempt += 1
    }
    // The mode `.readOnly` is tried last, because in this mode SQLite may create the `-shm` file.
    if let result = try readWithPrivateIndex(body) { return result }
    return try read(.readOnly, body).0
  }

  /// Reads the store and the log that a crash left, without creating a file, or returns `nil` if another process uses the store.
  ///
  /// Every process that uses a write-ahead log has an index of it, the `-shm` file. If the `-shm` file is absent before and after the
  /// reading, and the database and the log have not changed, no other process used the store during the reading.
  private func readWithPrivateIndex<Result>(
    _ body: (SQLiteConnection, SQLiteConnection.Mode) throws(RepositoryError) -> (Result, isSound: Bool)
  ) throws(RepositoryError) -> Result? {
    guard hasNoUser, let before = try SQLiteFileState(path) else { return nil }
    do throws(RepositoryError) {
      // With a private index SQLite would not ignore a log with a damaged header, but would try for ten seconds to read it. `hasLog` with
      // `isJudged` therefore checks such a log for lost commits first, and then the database file is read without its log.
      let mode: SQLiteConnection.Mode = try path.hasLog(on: fileSystem, isJudged: true) ? .privateIndex : .immutable
      let result = try read(mode, body).0
      // A process that has opened the store during the reading may have changed the log, so the result may be wrong and is dropped.
      return try isUnused(since: before) ? result : nil
    } catch {
      guard try isUnused(since: before) else { return nil }
      // A file of another program or of a newer format must be reported as such, even where its write-ahead log cannot be read.
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
    // The header is checked before SQLite reads the file, because SQLite reports a file of another program as a damaged file.
    try checkHeader(connection)
    return try body(connection, mode)
  }

  /// Returns the error for a file that is no store, or a store of a newer format, without reading its write-ahead log.
  ///
  /// Returns `nil` for a store of this format, and for a file that cannot be read.
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
  /// The bytes of the `-shm` file that connections lock.
  ///
  /// Each connection locks the last of these bytes while it is open.
  private static let range = (start: 120, count: 9)

  /// Whether no other process has a lock on an index of a write-ahead log.
  ///
  /// The result is also false if the locks cannot be read.
  ///
  /// Call `isUnused(_:)` only in a process without a connection to the database. Closing the `-shm` file drops all locks that this process
  /// has on the file, and the system does not report a process's own locks.
  static func isUnused(_ index: String) -> Bool {
    // With `O_NONBLOCK`, opening a pipe that has the file's name does not block. `O_NOFOLLOW` refuses a symbolic link.
    let descriptor = open(index, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var lock = flock()
    (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
    (lock.l_start, lock.l_len) = (off_t(range.start), off_t(range.count))
    return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == Int16(F_UNLCK)
  }
}
