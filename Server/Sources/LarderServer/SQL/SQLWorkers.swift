internal import Foundation
internal import Synchronization

/// Threads with a connection each, on which all SQL runs: none of it blocks the threads of Swift's tasks.
///
/// Writers that wait at once share a transaction, and so one sync of the disk, where the database has one writer only.
final class SQLWorkers: Sendable {
  /// A piece of work: what runs within a transaction, and what is told when that has ended.
  struct Job: Sendable {
    let run: @Sendable (any SQLConnection) throws(StoreError) -> Void
    let finish: @Sendable (StoreError?) -> Void
  }

  private struct State: Sendable {
    var jobs: [Job] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let arrived = DispatchSemaphore(value: 0)
  private let ended = DispatchGroup()
  private let transaction: SQLTransaction
  private let batch: Int
  private let open: Opening

  /// Makes a connection; in a type of its own, since closures are compared by nobody.
  struct Opening: Sendable {
    let connection: @Sendable () throws(StoreError) -> any SQLConnection
  }

  /// - Parameter batch: The number of jobs that may share a transaction.
  init(_ name: String, threads: Int, transaction: SQLTransaction, batch: Int, open: Opening) {
    (self.transaction, self.batch, self.open) = (transaction, batch, open)
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
  /// Nothing of the work stays when it throws. The work goes on when the task that waits for it is cancelled.
  func perform<Value: Sendable>(_ body: @escaping @Sendable (any SQLConnection) throws(StoreError) -> Value) async throws(StoreError)
    -> Value
  {
    let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
      let box = Outcome<Value>()
      add(
        Job(
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

  private func add(_ job: Job) {
    let isClosed = state.withLock { state in
      if !state.isClosed { state.jobs.append(job) }
      return state.isClosed
    }
    if isClosed { return job.finish(.database(code: "closed", message: "the store is closed")) }
    arrived.signal()
  }

  /// Takes no more work, and blocks until all that was taken has ended.
  func close() {
    state.withLock { $0.isClosed = true }
    arrived.signal()
    ended.wait()
  }

  /// Returns the next jobs; `nil` when there will be none.
  private func next() -> [Job]? {
    while true {
      arrived.wait()
      let found: [Job]?? = state.withLock { state in
        if !state.jobs.isEmpty {
          let jobs = Array(state.jobs.prefix(batch))
          state.jobs.removeFirst(jobs.count)
          return .some(jobs)
        }
        return state.isClosed ? .some(nil) : nil
      }
      guard let found else { continue }
      // The other threads are to see the end, too.
      if found == nil { arrived.signal() }
      return found
    }
  }

  private func work() {
    var connection: (any SQLConnection)?
    while let jobs = next() {
      do throws(StoreError) {
        let open = if let connection, connection.isUsable { connection } else { try open.connection() }
        connection = open
        run(jobs, on: open)
      } catch {
        for job in jobs { job.finish(error) }
      }
    }
  }

  private func run(_ jobs: [Job], on connection: any SQLConnection) {
    var errors: [StoreError?] = []
    do throws(StoreError) {
      try connection.begin(transaction)
      for job in jobs { errors.append(try runOne(job, on: connection, isAlone: jobs.count == 1)) }
      try connection.commit()
    } catch {
      connection.rollBack()
      // A job that was alone has its own reason; of several, none is known to be durable.
      for job in jobs { job.finish(error) }
      return
    }
    for (job, error) in zip(jobs, errors) { job.finish(error) }
  }

  /// Returns why a job has failed, whose writes are undone then.
  private func runOne(_ job: Job, on connection: any SQLConnection, isAlone: Bool) throws(StoreError) -> StoreError? {
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
