internal import Synchronization

/// A signal that wakes tasks that wait for a condition to change.
///
/// The condition lives elsewhere, behind its own lock. A task notes the ``moment``, looks at the condition, and waits for what happens
/// after the moment, in a loop. So a change between the look and the wait is not missed:
///
/// ```swift
/// while !Task.isCancelled {
///   let moment = signal.moment
///   if let item = takeItem() { return item }
///   await signal.wait(after: moment)
/// }
/// ```
package final class Signal: Sendable {
  /// A point between two calls of ``raise()``.
  package struct Moment: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  private struct State: Sendable {
    var moment = Moment(number: 0)
    var isFinished = false
    var waiters: [CheckedContinuation<Void, Never>] = []

    mutating func removeWaiters() -> [CheckedContinuation<Void, Never>] {
      defer { waiters = [] }
      return waiters
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// The present moment; note it before looking at the condition.
  package var moment: Moment { state.withLock { $0.moment } }

  /// Whether ``finish()`` was called.
  package var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Whether a task waits: for tests.
  package var isAwaited: Bool { state.withLock { !$0.waiters.isEmpty } }

  /// Wakes all tasks that wait.
  ///
  /// Call it after the condition has changed.
  package func raise() {
    wake { state in state.moment = Moment(number: state.moment.number + 1) }
  }

  /// Wakes all tasks that wait; no later wait suspends.
  package func finish() {
    wake { $0.isFinished = true }
  }

  /// Returns when the signal was raised after the moment, when it is finished, or when the task is cancelled.
  ///
  /// May return early, because another task was cancelled: look at the condition again.
  package nonisolated(nonsending) func wait(after moment: Moment) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // A cancellation before this point is seen here; a later one finds the continuation.
        let isOver = state.withLock { state in
          if state.moment != moment || state.isFinished || Task.isCancelled { return true }
          state.waiters.append(continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      wake { _ in }
    }
  }

  private func wake(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      return state.removeWaiters()
    }
    for waiter in waiters { waiter.resume() }
  }
}
