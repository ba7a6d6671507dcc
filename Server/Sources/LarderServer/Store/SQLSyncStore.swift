internal import Foundation
internal import LarderWire
public import Logging

// Store/ implements the rules of sync over SQL, which SimulatedSyncServer implements in memory. Invariant: each push is one transaction
// that locks the head of its scope first, and each page is one snapshot. Called by HTTP and by the command.

/// Store of a sync server, with its records, scopes and devices in a database.
///
/// Open it in SQLite or PostgreSQL, pass it to ``SyncServer``, and call ``close()`` at the end.
public final class SQLSyncStore: Sendable {
  let writers: SQLWorkers
  let readers: SQLWorkers
  /// Announcements between server processes, or `nil` if this process has the database for itself or only queries it.
  let pokes: (any HeadPokes)?
  let logger: Logger
  let now: @Sendable () -> Int

  /// Clock of the system, in milliseconds since 1970.
  public static let systemClock: @Sendable () -> Int = { Int(Date().timeIntervalSince1970 * 1_000) }

  init(
    writers: SQLWorkers, readers: SQLWorkers, pokes: (any HeadPokes)? = nil, logger: Logger, now: @escaping @Sendable () -> Int
  ) {
    (self.writers, self.readers, self.pokes, self.logger, self.now) = (writers, readers, pokes, logger, now)
  }

  /// Opens the store in a SQLite file, or creates it.
  ///
  /// - Throws: `.unusable` for a file of something else or of a newer version, `.database`.
  public static func open(
    sqlite path: String, creates: Bool = true, logger: Logger, now: @escaping @Sendable () -> Int = systemClock
  ) async throws(StoreError) -> SQLSyncStore {
    try await open(sqlite: path, creates: creates, logger: logger, now: now) { $0 }
  }

  /// - Parameter wrap: Wraps each connection, for tests.
  static func open(
    sqlite path: String, creates: Bool, logger: Logger, now: @escaping @Sendable () -> Int,
    wrap: @escaping @Sendable (any SQLConnection) -> any SQLConnection
  ) async throws(StoreError) -> SQLSyncStore {
    let opening = SQLWorkers.Opening { () throws(StoreError) in wrap(try SQLiteDatabase.open(path, creates: creates)) }
    // SQLite has one writer. Up to 64 pushes that wait at once share its transaction and one sync of the disk.
    let writers = SQLWorkers("larder-write", threads: 1, transaction: .write, policy: .init(batch: 64), open: opening)
    let readers = SQLWorkers("larder-read", threads: 2, transaction: .read, policy: .init(), open: opening)
    let store = SQLSyncStore(writers: writers, readers: readers, logger: logger, now: now)
    do throws(StoreError) { try await writers.perform { (connection) throws(StoreError) in try SQLSchema.migrate(connection) } } catch {
      // Ends the threads, which would otherwise outlive the failed opening.
      await store.close()
      throw error
    }
    return store
  }

  /// Fails the waiting work, waits for the running work, and closes the connections.
  public func close() async {
    let (writers, readers, pokes) = (writers, readers, pokes)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      // A thread of its own, since the calls below block.
      Thread {
        // No reading begins any more while the writers end.
        readers.stop()
        writers.close()
        readers.close()
        pokes?.close()
        continuation.resume()
      }.start()
    }
  }

  /// Runs work for the request of a device.
  ///
  /// A failure of the database is logged, and the device gets `.unavailable`.
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
