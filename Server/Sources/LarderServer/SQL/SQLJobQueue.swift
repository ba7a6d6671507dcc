internal import Foundation
internal import Synchronization

/// Work for a thread: a body that runs within a transaction, and a callback that gets the outcome.
struct SQLJob: Sendable {
  /// Name of the lock that the job takes, which is its scope.
  var key: String?
  let run: @Sendable (any SQLConnection) throws(StoreError) -> Void
  let finish: @Sendable (StoreError?) -> Void
}

/// Queue of jobs that wait for a thread.
///
/// If it is keyed, only one job of each key is ready or runs.
final class SQLJobQueue: Sendable {
  private struct State: Sendable {
    var ready: [SQLJob] = []
    /// Keys of jobs that are ready or run, each with the jobs that wait behind them.
    var behind: [String: [SQLJob]] = [:]
    var connections = 0
    var isClosed = false

    var isEmpty: Bool { ready.isEmpty && behind.allSatisfy(\.value.isEmpty) }
  }

  private let state = Mutex(State())
  private let arrived = DispatchSemaphore(value: 0)
  private let isKeyed: Bool

  init(isKeyed: Bool) { self.isKeyed = isKeyed }

  /// Adds a job, or fails it at once if the queue is closed.
  func add(_ job: SQLJob) {
    let (isClosed, isReady) = state.withLock { state -> (Bool, Bool) in
      if state.isClosed { return (true, false) }
      if isKeyed, let key = job.key {
        if state.behind[key] != nil {
          state.behind[key]?.append(job)
          return (false, false)
        }
        state.behind[key] = []
      }
      state.ready.append(job)
      return (false, true)
    }
    // Outside of the lock, because `finish` is code of the caller.
    if isClosed { return job.finish(Self.closed) }
    // A job behind another one of its key gets its signal from `release`.
    if isReady { arrived.signal() }
  }

  /// Returns up to `most` jobs after blocking until there is one, or `nil` once the queue is closed and empty.
  func next(_ most: Int) -> [SQLJob]? {
    while true {
      arrived.wait()
      let found: [SQLJob]?? = state.withLock { state in
        if !state.ready.isEmpty {
          let jobs = Array(state.ready.prefix(most))
          state.ready.removeFirst(jobs.count)
          return .some(jobs)
        }
        return state.isClosed && state.isEmpty ? .some(nil) : nil
      }
      // Another thread has taken the job of this signal together with its own.
      guard let found else { continue }
      // Passed on, so that each of the other threads ends, too.
      if found == nil { arrived.signal() }
      return found
    }
  }

  /// Makes the next job of each key ready, after the jobs before them have ended.
  func release(_ jobs: [SQLJob]) {
    if !isKeyed { return }
    for key in jobs.compactMap(\.key) {
      let wakes = state.withLock { state in
        guard let waiting = state.behind[key], let next = waiting.first else {
          // No entry is kept for a key without jobs, since clients choose the names of scopes.
          state.behind[key] = nil
          // The threads of a closed queue wake up once more, to see that it is empty.
          return state.isClosed
        }
        state.behind[key]?.removeFirst()
        state.ready.append(next)
        return true
      }
      if wakes { arrived.signal() }
    }
  }

  /// Closes the queue and fails the jobs that wait, since each could take as long as a statement may while a database hangs.
  func close() {
    state.withLock { $0.isClosed = true }
    for job in takeAll() { job.finish(Self.closed) }
    // One signal ends all threads, because each passes it on.
    arrived.signal()
  }

  /// Whether the queue is closed and accepts no more jobs.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  private static let closed = StoreError.database(code: "closed", message: "the store is closed")

  /// Removes and returns all waiting jobs.
  func takeAll() -> [SQLJob] {
    state.withLock { state in
      let jobs = state.ready + state.behind.values.joined()
      // Keys of running jobs stay reserved until these have ended.
      let waiting = Set(state.ready.compactMap(\.key))
      for key in state.behind.keys { if waiting.contains(key) { state.behind[key] = nil } else { state.behind[key] = [] } }
      state.ready = []
      return jobs
    }
  }

  /// Counts a connection that a thread has made (1) or given up (-1).
  func note(connected change: Int) { state.withLock { $0.connections += change } }

  /// Whether any thread has a connection.
  var hasConnections: Bool { state.withLock { $0.connections > 0 } }
}
