internal import Foundation
internal import Synchronization

/// Threads with a connection each, on which all SQL runs: none of it blocks the threads of Swift's tasks.
///
/// Writers that wait at once share a transaction, and so one sync of the disk, where the database has one writer only.
final class SQLWorkers: Sendable {
  /// The way in which jobs run.
  struct Policy: Sendable {
    /// The number of jobs that may share a transaction.
    var batch = 1
    /// Whether jobs of one key run one after another, so that those which wait for one lock do not hold all connections.
    var isKeyed = false
    /// The time within which a transaction is tried again that failed for a reason that may pass; none for never.
    var duration = Duration.zero
  }

  private let queue: SQLJobQueue
  private let ended = DispatchGroup()
  private let transaction: SQLTransaction
  private let policy: Policy
  private let open: Opening

  /// Makes a connection; in a type of its own, since closures are compared by nobody.
  struct Opening: Sendable {
    let connection: @Sendable () throws(StoreError) -> any SQLConnection
  }

  init(_ name: String, threads: Int, transaction: SQLTransaction, policy: Policy, open: Opening) {
    (self.transaction, self.policy, self.open) = (transaction, policy, open)
    queue = SQLJobQueue(isKeyed: policy.isKeyed)
    for number in 1...threads {
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

  /// Runs work within a transaction, and returns its result when that has ended.
  ///
  /// Nothing of the work stays when it throws. The work goes on when the task that waits for it is cancelled. It may run several times, of
  /// which the last one counts.
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

  /// Takes no more work, and fails what waits for a thread.
  func stop() { queue.close() }

  /// Takes no more work, fails what waits for a thread, and blocks until what runs has ended, which is not tried again.
  func close() {
    stop()
    ended.wait()
  }

  private func work() {
    var connection: (any SQLConnection)?
    while let jobs = queue.next(policy.batch) {
      runWithRetries(jobs, &connection)
      queue.release(jobs)
    }
    if connection != nil { queue.note(connected: -1) }
  }

  /// Runs jobs, and tries again where that may help, also when a connection was cut within COMMIT.
  ///
  /// Whether such a commit was made durable is decided by what is stored, without any function of the database. The new transaction locks
  /// the head first, as the old one did, so that it waits until the old one has ended, however late the database learns that its client
  /// is gone: `idle_in_transaction_session_timeout` ends one that waits for a COMMIT which never comes, and `tcp_user_timeout` ends the
  /// wait here for an answer which never comes. Then the row of the device either has the number and the token of this push, and its
  /// outcomes are the answer, or it has not, and the push takes effect now. Other work is made so that it may run twice.
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
        // What was not begun fails at once while there is no database; devices ask again.
        failure = error
        if attempt == 1 { return fail(jobs, error) }
      }
      guard failure.isTransient, .now < end, !queue.isClosed else { return fail(jobs, failure) }
      // By chance, so that transactions that were in each other's way do not meet again.
      Thread.sleep(forTimeInterval: .random(in: 0...min(0.25, 0.001 * Double(1 << min(attempt, 8)))))
    }
  }

  private func fail(_ jobs: [SQLJob], _ error: StoreError) {
    for job in jobs { job.finish(error) }
    // Whoever waits would find the same, after having waited for it once more.
    if case .database("08001", _) = error, !queue.hasConnections { for job in queue.takeAll() { job.finish(error) } }
  }

  private func usable(_ connection: inout (any SQLConnection)?) throws(StoreError) -> any SQLConnection {
    if let connection, connection.isUsable { return connection }
    if connection != nil { queue.note(connected: -1) }
    connection = nil
    let new = try open.connection()
    queue.note(connected: 1)
    connection = new
    return new
  }

  /// Returns why jobs have failed, all of them; `nil` when each was told how it ended.
  private func run(_ jobs: [SQLJob], on connection: any SQLConnection) -> StoreError? {
    var errors: [StoreError?] = []
    do throws(StoreError) {
      try connection.begin(transaction)
      for job in jobs { errors.append(try runOne(job, on: connection, isAlone: jobs.count == 1)) }
      try connection.commit()
    } catch {
      connection.rollBack()
      // A job that was alone has its own reason; of several, none is known to be durable.
      return error
    }
    for (job, error) in zip(jobs, errors) { job.finish(error) }
    return nil
  }

  /// Returns why a job has failed, whose writes are undone then.
  private func runOne(_ job: SQLJob, on connection: any SQLConnection, isAlone: Bool) throws(StoreError) -> StoreError? {
    if isAlone {
      try job.run(connection)
      return nil
    }
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

/// The result of a job, on its way from the thread that ran it.
private final class Outcome<Value: Sendable>: Sendable {
  private let held = Mutex<Result<Value, StoreError>?>(nil)
  var result: Result<Value, StoreError>? { held.withLock { $0 } }
  func set(_ result: Result<Value, StoreError>) { held.withLock { $0 = result } }
}
