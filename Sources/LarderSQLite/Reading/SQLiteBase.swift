internal import Dispatch
internal import Foundation
internal import Larder
internal import Synchronization

/// The records of a store as of one commit, read through connections with open read transactions ("pinned" connections).
///
/// A pinned connection keeps SQLite from overwriting the pages of its commit. The write-ahead log therefore grows while a base of an older
/// commit exists, and ``SQLiteBases`` bounds that growth.
final class SQLiteBase: StoredBase {
  let commit: Revision
  private let path: String
  /// Whether other processes may commit, so that a read transaction that begins anew may be of a later commit.
  let isShared: Bool
  /// Names of the collections that have a table.
  private let collections: Set<String>
  /// Complete indexes at the commit, with the numbers of their tables.
  private let indexes: [StoredIndexID: Int64]
  private let readers: [Reader]
  private let turn = Atomic(0)
  /// Whether the connections were closed for good.
  let isSuperseded = Atomic(false)
  /// Time of the last read, in nanoseconds of the monotonic clock, or 0 before the first read.
  private let lastRead = Atomic<UInt64>(0)
  /// Number of connections, and so of threads that read at the same time.
  ///
  /// Each connection has a page cache of its own, of at most 2 MB.
  private static let connectionCount = 2

  /// A pinned connection, which one thread uses at a time.
  private final class Reader: Sendable {
    let connection: Mutex<State>

    init(_ connection: sending SQLitePinnedConnection) { self.connection = Mutex(.pinned(connection)) }
  }

  private enum State {
    case pinned(SQLitePinnedConnection)
    /// The store is suspended, and holds no connection.
    case suspended
    case superseded

    /// Returns the result of a read, or `nil` if there is no connection.
    func read<Output: Sendable>(
      _ body: @Sendable (SQLitePinnedConnection) throws(RepositoryError) -> Output
    ) throws(RepositoryError) -> Output? {
      if case .pinned(let connection) = self { try body(connection) } else { nil }
    }
  }

  /// Opens connections, whose read transactions begin at the newest commit of the database.
  ///
  /// No commit may happen during the call.
  /// - Parameters:
  ///   - commit: Number of the newest commit.
  ///   - isShared: Whether other processes may commit later.
  init(path: String, commit: Revision, indexes: [StoredIndexID: Int64], isShared: Bool) throws(RepositoryError) {
    (self.path, self.commit, self.indexes, self.isShared) = (path, commit, indexes, isShared)
    var readers: [Reader] = []
    let expected = isShared ? commit : nil
    let first = try SQLitePinnedConnection(path, indexes, at: expected)
    collections = Set(try first.collections())
    readers.append(Reader(first))
    for _ in 1..<Self.connectionCount { readers.append(Reader(try SQLitePinnedConnection(path, indexes, at: expected))) }
    self.readers = readers
  }

  func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] {
    guard collections.contains(collection) else { return keys.map { _ in nil } }
    return try read { connection throws(RepositoryError) in
      try keys.map { key throws(RepositoryError) in try connection.record(key, of: collection) }
    }
  }

  func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
    guard collections.contains(collection) else { return [] }
    return try read { connection throws(RepositoryError) in try connection.records(of: collection, after: key, limit: limit) }
  }

  func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] {
    try read { connection throws(RepositoryError) in try connection.boundaries(of: index) }
  }

  func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    try read { connection throws(RepositoryError) in try connection.keys(of: index, from: lower, below: upper) }
  }

  func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    try read { connection throws(RepositoryError) in try connection.keyCount(of: index, from: lower, below: upper) }
  }

  private func read<Output: Sendable>(
    _ body: @Sendable (SQLitePinnedConnection) throws(RepositoryError) -> Output
  ) throws(RepositoryError) -> Output {
    lastRead.store(DispatchTime.now().uptimeNanoseconds, ordering: .relaxed)
    for reader in readers {
      if let output = try reader.connection.withLockIfAvailable({ state throws(RepositoryError) in try state.read(body) }) {
        if let output { return output }
        throw refusal(of: reader)
      }
    }
    // All connections are in use, so this thread waits for one of them, in turn, for the time of one read.
    let reader = readers[Int(UInt(bitPattern: turn.wrappingAdd(1, ordering: .relaxed).oldValue) % UInt(readers.count))]
    if let output = try reader.connection.withLock({ state throws(RepositoryError) in try state.read(body) }) { return output }
    throw refusal(of: reader)
  }

  /// Returns the error for a read without a connection.
  private func refusal(of reader: Reader) -> RepositoryError {
    if reader.connection.withLock({ if case .suspended = $0 { true } else { false } }) {
      return RepositoryError(.suspended, "the store is suspended; call resume(), and try again", file: path)
    }
    return .superseded(commit, path)
  }

  /// Whether the base was read within the last second, so that a walk over its records is probably under way.
  var isBeingRead: Bool {
    let last = lastRead.load(ordering: .relaxed)
    return last > 0 && DispatchTime.now().uptimeNanoseconds < last + 1_000_000_000
  }

  // MARK: Pinning

  /// Begins the read transactions anew.
  ///
  /// Call `pinAgain(keeping:)` only while the newest commit of the database is ``commit``.
  /// - Parameter current: The complete indexes in the database, since an index may have been dropped without a commit.
  func pinAgain(keeping current: [StoredIndexID: Int64]) throws(RepositoryError) {
    for reader in readers {
      try reader.connection.withLock { state throws(RepositoryError) in
        guard case .pinned(let connection) = state else { return }
        do throws(RepositoryError) { try connection.pinAgain(keeping: current, at: isShared ? commit : nil) } catch {
          // A connection without a read transaction would read the records of later commits.
          state = .superseded
          isSuperseded.store(true, ordering: .relaxed)
          throw error
        }
      }
    }
  }

  /// Closes the connections, after which every read throws `.superseded`.
  func supersede() {
    isSuperseded.store(true, ordering: .relaxed)
    for reader in readers { reader.connection.withLock { $0 = .superseded } }
  }

  /// Closes the connections, after which every read throws `.suspended` until ``resume()``.
  ///
  /// The reads of a superseded base also throw `.suspended` then, because a newer base can only be taken after
  /// ``SQLiteBases/resume(keeping:)``.
  func suspend() { for reader in readers { reader.connection.withLock { $0 = .suspended } } }

  /// Opens the connections again.
  ///
  /// Call `resume(keeping:)` only if the database is unchanged since ``suspend()``, or shared.
  /// - Throws: `.superseded` if another process has committed to a shared database since then.
  func resume(keeping current: [StoredIndexID: Int64]) throws(RepositoryError) {
    let indexes = indexes.filter { current[$0.key] == $0.value }
    for reader in readers {
      try reader.connection.withLock { state throws(RepositoryError) in
        if case .suspended = state { state = .pinned(try SQLitePinnedConnection(path, indexes, at: isShared ? commit : nil)) }
      }
    }
  }
}

/// The bases of an open store that are still in use, and the bound on the log that the older ones of them keep.
///
/// Every member is used under the mutex of the backend.
final class SQLiteBases {
  private struct Live { weak var base: SQLiteBase? }
  private var live: [Live] = []
  /// Length of the write-ahead log, in pages, up to which no older base is superseded: 16 MB at a page size of 4 KiB.
  static let logLimit = 4 * SQLiteConnection.checkpointPages
  /// Largest number of bases in use, each of which has two connections.
  private static let limit = 8

  /// The base that was made last, which the store reads.
  private weak var newest: SQLiteBase?
  /// Length of the write-ahead log, in pages, when the newest base was made.
  private var lengthAtNewest = 0
  /// Whether a long log, or a log on a full disk, cannot be emptied because the newest base is older than the newest commit.
  private var isInTheWay = false
  /// Length of a long log, in pages, that an older base or another process kept when the store last asked for it, otherwise `nil`.
  private var keptLength: Int?
  /// Number of times that the store has asked since the last attempt to empty the kept log, and after how many it tries again.
  private var attempt = (asked: 0, due: 1)
  /// Size of a log file, in bytes, that was copied as a whole and that the next commit to the database begins anew.
  private var copiedSize = 0

  /// Number of the newest commit when the bases were suspended.
  private var commitAtSuspension: UInt64 = 0

  /// Adds a base of the newest commit.
  func add(_ base: SQLiteBase, at logLength: Int) {
    live.removeAll { $0.base?.isSuperseded.load(ordering: .relaxed) ?? true }
    if live.count >= Self.limit { live.removeFirst().base?.supersede() }
    live.append(Live(base: base))
    (newest, lengthAtNewest, isInTheWay) = (base, logLength, false)
  }

  private var bases: [SQLiteBase] { live.compactMap(\.base).filter { !$0.isSuperseded.load(ordering: .relaxed) } }

  /// Length of the write-ahead log, in pages, that a checkpoint has left, until the next commit shows the length again.
  var leftLength = 0

  /// Whether the store should take a newer base: the newest one was lost to a failure, or a newer one would let the log be emptied.
  ///
  /// While an old snapshot keeps the log, a newer base is worth its connections only after the log has grown again.
  func wantNewer(at logLength: Int) -> Bool {
    if isInTheWay || newest?.isSuperseded.load(ordering: .relaxed) == true { return true }
    if isWorthAttempt(at: logLength) { return areUsed }
    let step = SQLiteConnection.checkpointPages
    return logLength >= max(step, lengthAtNewest < step ? 0 : lengthAtNewest + step) && areUsed
  }

  /// Whether an attempt to empty a kept log is due, because the log has not grown.
  private func isWorthAttempt(at logLength: Int) -> Bool {
    guard let length = keptLength, logLength >= SQLiteConnection.checkpointPages else {
      keptLength = nil
      return false
    }
    // While other processes write, only one of several processes could have a base of the newest commit, and no attempt would succeed.
    guard length == logLength else {
      (keptLength, attempt) = (logLength, (0, 1))
      return false
    }
    attempt.asked += 1
    guard attempt.asked >= attempt.due else { return false }
    // A process that keeps an old base for long would otherwise cause attempts without an end.
    attempt = (0, min(attempt.due * 2, 64))
    return true
  }

  /// Notes that the whole log was copied, so that the next commit begins it anew unless another program reads it.
  ///
  /// - Parameter fileSize: Size of the log file, in bytes.
  func noteEmptyLog(ofSize fileSize: Int) { (lengthAtNewest, leftLength, copiedSize, keptLength) = (0, 0, fileSize, nil) }

  /// Notes that an older base, or a reader in another process, kept a part of a long log from being copied.
  ///
  /// The store then makes a newer base as soon as it finds the log twice at the same length, and after each failure asks twice as often
  /// before the next attempt.
  func noteKeptLog() { if keptLength == nil { keptLength = 0 } }

  /// Returns the number of pages by which a log file is longer than one that was begun anew.
  func addedPageCount(inFileOfSize size: Int) -> Int {
    // SQLite shortens a log that begins anew to `checkpointPages`, and its file keeps that size until the next checkpoint.
    let pages = size / (SQLiteLogInspection.frameHeaderSize + 4_096)
    return size == copiedSize || pages <= SQLiteConnection.checkpointPages ? 0 : pages
  }

  /// Notes that the log must be emptied, which only a base of the newest commit allows.
  ///
  /// While another base is in use, a newer one would not help.
  func noteInTheWay() { isInTheWay = bases.count == 1 }

  /// Whether a base is in use.
  var areUsed: Bool { !bases.isEmpty }

  /// Whether a base is in use that is older than a commit.
  func areOlder(than commit: UInt64) -> Bool { bases.contains { $0.commit.number != commit } }

  /// Supersedes every base that is older than the newest one, which the store reads.
  ///
  /// - Parameter spares: True to spare a base that is being read, so that a long walk beside many writes can end.
  func supersedeOld(sparingReads spares: Bool) {
    let newest = bases.map(\.commit).max()
    for base in bases where base.commit != newest && !(spares && base.isBeingRead) { base.supersede() }
  }

  func supersedeAll() {
    // After a suspension, a base that was superseded before throws `.suspended`.
    for base in live.compactMap(\.base) { base.supersede() }
    live = []
  }

  /// Begins the read transactions of all bases anew, which must all be of the newest commit.
  func pinAgain(keeping indexes: [StoredIndexID: Int64]) throws(RepositoryError) {
    for base in bases { try base.pinAgain(keeping: indexes) }
  }

  /// Closes the connections of all bases, whose reads throw `.suspended` from then on.
  ///
  /// - Parameter commit: Number of the newest commit.
  func suspend(at commit: UInt64) {
    commitAtSuspension = commit
    for base in live.compactMap(\.base) { base.suspend() }
  }

  /// Opens the connections of the bases of the newest commit again, and supersedes the other bases.
  ///
  /// If that fails, the bases are superseded, and the store takes a new one.
  func resume(keeping indexes: [StoredIndexID: Int64]) {
    for base in live.compactMap(\.base) {
      do throws(RepositoryError) {
        let isNewest = base.isShared || base.commit.number == commitAtSuspension
        guard isNewest, !base.isSuperseded.load(ordering: .relaxed) else {
          base.supersede()
          continue
        }
        try base.resume(keeping: indexes)
      } catch { base.supersede() }
    }
  }
}
