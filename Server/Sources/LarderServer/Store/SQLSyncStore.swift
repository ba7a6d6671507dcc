internal import Foundation
internal import LarderSync
public import Logging

// Store/ has the rules of sync over SQL, which SimulatedSyncServer has in memory. Invariant: each push is one transaction that locks the
// head of its scope first, and each page is one snapshot. Called by HTTP and by the command.

/// The records, scopes and devices of a server, in a database.
public final class SQLSyncStore: Sendable {
  let writers: SQLWorkers
  let readers: SQLWorkers
  /// The signs between server processes; none where one process has the database for itself, or they only look at it.
  let pokes: (any HeadPokes)?
  let logger: Logger
  let now: @Sendable () -> Int

  /// The clock of the system, in milliseconds since 1970.
  public static let systemClock: @Sendable () -> Int = { Int(Date().timeIntervalSince1970 * 1_000) }

  init(
    writers: SQLWorkers, readers: SQLWorkers, pokes: (any HeadPokes)? = nil, logger: Logger, now: @escaping @Sendable () -> Int
  ) {
    (self.writers, self.readers, self.pokes, self.logger, self.now) = (writers, readers, pokes, logger, now)
  }

  /// Opens the store in a SQLite file, or makes it.
  ///
  /// - Throws: `.unusable` for a file of something else or of a newer version, `.database`.
  public static func open(
    sqlite path: String, creates: Bool = true, logger: Logger, now: @escaping @Sendable () -> Int = systemClock
  ) async throws(StoreError) -> SQLSyncStore {
    try await open(sqlite: path, creates: creates, logger: logger, now: now) { $0 }
  }

  /// - Parameter wrap: What stands between the store and its connections, for tests.
  static func open(
    sqlite path: String, creates: Bool, logger: Logger, now: @escaping @Sendable () -> Int,
    wrap: @escaping @Sendable (any SQLConnection) -> any SQLConnection
  ) async throws(StoreError) -> SQLSyncStore {
    let opening = SQLWorkers.Opening { () throws(StoreError) in wrap(try SQLiteDatabase.open(path, creates: creates)) }
    let writers = SQLWorkers("larder-write", threads: 1, transaction: .write, policy: .init(batch: 64), open: opening)
    let readers = SQLWorkers("larder-read", threads: 2, transaction: .read, policy: .init(), open: opening)
    let store = SQLSyncStore(writers: writers, readers: readers, logger: logger, now: now)
    do throws(StoreError) { try await writers.perform { (connection) throws(StoreError) in try SQLSchema.migrate(connection) } } catch {
      await store.close()
      throw error
    }
    return store
  }

  /// Fails the work that waits, ends what runs, and closes the connections.
  public func close() async {
    let (writers, readers, pokes) = (writers, readers, pokes)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      Thread {
        // Nothing begins any more before the end of what runs is waited for.
        readers.stop()
        writers.close()
        readers.close()
        pokes?.close()
        continuation.resume()
      }.start()
    }
  }

  /// Runs what answers a device: failures of the database are logged, and told as that the server cannot answer now.
  func answer<Value: Sendable>(
    on workers: SQLWorkers, key: String? = nil, _ body: @escaping @Sendable (any SQLConnection) throws(StoreError) -> Value
  ) async throws(SyncProblem) -> Value {
    do throws(StoreError) { return try await workers.perform(key: key, body) } catch {
      if case .problem(let problem) = error { throw problem }
      logger.error("the store failed", metadata: ["error": "\(error)"])
      throw .unavailable(retryAfter: 1)
    }
  }
}
