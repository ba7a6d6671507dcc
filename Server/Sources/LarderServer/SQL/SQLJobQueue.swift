internal import Foundation
internal import Synchronization

/// A piece of work: what runs within a transaction, and what is told when that has ended.
struct SQLJob: Sendable {
  /// The name of what it locks.
  var key: String?
  let run: @Sendable (any SQLConnection) throws(StoreError) -> Void
  let finish: @Sendable (StoreError?) -> Void
}

/// The jobs that wait for a thread; of those with one key, only the first does.
final class SQLJobQueue: Sendable {
  private struct State: Sendable {
    var ready: [SQLJob] = []
    /// The keys of jobs that are ready or run, with the jobs behind them.
    var behind: [String: [SQLJob]] = [:]
    var connections = 0
    var isClosed = false

    var isEmpty: Bool { ready.isEmpty && behind.allSatisfy(\.value.isEmpty) }
  }

  private let state = Mutex(State())
  private let arrived = DispatchSemaphore(value: 0)
  private let isKeyed: Bool

  init(isKeyed: Bool) { self.isKeyed = isKeyed }

  /// Adds a job, which is told at once where there will be no thread for it.
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
    if isClosed { return job.finish(Self.closed) }
    if isReady { arrived.signal() }
  }

  /// Returns the next jobs, and blocks until there are some; `nil` when there will be none.
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
      guard let found else { continue }
      // The other threads are to see the end, too.
      if found == nil { arrived.signal() }
      return found
    }
  }

  /// Lets the next jobs of the keys run.
  func release(_ jobs: [SQLJob]) {
    if !isKeyed { return }
    for key in jobs.compactMap(\.key) {
      let wakes = state.withLock { state in
        guard let waiting = state.behind[key], let next = waiting.first else {
          state.behind[key] = nil
          return state.isClosed
        }
        state.behind[key]?.removeFirst()
        state.ready.append(next)
        return true
      }
      if wakes { arrived.signal() }
    }
  }

  /// Takes no more jobs, and fails those that wait: while a database hangs, each might take as long as a statement may.
  func close() {
    state.withLock { $0.isClosed = true }
    for job in takeAll() { job.finish(Self.closed) }
    arrived.signal()
  }

  /// Whether there will be no more jobs.
  var isClosed: Bool { state.withLock { $0.isClosed } }

  private static let closed = StoreError.database(code: "closed", message: "the store is closed")

  /// Returns all jobs that wait, which do not any more.
  func takeAll() -> [SQLJob] {
    state.withLock { state in
      let jobs = state.ready + state.behind.values.joined()
      // Keys of jobs that run stay taken until they have ended.
      let waiting = Set(state.ready.compactMap(\.key))
      for key in state.behind.keys { if waiting.contains(key) { state.behind[key] = nil } else { state.behind[key] = [] } }
      state.ready = []
      return jobs
    }
  }

  /// Notes that a thread has a connection, or has none any more.
  func note(connected change: Int) { state.withLock { $0.connections += change } }

  /// Whether any thread has a connection.
  var hasConnections: Bool { state.withLock { $0.connections > 0 } }
}
