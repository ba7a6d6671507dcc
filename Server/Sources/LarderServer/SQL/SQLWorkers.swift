internal import Foundation
internal import Synchronization

/// Threads with one connection each, on which all SQL runs, so that no database call blocks a thread of Swift's tasks.
///
/// Where the database has one writer, pushes that wait at the same time share a transaction and its sync of the disk (group commit).
final class SQLWorkers: Sendable {
  /// Rules by which jobs are batched, ordered and retried.
  struct Policy: Sendable {
    /// Maximum number of jobs in one transaction.
    var batch = 1
    /// Whether jobs of one key run one after another.
    ///
    /// Otherwise the jobs that wait for one lock could hold all connections.
    var isKeyed = false
    /// Time within which a transaction that failed for a transient reason runs again.
    ///
    /// Zero means never.
    var duration = Duration.zero
  }

  private let queue: SQLJobQueue
  private let ended = DispatchGroup()
  private let transaction: SQLTransaction
  private let policy: Policy
  private let open: Opening

  /// Factory of connections, in a type of its own because closures cannot be compared.
  struct Opening: Sendable {
    let connection: @Sendable () throws(StoreError) -> any SQLConnection
  }

  init(_ name: String, threads: Int, transaction: SQLTransaction, policy: Policy, open: Opening) {
    (self.transaction, self.policy, self.open) = (transaction, policy, open)
    queue = SQLJobQueue(isKeyed: policy.isKeyed)
    for number in 1...threads {
      // Entered here and not by the thread, which may not have started when `close` waits.
      ended.enter()
      let thread = Thread { [self] in
        work()
        ended.leave()
      }
      thread.name = "\(name) \(number)"
      thread.stackSize = 1 << 20
      thread.start()
    }
  }

  /// Runs work within a transaction, and returns its result after the commit.
  ///
  /// If the work throws, none of its writes stay. It goes on when the task that waits for it is cancelled. It may run several times, and
  /// the last run counts.
  func perform<Value: Sendable>(
    key: String? = nil, _ body: @escaping @Sendable (any SQLConnection) throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
      let box = Outcome<Value>()
      queue.add(
        SQLJob(
          key: key,
          run: { (connection) throws(StoreError) in
            do throws(StoreError) {
              let value = try body(connection)
              box.set(.success(value))
            } catch {
              box.set(.failure(error))
              throw error
            }
          },
          finish: { error in
            if let error {
              continuation.resume(returning: .failure(error))
            } else {
              continuation.resume(returning: box.result ?? .failure(.database(code: "lost", message: "the work has no result")))
            }
          }))
    }
    return try result.get()
  }

  /// Closes the queue, and fails the jobs that wait for a thread.
  func stop() { queue.close() }

  /// Closes the queue, fails the jobs that wait for a thread, and blocks until the running jobs have ended without a retry.
  func close() {
    stop()
    ended.wait()
  }

  private func work() {
    var connection: (any SQLConnection)?
    while let jobs = queue.next(policy.batch) {
      runWithRetries(jobs, &connection)
      // Only now: the next job of the key would wait for the same lock and hold a connection meanwhile.
      queue.release(jobs)
    }
    if connection != nil { queue.note(connected: -1) }
  }

  /// Runs jobs, and runs them again after a transient failure, also when the connection was cut within COMMIT.
  ///
  /// The stored rows decide whether such a commit is durable, without any function of the database. The new transaction locks the head of
  /// the scope first, as the old one did. So it waits until the old one has ended, however late the database notices that its client is
  /// gone: `idle_in_transaction_session_timeout` ends a session that waits for a COMMIT which never comes, and `tcp_user_timeout` ends the
  /// wait here for an answer which never comes. If the row of the device then has the number and the token of this push, its outcomes are
  /// the answer. Otherwise the push takes effect now. All other work must be safe to run twice.
  private func runWithRetries(_ jobs: [SQLJob], _ connection: inout (any SQLConnection)?) {
    let end = ContinuousClock.now + policy.duration
    var attempt = 0
    while true {
      attempt += 1
      let failure: StoreError
      do throws(StoreError) {
        let open = try usable(&connection)
        guard let error = run(jobs, on: open) else { return }
        failure = error
      } catch {
        // A job that has not begun fails at once while no connection can be made. Its device asks again.
        failure = error
        if attempt == 1 { return fail(jobs, error) }
      }
      // A closed queue ends the retries, since the shutdown waits for this thread.
      guard failure.isTransient, .now < end, !queue.isClosed else { return fail(jobs, failure) }
      // Random, so that transactions that were in each other's way do not meet again.
      Thread.sleep(forTimeInterval: .random(in: 0...min(0.25, 0.001 * Double(1 << min(attempt, 8)))))
    }
  }

  private func fail(_ jobs: [SQLJob], _ error: StoreError) {
    for job in jobs { job.finish(error) }
    // While no connection can be made, the waiting jobs would fail in the same way, each after a wait of its own.
    if case .database("08001", _) = error, !queue.hasConnections { for job in queue.takeAll() { job.finish(error) } }
  }

  private func usable(_ connection: inout (any SQLConnection)?) throws(StoreError) -> any SQLConnection {
    if let connection, connection.isUsable { return connection }
    if connection != nil { queue.note(connected: -1) }
    // Dropped before the new one is opened, which may throw.
    connection = nil
    let new = try open.connection()
    queue.note(connected: 1)
    connection = new
    return new
  }

  /// Runs jobs in one transaction.
  ///
  /// Returns the error if all of them failed, or `nil` if each has got its own outcome.
  private func run(_ jobs: [SQLJob], on connection: any SQLConnection) -> StoreError? {
    var errors: [StoreError?] = []
    do throws(StoreError) {
      try connection.begin(transaction)
      for job in jobs { errors.append(try runOne(job, on: connection, isAlone: jobs.count == 1)) }
      try connection.commit()
    } catch {
      connection.rollBack()
      // For a single job this is its own error. Of several, none is known to be durable, so all of them have failed.
      return error
    }
    // Only after the commit, since an outcome that is reported must be durable.
    for (job, error) in zip(jobs, errors) { job.finish(error) }
    return nil
  }

  /// Runs one job of a transaction, and returns its error after undoing its writes.
  private func runOne(_ job: SQLJob, on connection: any SQLConnection, isAlone: Bool) throws(StoreError) -> StoreError? {
    // The failure of a single job rolls back the whole transaction, which saves the two statements of a savepoint.
    if isAlone {
      try job.run(connection)
      return nil
    }
    // A refused job must not undo the writes of the others in the transaction.
    try connection.execute("SAVEPOINT job")
    var failure: StoreError?
    do throws(StoreError) { try job.run(connection) } catch {
      failure = error
      try connection.execute("ROLLBACK TO SAVEPOINT job")
    }
    try connection.execute("RELEASE SAVEPOINT job")
    return failure
  }
}

/// Result of a job, on its way from the thread that ran it to the task that waits.
private final class Outcome<Value: Sendable>: Sendable {
  private let held = Mutex<Result<Value, StoreError>?>(nil)
  var result: Result<Value, StoreError>? { held.withLock { $0 } }
  func set(_ result: Result<Value, StoreError>) { held.withLock { $0 = result } }
}
